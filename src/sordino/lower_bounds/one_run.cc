#include "sordino/lower_bounds/one_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sordino/accounting/gaussian.h"
#include "sordino/base/error.h"
#include "sordino/lower_bounds/binomial.h"

namespace sordino {
namespace {

// Rounding of the special functions, so that a p-value is never too small.
constexpr double kRounding = 1e-10;
constexpr double kMaxEpsilon = 700;
constexpr double kMaxMu = 100;

// The largest mean of masses below v.
double LargestMean(const OneRun& run, double q, double beta) {
  const auto mean = [&](std::int64_t i) {
    if (i == 1) return BinomialMass(run.guesses, run.correct - 1, q);
    return (BinomialTail(run.guesses, run.correct - i, q) - beta) / static_cast<double>(i);
  };
  // The mean still rises at i where the next mass is above it.
  const auto rises = [&](std::int64_t i) {
    return BinomialMass(run.guesses, run.correct - i - 1, q) > mean(i);
  };
  std::int64_t low = 1;
  std::int64_t high = run.correct;
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    if (rises(middle)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return mean(low);
}

// Where a hypothesis that is rejected at 0 is no longer: at most `top`.
template <typename Rejects>
double FirstAccepted(double top, Rejects rejects) {
  if (!rejects(0)) return 0;
  double low = 0;
  double high = 1;
  for (; high < top && rejects(high); high *= 2) low = high;
  high = std::min(high, top);
  while (high - low > 1e-10 * high) {
    const double middle = 0.5 * (low + high);
    (rejects(middle) ? low : high) = middle;
  }
  return low;
}

double Accuracy(double epsilon) { return 1 / (1 + std::exp(-epsilon)); }

// Whether the p-value is at most s, with the search for the largest mean only where its bounds, 0
// and the mass of the mode, do not decide.
bool PValueIsAtMost(const OneRun& run, double epsilon, Delta delta, double s) {
  if (run.correct == 0) return false;
  const double q = Accuracy(epsilon);
  const double beta = BinomialTail(run.guesses, run.correct, q) * (1 + kRounding);
  if (beta > s) return false;
  const auto mode =
      std::min(run.guesses, static_cast<std::int64_t>(static_cast<double>(run.guesses + 1) * q));
  const double most = 2 * static_cast<double>(run.canaries) * delta.value() *
                      BinomialMass(run.guesses, mode, q) * (1 + kRounding);
  if (beta + most <= s) return true;
  return OneRunPValue(run, Epsilon(epsilon), delta) <= s;
}

void CheckSignificance(double significance) {
  CheckRange("the significance", significance, 0, true, 1, true);
}

}  // namespace

void CheckOneRun(const OneRun& run) {
  if (run.canaries < 1 || run.canaries > kMaxCanaries) {
    throw Error(fmt::format("the number of canaries is {}; give one from 1 to {}.", run.canaries,
                            kMaxCanaries));
  }
  if (run.guesses < 0 || run.guesses > run.canaries) {
    throw Error(fmt::format("there are {} guesses for {} canaries; at most one for each is made.",
                            run.guesses, run.canaries));
  }
  if (run.correct < 0 || run.correct > run.guesses) {
    throw Error(fmt::format("{} of {} guesses are right; at most all of them are.", run.correct,
                            run.guesses));
  }
}

double OneRunPValue(const OneRun& run, Epsilon epsilon, Delta delta) {
  CheckOneRun(run);
  if (run.correct == 0) return 1;
  const double q = Accuracy(epsilon.value());
  const double beta = BinomialTail(run.guesses, run.correct, q);
  double p = beta;
  if (delta.value() > 0) {
    p += 2 * static_cast<double>(run.canaries) * delta.value() * LargestMean(run, q, beta);
  }
  return std::min(1.0, p * (1 + kRounding));
}

double OneRunEpsilon(const OneRun& run, Delta delta, double significance) {
  CheckOneRun(run);
  CheckSignificance(significance);
  return FirstAccepted(kMaxEpsilon, [&](double epsilon) {
    return PValueIsAtMost(run, epsilon, delta, significance);
  });
}

bool OneRunRejectsGaussian(const OneRun& run, double mu, double significance) {
  CheckOneRun(run);
  CheckSignificance(significance);
  const auto guesses = static_cast<double>(run.guesses);
  const double share = guesses / static_cast<double>(run.canaries);
  const double right = static_cast<double>(run.correct);
  if (run.correct == 0) return false;
  double r = significance * share * right / guesses;
  double h = significance * share * (guesses - right) / guesses;
  for (std::int64_t i = run.correct - 1; i >= 0; --i) {
    if (r + h > share) return true;
    // What a set of probability r may have at least under the neighbour.
    const double moved = UpperTail(UpperQuantile(std::min(r, 1.0)) + mu);
    if (!(moved > h)) return false;  // nothing changes from here on
    const auto left = static_cast<double>(i);
    r += left / (guesses - left) * (moved - h);
    h = moved;
  }
  return r + h > share;
}

GaussianLowerBound GaussianBoundOf(double mu, Delta delta) {
  if (mu == 0) return {};
  if (delta.value() == 0) return {mu, kInfinity};
  return {mu, std::max(0.0, GaussianEpsilon(mu, std::log(delta.value())))};
}

GaussianLowerBound OneRunGaussian(const OneRun& run, Delta delta, double significance) {
  return GaussianBoundOf(
      FirstAccepted(kMaxMu,
                    [&](double at) { return OneRunRejectsGaussian(run, at, significance); }),
      delta);
}

}  // namespace sordino
