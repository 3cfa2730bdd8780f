#include "sordino/gradients/measured_rates.h"

#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>
#include <torch/version.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "sordino/base/durable_file.h"
#include "sordino/base/quantity.h"
#include "sordino/gradients/internal/terms/example_products.h"
#include "sordino/gradients/internal/terms/norm_cost.h"
#include "sordino/gradients/internal/terms/row_kernels.h"
#include "sordino/gradients/internal/terms/term.h"
#include "sordino/gradients/parallel_shares.h"

namespace sordino {
namespace {

// The shortest of a few runs, in nanoseconds: what disturbs a run makes it longer.
template <typename Work>
double Nanoseconds(const Work& work) {
  constexpr int kRuns = 4;
  double shortest = kInfinity;
  for (int run = 0; run < kRuns; ++run) {
    const auto start = std::chrono::steady_clock::now();
    work();
    const std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - start;
    shortest = std::min(shortest, time.count());
  }
  return shortest;
}

constexpr std::int64_t kFeatures = 256;

Term MadeUpRows(std::int64_t examples, std::int64_t rows) {
  return {.kind = TermKind::kOuter,
          .a = at::ones({examples * rows, kFeatures}),
          .b = at::ones({examples * rows, kFeatures}),
          .layout = {1, examples, rows},
          .sizes = {kFeatures, kFeatures}};
}

NormRates MeasureRates() {
  const at::NoGradGuard no_grad;
  const std::int64_t threads = at::get_num_threads();
  const std::int64_t examples = 4 * threads;
  const at::Tensor squared = at::zeros({examples}, at::kDouble);
  const auto flops = [&](double rows, double inner) {
    return 2 * static_cast<double>(examples) * rows * inner;
  };
  NormRates rates;

  // Many rows, so that the products and not their results take the time.
  constexpr std::int64_t kManyRows = 512;
  const Term many = MadeUpRows(examples, kManyRows);
  const auto by_example = [&](const at::Tensor& rows) {
    return rows.view({examples, kManyRows, kFeatures});
  };
  rates.products = flops(kManyRows, kFeatures * kFeatures) / Nanoseconds([&] {
                     ExampleProducts(by_example(many.a), by_example(many.b), squared);
                   });

  constexpr std::int64_t kRows = 128;
  const Term few = MadeUpRows(examples, kRows);
  rates.gram_products = flops(kRows * kRows, 2 * kFeatures) /
                        Nanoseconds([&] { AddOuterSquaredNorms(few, squared); });

  // Written and read once, beyond the caches.
  constexpr std::int64_t kLarge = std::int64_t{1} << 23;
  rates.memory = 2 * 4 * static_cast<double>(kLarge) / Nanoseconds([&] {
                   const at::Tensor values = at::empty({16, kLarge / 16});
                   values.fill_(1);
                   RowSquaredNorms(values);
                 });

  // Products that are added to a float64 sum in the cache.
  constexpr std::int64_t kCached = std::int64_t{1} << 15;
  constexpr int kTimes = 64;
  rates.cache =
      kBytesPerAddedEntry * static_cast<double>(kCached * threads) * kTimes / Nanoseconds([&] {
        ParallelShares(threads, [&](std::int64_t begin, std::int64_t end) {
          std::vector<float> product(kCached, 1.0F);
          std::vector<double> sum(kCached);
          for (std::int64_t times = (end - begin) * kTimes; times > 0; --times) {
            for (std::size_t k = 0; k < sum.size(); ++k) {
              sum[k] += static_cast<double>(product[k]);
            }
            product[static_cast<std::size_t>(times) % product.size()] =
                static_cast<float>(sum.front());
          }
        });
      });
  return rates;
}

// The first line of the file: what the rates are of.
std::string MachineName() {
  std::array<char, 256> host = {};
  if (gethostname(host.data(), host.size() - 1) != 0) host.front() = '\0';
  return fmt::format("sordino norm rates 1, {}, {}, libtorch {}, {} threads", host.data(),
                     at::get_cpu_capability(), TORCH_VERSION, at::get_num_threads());
}

std::optional<NormRates> ReadRates(const std::filesystem::path& file, const std::string& machine) {
  std::ifstream in(file);
  std::string line;
  if (!std::getline(in, line) || line != machine) return std::nullopt;
  NormRates rates;
  in >> rates.products >> rates.gram_products >> rates.memory >> rates.cache;
  if (!in || !rates.AreUsable()) return std::nullopt;
  return rates;
}

void WriteRates(const std::filesystem::path& file, const std::string& machine,
                const NormRates& rates) {
  try {
    std::filesystem::create_directories(file.parent_path());
    WriteWholeFile(file, fmt::format("{}\n{} {} {} {}\n", machine, rates.products,
                                     rates.gram_products, rates.memory, rates.cache));
  } catch (const std::exception&) {
    // They are measured again the next time.
  }
}

}  // namespace

std::filesystem::path RatesFile() {
  const auto variable = [](const char* name) -> std::filesystem::path {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
  };
  std::filesystem::path folder = variable("XDG_CACHE_HOME");
  if (folder.empty() && !variable("HOME").empty()) folder = variable("HOME") / ".cache";
  return folder.empty() ? folder : folder / "sordino" / "norm_rates.txt";
}

void UseMeasuredRates(const std::filesystem::path& file) {
  const std::string machine = MachineName();
  if (!file.empty()) {
    if (const auto rates = ReadRates(file, machine)) {
      SetCpuRates(*rates);
      return;
    }
  }
  const NormRates rates = MeasureRates();
  if (!rates.AreUsable()) return;
  SetCpuRates(rates);
  if (!file.empty()) WriteRates(file, machine, rates);
}

}  // namespace sordino
