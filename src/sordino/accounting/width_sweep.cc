// How narrow and how fast the certified interval is over the declared ranges: random questions
// about Poisson-sampled Gaussians, noise 0.2 to 20, rate 1e-8 to 1, steps 1 to 10^8, delta 1e-12 to
// 1e-3, all spread evenly over their logarithms, under add-remove.
//
//   width_sweep [--questions 2000] [--seed 1]
//
// A question counts as answered when the interval is narrower than 1 % of its upper end, or the
// upper end is 0, in less than a second of processor time. The open ones are listed.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <random>
#include <string>
#include <vector>

#include "sordino/accounting/accountant.h"

namespace sordino {
namespace {

double LogUniform(std::mt19937_64& random, double low, double high) {
  const double share = static_cast<double>(random() >> 11) * 0x1p-53;
  return std::exp(std::log(low) + share * (std::log(high) - std::log(low)));
}

double ProcessorSeconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

int Sweep(int questions, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<double> times;
  std::vector<double> widths;
  int answered = 0;
  for (int i = 0; i < questions; ++i) {
    const double noise = LogUniform(random, 0.2, 20);
    const double rate = LogUniform(random, 1e-8, 1);
    const auto steps = static_cast<std::uint64_t>(std::llround(LogUniform(random, 1, 1e8)));
    const double delta = LogUniform(random, 1e-12, 1e-3);
    const Event event = Event::Repeat(
        Event::Poisson(SamplingRate(rate), Event::Gaussian(NoiseMultiplier(noise))), steps);
    const double start = ProcessorSeconds();
    const Interval value = Account(event, Delta(delta)).value;
    const double took = ProcessorSeconds() - start;
    const double width = value.upper > 0 ? (value.upper - value.lower) / value.upper : 0;
    times.push_back(took);
    widths.push_back(width);
    if (width < 0.01 && took < 1) {
      ++answered;
    } else {
      std::printf("open: %s, delta %g: %g to %g, %.2f s\n", event.ToString().c_str(), delta,
                  value.lower, value.upper, took);
    }
  }
  std::sort(times.begin(), times.end());
  std::sort(widths.begin(), widths.end());
  const auto at = [&](const std::vector<double>& sorted, double share) {
    return sorted[static_cast<std::size_t>(share * static_cast<double>(sorted.size() - 1))];
  };
  std::printf("%d of %d answered (%.2f %%)\n", answered, questions, 100.0 * answered / questions);
  std::printf("width: median %.2g, 99 %% %.2g, largest %.2g\n", at(widths, 0.5), at(widths, 0.99),
              widths.back());
  std::printf("seconds: median %.3f, 99 %% %.3f, largest %.3f\n", at(times, 0.5), at(times, 0.99),
              times.back());
  return 0;
}

}  // namespace
}  // namespace sordino

int main(int argc, char** argv) {
  int questions = 2000;
  std::uint64_t seed = 1;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i];
    if (flag == "--questions") questions = std::atoi(argv[i + 1]);
    if (flag == "--seed") seed = std::strtoull(argv[i + 1], nullptr, 10);
  }
  return sordino::Sweep(questions, seed);
}
