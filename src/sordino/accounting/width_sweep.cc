// How narrow and how fast the certified interval is: random questions, and how many are answered.
//
//   width_sweep [--events all|sampled-gaussian] [--questions 2000] [--seed 1] [--list 1]
//
// `all` asks about events of every kind under every adjacency (testing/random_event.h) and reports
// each kind by itself. `sampled-gaussian` asks about Poisson-sampled Gaussians over the declared
// ranges: noise 0.2 to 20, rate 1e-8 to 1, steps 1 to 10^8, delta 1e-12 to 1e-3, all spread evenly
// over their logarithms, under add-remove.
//
// A question counts as answered when the interval is narrower than 1 % of its upper end, or both
// ends are 0 or infinite, in less than a second of processor time. With `--list 1` the open ones
// are listed.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "sordino/accounting/accountant.h"
#include "sordino/accounting/testing/random_event.h"

namespace sordino {
namespace {

struct Asked {
  Event event = Event::None();
  double delta = 0;
};

double LogUniform(std::mt19937_64& random, double low, double high) {
  const double share = static_cast<double>(random() >> 11) * 0x1p-53;
  return std::exp(std::log(low) + share * (std::log(high) - std::log(low)));
}

Asked SampledGaussian(std::mt19937_64& random) {
  const double noise = LogUniform(random, 0.2, 20);
  const double rate = LogUniform(random, 1e-8, 1);
  const auto steps = static_cast<std::uint64_t>(std::llround(LogUniform(random, 1, 1e8)));
  const double delta = LogUniform(random, 1e-12, 1e-3);
  return {Event::Repeat(Event::Poisson(SamplingRate(rate), Event::Gaussian(NoiseMultiplier(noise))),
                        steps),
          delta};
}

Asked AnyEvent(std::mt19937_64& random) {
  Event event = testing::RandomEvent(random);
  return {std::move(event), testing::RandomDelta(random)};
}

// "poisson laplace", "parallel", "compose"; replace-one has pairs of its own below samplers.
std::string KindOf(const Event& event) {
  const auto parts = event.Flatten();
  if (parts.size() > 1) return "compose";
  if (parts.empty()) return "none";
  const Event& one = parts[0].first;
  std::string name(one.name());
  if (one.children().empty() || one.IsParallel()) return name;
  name += " " + std::string(one.children()[0].first.name());
  return event.adjacency() == Adjacency::kReplaceOne ? name + ", replace-one" : name;
}

// The ends are 0, or nothing bounds the loss and the report proves that.
double WidthOf(Interval value) {
  if (value.upper == 0 || value.lower == value.upper) return 0;
  return std::isinf(value.upper) ? 1 : (value.upper - value.lower) / value.upper;
}

struct Tally {
  int answered = 0;
  std::vector<double> times;
  std::vector<double> widths;

  void Add(double width, double took) {
    answered += width < 0.01 && took < 1 ? 1 : 0;
    widths.push_back(width);
    times.push_back(took);
  }
  void Print(const std::string& name) {
    std::sort(times.begin(), times.end());
    std::sort(widths.begin(), widths.end());
    const auto at = [](const std::vector<double>& sorted, double share) {
      return sorted[static_cast<std::size_t>(share * static_cast<double>(sorted.size() - 1))];
    };
    std::printf("%-40s %5d of %5zu  width %8.2g %8.2g %8.2g  seconds %.3f %.3f %.3f\n",
                name.c_str(), answered, times.size(), at(widths, 0.5), at(widths, 0.99),
                widths.back(), at(times, 0.5), at(times, 0.99), times.back());
  }
};

int Sweep(bool all_kinds, int questions, std::uint64_t seed, bool list) {
  std::map<std::string, Tally> kinds;
  Tally all;
  for (int i = 0; i < questions; ++i) {
    std::mt19937_64 random(seed + static_cast<std::uint64_t>(i));
    const Asked asked = all_kinds ? AnyEvent(random) : SampledGaussian(random);
    const std::clock_t start = std::clock();
    const AccountReport report = Account(asked.event, Delta(asked.delta));
    const double took = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    const double width = WidthOf(report.value);
    kinds[KindOf(asked.event)].Add(width, took);
    all.Add(width, took);
    if (list && !(width < 0.01 && took < 1)) {
      std::printf("open: %s, delta %g: %g to %g, %.2f s\n",
                  asked.event.ToString().substr(0, 30000).c_str(), asked.delta, report.value.lower,
                  report.value.upper, took);
      std::fflush(stdout);
    }
  }
  std::printf("answered; width and seconds: median, 99 %%, largest\n");
  for (auto& [name, tally] : kinds) tally.Print(name);
  all.Print("all");
  std::printf("%.2f %% answered\n", 100.0 * all.answered / questions);
  return 0;
}

}  // namespace
}  // namespace sordino

int main(int argc, char** argv) {
  bool all_kinds = true;
  int questions = 2000;
  std::uint64_t seed = 1;
  bool list = false;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i];
    if (flag == "--events") all_kinds = std::string(argv[i + 1]) == "all";
    if (flag == "--questions") questions = std::max(1, std::atoi(argv[i + 1]));
    if (flag == "--seed") seed = std::strtoull(argv[i + 1], nullptr, 10);
    if (flag == "--list") list = std::string(argv[i + 1]) == "1";
  }
  return sordino::Sweep(all_kinds, questions, seed, list);
}
