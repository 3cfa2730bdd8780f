#include "sordino/lower_bounds/one_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/math/tools/toms748_solve.hpp>
#include <cmath>
#include <cstdint>

#include "sordino/accounting/gaussian.h"
#include "sordino/base/error.h"
#include "sordino/lower_bounds/binomial.h"

namespace sordino {
namespace {

// Rounding of the special functions, so that a p-value is never too small.
constexpr double kRounding = 1e-10;
constexpr double kMaxEpsilon = 700;
constexpr double kMaxMu = 100;
constexpr double kLeastPValue = 1e-300;
constexpr std::int64_t kMaxScanned = 50'000;
constexpr double kLeastMass = 1e-250;  // so that ratios of masses are exact to rounding
constexpr std::uintmax_t kMaxEvaluations = 200;

// The largest mean of masses below v, of which the first is `mass`, one after the other. Each step
// rounds by less than 4 2^-53.
double ScannedMean(const OneRun& run, double q, double mass) {
  const auto guesses = static_cast<double>(run.guesses);
  double sum = mass;
  for (std::int64_t i = 1;; ++i) {
    const auto k = static_cast<double>(run.correct - i);  // the mass of k successes is in the sum
    const double mean = sum / static_cast<double>(i);
    mass *= k * (1 - q) / ((guesses - k + 1) * q);
    if (mass <= mean) return mean;
    sum += mass;
  }
}

// The same where v is far above the mode. Masses rise towards the mode, so the largest mean reaches
// at least that far, and how much farther is a few standard deviations.
double LargestMean(const OneRun& run, double q, double beta) {
  const auto mean = [&](std::int64_t i) {
    if (i == 1) return BinomialMass(run.guesses, run.correct - 1, q);
    return (BinomialTail(run.guesses, run.correct - i, q) - beta) / static_cast<double>(i);
  };
  // The mean still rises at i where the next mass is above it.
  const auto rises = [&](std::int64_t i) {
    return i < run.correct && BinomialMass(run.guesses, run.correct - i - 1, q) > mean(i);
  };
  const auto guesses = static_cast<double>(run.guesses);
  const auto mode = static_cast<std::int64_t>((guesses + 1) * q);
  const double first = mean(1);
  if (run.correct - mode < kMaxScanned && first > kLeastMass) return ScannedMean(run, q, first);
  std::int64_t low = std::clamp<std::int64_t>(run.correct - mode - 1, 1, run.correct);
  std::int64_t step = static_cast<std::int64_t>(std::sqrt(guesses * q * (1 - q))) + 1;
  std::int64_t high = low;
  while (rises(high)) {
    low = high + 1;
    high = std::min(run.correct, high + step);
    step *= 2;
  }
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    if (rises(middle)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return mean(high);
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
  // Above 0 where the p-value is larger than the significance; it rises with epsilon.
  const auto excess = [&](double epsilon) {
    return std::log(std::max(OneRunPValue(run, Epsilon(epsilon), delta), kLeastPValue) /
                    significance);
  };
  double low = 0;
  double at_low = excess(low);
  if (at_low > 0) return 0;
  double high = 1;
  double at_high = excess(high);
  for (; at_high <= 0 && high < kMaxEpsilon; high = std::min(2 * high, kMaxEpsilon)) {
    low = high;
    at_low = at_high;
    at_high = excess(std::min(2 * high, kMaxEpsilon));
  }
  if (at_high <= 0) return kMaxEpsilon;
  if (at_low == 0) return low;
  std::uintmax_t evaluations = kMaxEvaluations;
  return boost::math::tools::toms748_solve(
             excess, low, high, at_low, at_high,
             [](double a, double b) { return b - a <= 1e-10 * b; }, evaluations)
      .first;
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
    const double ratio = left / (guesses - left);
    const double grown = moved - h;
    // Ratios fall from here on, and where r is below 1/2 a set of it moves by no more than itself
    // (its derivative is e^(mu z - mu^2 / 2) at z = Phi^-1(r) <= 0), so what h grows by falls at
    // least as fast as their powers. Runs that prove nothing end here and not after all guesses.
    if (ratio < 1) {
      const double end = r + ratio * grown / (1 - ratio);
      if (end <= 0.5 && end + h + grown / (1 - ratio) <= share) return false;
    }
    r += ratio * grown;
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
