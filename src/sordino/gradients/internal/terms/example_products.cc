#include "sordino/gradients/internal/terms/example_products.h"

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm_cpu_dispatch.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "sordino/device/parallel_shares.h"
#include "sordino/kernels/row_sums.h"

namespace sordino {
namespace {

// Entries of a result that stay in a core's second-level cache, in float64 beside float32; a
// product of fewer rows is slow.
constexpr std::int64_t kResultValues = 1 << 16;
constexpr std::int64_t kFewResultRows = 32;

// How the sum of products [p, q] of some examples is cut into tasks.
struct Cut {
  std::int64_t block = 1;   // rows of the result
  std::int64_t blocks = 1;  // as many for each thread
  std::int64_t shares = 1;  // of the examples, where there are fewer blocks than threads
};

// A block of the result stays in the cache while the products of all examples are added to it.
Cut CutOf(std::int64_t examples, std::int64_t p, std::int64_t q) {
  const auto parts = [](std::int64_t whole, std::int64_t part) {
    return (whole + part - 1) / part;
  };
  const std::int64_t threads = at::get_num_threads();
  Cut cut;
  cut.blocks = std::max<std::int64_t>(1, parts(p * q, kResultValues));
  if (cut.blocks > threads) cut.blocks = parts(cut.blocks, threads) * threads;
  cut.block = std::max({parts(p, cut.blocks), std::min(p, kFewResultRows), std::int64_t{1}});
  cut.blocks = parts(p, cut.block);
  cut.shares = std::clamp<std::int64_t>(threads / std::max<std::int64_t>(1, cut.blocks), 1,
                                        std::max<std::int64_t>(1, examples));
  return cut;
}

}  // namespace

at::Tensor ExampleProducts(const at::Tensor& left, const at::Tensor& right,
                           const at::Tensor& squared) {
  at::Tensor products = at::empty({left.size(0), left.size(2), right.size(2)}, left.options());
  const std::int64_t size = left.size(2) * right.size(2);
  auto* norm = squared.mutable_data_ptr<double>();
  ParallelShares(left.size(0), [&](std::int64_t begin, std::int64_t end) {
    const at::NoGradGuard no_grad;
    for (std::int64_t example = begin; example < end; ++example) {
      at::Tensor product = products.select(0, example);
      at::cpu::mm_out(product, left.select(0, example).t(), right.select(0, example));
      norm[example] += SquaredNorm(product.const_data_ptr<float>(), size);
    }
  });
  return products;
}

at::Tensor SumOfExampleProducts(const at::Tensor& left, const at::Tensor& right,
                                const at::Tensor& more, bool wide) {
  const std::int64_t examples = left.size(0);
  const std::int64_t p = left.size(2);
  const std::int64_t q = right.size(2);
  const Cut cut = CutOf(examples, p, q);
  at::Tensor sums = at::empty({cut.shares, p, q}, left.options().dtype(at::kDouble));
  auto* totals = sums.mutable_data_ptr<double>();
  ParallelShares(cut.blocks * cut.shares, [&](std::int64_t begin, std::int64_t end) {
    const at::NoGradGuard no_grad;
    const at::Tensor products = at::empty({cut.block, q}, left.options());
    for (std::int64_t task = begin; task < end; ++task) {
      const std::int64_t share = task % cut.shares;
      const std::int64_t first = task / cut.shares * cut.block;
      const std::int64_t rows = std::min(cut.block, p - first);
      const auto size = static_cast<std::size_t>(rows * q);
      double* sum = totals + (share * p + first) * q;
      std::fill_n(sum, size, 0.0);
      at::Tensor product = products.narrow(0, 0, rows);
      const float* value = product.const_data_ptr<float>();
      for (std::int64_t example = share * examples / cut.shares;
           example < (share + 1) * examples / cut.shares; ++example) {
        at::cpu::mm_out(product, left.select(0, example).narrow(1, first, rows).t(),
                        right.select(0, example));
        for (std::size_t k = 0; k < size; ++k) sum[k] += static_cast<double>(value[k]);
      }
    }
  });
  at::Tensor total = sums.select(0, 0);
  for (std::int64_t share = 1; share < cut.shares; ++share) total.add_(sums.select(0, share));
  if (more.defined()) total.add_(more);
  return wide ? total : total.to(left.scalar_type());
}

}  // namespace sordino
