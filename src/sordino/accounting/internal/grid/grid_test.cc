#include "sordino/accounting/internal/grid/grid.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "sordino/accounting/gaussian.h"
#include "sordino/accounting/internal/engines/exact_release.h"
#include "sordino/accounting/internal/pairs/dominating_pair.h"
#include "sordino/accounting/testing/engine_test_support.h"

namespace sordino {
namespace {

using testing::LaplacePair;
using testing::Remove;

Interval Epsilon2(std::span<const CountedPair> pairs, double delta) {
  const double log_delta = std::log(delta);
  return {std::max(GridEpsilon(pairs, log_delta, Bound::kLower),
                   GridEpsilon(pairs, log_delta, Bound::kSpread)),
          GridEpsilon(pairs, log_delta, Bound::kUpper)};
}

Interval LogDelta2(std::span<const CountedPair> pairs, double epsilon) {
  return {std::max(GridLogDelta(pairs, epsilon, Bound::kLower),
                   GridLogDelta(pairs, epsilon, Bound::kSpread)),
          GridLogDelta(pairs, epsilon, Bound::kUpper)};
}

// delta(epsilon) of k-fold randomised response with odds e^a: a binomial sum in long double.
double ResponseDelta(double a, int k, double at_epsilon) {
  const auto epsilon = static_cast<long double>(at_epsilon);
  const long double high = 1 / (1 + std::exp(-static_cast<long double>(a)));
  long double sum = 0;
  for (int i = 0; i <= k; ++i) {
    const long double loss = static_cast<long double>(a) * (2 * i - k);
    if (!(loss > epsilon)) continue;
    const long double log_mass = std::lgamma(k + 1.0L) - std::lgamma(i + 1.0L) -
                                 std::lgamma(k - i + 1.0L) + i * std::log(high) +
                                 (k - i) * std::log1p(-high);
    sum -= std::exp(log_mass) * std::expm1(epsilon - loss);
  }
  return static_cast<double>(sum);
}

TEST(Grid, RandomisedResponseMatchesBinomialSums) {
  for (const double a : {0.05, 0.8, 3.0}) {
    for (const int k : {2, 7, 60, 1000}) {
      const LossPair pair = DominatingPairsOf(Event::Pure(Epsilon(a))).upper.front();
      const std::vector<CountedPair> pairs = {{pair, static_cast<std::uint64_t>(k)}};
      for (const double share : {0.0, 0.02, 0.2, 0.5}) {
        const double epsilon = share * a * k + 0.1 * a;
        const double exact = ResponseDelta(a, k, epsilon);
        if (!(exact > 1e-280)) continue;
        const Interval log_delta = LogDelta2(pairs, epsilon);
        EXPECT_LE(log_delta.lower, std::log(exact) + 1e-12) << a << " " << k << " " << share;
        EXPECT_GE(log_delta.upper, std::log(exact) - 1e-12) << a << " " << k << " " << share;
        EXPECT_LE(log_delta.upper - log_delta.lower, 5e-3) << a << " " << k << " " << share;
      }
    }
  }
}

// Two Laplace releases: delta = integral over the first loss of the closed form of the second.
double TwoLaplaceDelta(double scale, double epsilon) {
  const double a = 1 / scale;
  const auto one = [&](double e) {  // delta of one release at any real epsilon
    if (e >= a) return 0.0;
    if (e >= -a) return -std::expm1((e - a) / 2);
    return -std::expm1(e);
  };
  // Loss a with mass 1/2, -a with mass e^{-a}/2, density e^{(l - a)/2} / 4 between.
  double sum = 0.5 * one(epsilon - a) + 0.5 * std::exp(-a) * one(epsilon + a);
  constexpr int kPanels = 200000;
  for (int i = 0; i < kPanels; ++i) {
    const double l = -a + 2 * a * (i + 0.5) / kPanels;
    sum += 2 * a / kPanels * 0.25 * std::exp((l - a) / 2) * one(epsilon - l);
  }
  return sum;
}

TEST(Grid, TwoLaplaceReleasesMatchDirectConvolution) {
  for (const double scale : {0.4, 1.0, 5.0}) {
    const std::vector<CountedPair> pairs = {
        {LaplacePair(scale, 1, LaplaceDensity::Direction::kRemove), 2}};
    for (const double share : {0.0, 0.3, 0.7, 0.95}) {
      const double epsilon = share * 2 / scale;
      const double exact = TwoLaplaceDelta(scale, epsilon);
      const Interval log_delta = LogDelta2(pairs, epsilon);
      EXPECT_LE(log_delta.lower, std::log(exact) + 1e-8) << scale << " " << share;
      EXPECT_GE(log_delta.upper, std::log(exact) - 1e-8) << scale << " " << share;
      EXPECT_LE(log_delta.upper - log_delta.lower, 1e-4) << scale << " " << share;
    }
  }
}

// All sums of k integer noises: brute force over the losses, merged where equal.
TEST(Grid, DiscreteLaplaceMatchesBruteForceConvolution) {
  const double scale = 1.7;
  const LossPair pair = DominatingPairsOf(Event::DiscreteLaplace(scale, 2)).upper.front();
  std::map<long long, std::pair<double, long double>> sums = {{0, {0, 1}}};
  for (int k = 1; k <= 5; ++k) {
    std::map<long long, std::pair<double, long double>> next;
    for (const auto& [key, sum] : sums) {
      for (const LossAtom& atom : pair.atoms) {
        const double loss = sum.first + atom.loss;
        auto& slot = next[std::llround(loss * 1e9)];
        slot.first = loss;
        slot.second += sum.second * static_cast<long double>(atom.mass);
      }
    }
    sums = std::move(next);
    const std::vector<CountedPair> pairs = {{pair, static_cast<std::uint64_t>(k)}};
    for (const double epsilon : {0.0, 0.5, 1.5, 1.17 * k}) {
      long double exact = 0;
      for (const auto& [key, sum] : sums) {
        if (sum.first > epsilon)
          exact -= sum.second * static_cast<long double>(std::expm1(epsilon - sum.first));
      }
      if (!(exact > 1e-12L)) continue;
      const Interval log_delta = LogDelta2(pairs, epsilon);
      const auto log_exact = static_cast<double>(std::log(exact));
      EXPECT_LE(log_delta.lower, log_exact + 1e-10) << k << " " << epsilon;
      EXPECT_GE(log_delta.upper, log_exact - 1e-10) << k << " " << epsilon;
      EXPECT_LE(log_delta.upper - log_delta.lower, 1e-3) << k << " " << epsilon;
    }
  }
}

TEST(Grid, GaussianMatchesTheClosedForm) {
  LossPair gaussian;
  gaussian.gaussian_mu = 0.3;
  for (const std::uint64_t steps : {1, 50}) {
    const std::vector<CountedPair> pairs = {{gaussian, steps}};
    const double mu = 0.3 * std::sqrt(static_cast<double>(steps));
    for (const double delta : {1e-2, 1e-6, 1e-30, 1e-200}) {
      const double exact = GaussianEpsilon(mu, std::log(delta));
      const Interval epsilon = Epsilon2(pairs, delta);
      EXPECT_LE(epsilon.lower, exact * (1 + 1e-12)) << steps << " " << delta;
      EXPECT_GE(epsilon.upper, exact * (1 - 1e-12)) << steps << " " << delta;
      EXPECT_LE(epsilon.upper - epsilon.lower, 2e-5 * exact) << steps << " " << delta;
    }
  }
}

TEST(Grid, OneStepMatchesTheExactRelease) {
  const std::vector<std::pair<std::string, LossPair>> pairs = {
      {"remove", FromDensity(Remove(0.2, 1))},
      {"laplace", LaplacePair(0.5, 0.3, LaplaceDensity::Direction::kAdd)},
      {"discrete Gaussian", DominatingPairsOf(Event::DiscreteGaussian(4, 1)).upper.front()},
      {"fixed",
       DominatingPairsOf(Event::Fixed(SamplingRate(0.2),
                                      Event::Gaussian(NoiseMultiplier(1), Adjacency::kReplaceOne)))
           .upper.front()}};
  for (const auto& [name, pair] : pairs) {
    const std::vector<CountedPair> once = {{pair, 1}};
    for (const double epsilon : {0.05, 0.2, 0.3}) {
      const double exact = ExactLogDelta(pair, epsilon);
      if (!std::isfinite(exact)) continue;
      const Interval log_delta = LogDelta2(once, epsilon);
      EXPECT_LE(log_delta.lower, exact + 1e-11) << name << " " << epsilon;
      EXPECT_GE(log_delta.upper, exact - 1e-11) << name << " " << epsilon;
      EXPECT_LE(log_delta.upper - log_delta.lower, 1e-2) << name << " " << epsilon;
    }
  }
}

TEST(Grid, MassAtInfinityComposes) {
  const LossPair pair = DominatingPairsOf(Event::Approximate(Epsilon(0.5), Delta(1e-3))).upper[0];
  const std::vector<CountedPair> pairs = {{pair, 20}};
  const double leaked = -std::expm1(20 * std::log1p(-1e-3));
  // Beyond the largest loss only the leak is left.
  const Interval log_delta = LogDelta2(pairs, 10.5);
  EXPECT_NEAR(std::exp(log_delta.upper), leaked, 1e-9);
  EXPECT_NEAR(std::exp(log_delta.lower), leaked, 1e-9);
  EXPECT_TRUE(std::isinf(GridEpsilon(pairs, std::log(0.99 * leaked), Bound::kUpper)));
  EXPECT_TRUE(std::isfinite(GridEpsilon(pairs, std::log(1.01 * leaked), Bound::kUpper)));
}

TEST(Grid, DeltaAndEpsilonAreInverse) {
  const std::vector<CountedPair> pairs = {
      {LaplacePair(2, 0.3, LaplaceDensity::Direction::kRemove), 30},
      {DominatingPairsOf(Event::DiscreteGaussian(5, 1)).upper.front(), 4}};
  for (const double delta : {1e-3, 1e-8, 1e-40}) {
    const Interval epsilon = Epsilon2(pairs, delta);
    EXPECT_LE(LogDelta2(pairs, epsilon.upper).lower, std::log(delta) + 1e-9) << delta;
    EXPECT_GE(LogDelta2(pairs, epsilon.lower).upper, std::log(delta) - 1e-9) << delta;
  }
}

// Bounded losses whose best tilt is infinite: the lower end must not collapse to zero.
TEST(Grid, LowerEndReachesTheLargestLossOfADiscreteRelease) {
  const LossPair pair = DominatingPairsOf(Event::DiscreteLaplace(1.061, 1)).upper.front();
  const std::vector<CountedPair> pairs = {{pair, 24}};
  const double largest = 24 * LargestLoss(pair);
  const Interval epsilon = Epsilon2(pairs, 1e-9);
  EXPECT_GE(epsilon.lower, 0.999 * largest);
  EXPECT_LE(epsilon.lower, largest);
}

// One profile is asked from both ends, so that most points are read off grids that were tilted for
// another one.
TEST(Grid, ProfilesHoldAtEveryPoint) {
  for (const double a : {0.05, 0.8}) {
    for (const int k : {7, 60}) {
      const LossPair pair = DominatingPairsOf(Event::Pure(Epsilon(a))).upper.front();
      const std::vector<CountedPair> pairs = {{pair, static_cast<std::uint64_t>(k)}};
      for (const bool rising : {true, false}) {
        GridProfile upper(pairs, Bound::kUpper, Effort::kFull);
        GridProfile lower(pairs, Bound::kLower, Effort::kFull);
        constexpr int kPoints = 200;
        for (int i = 0; i <= kPoints; ++i) {
          const double share = static_cast<double>(rising ? i : kPoints - i) / kPoints;
          const double epsilon = 0.6 * a * k * share;
          const double exact = std::log(ResponseDelta(a, k, epsilon));
          EXPECT_GE(upper.LogDelta(epsilon), exact - 1e-12) << a << " " << k << " " << epsilon;
          EXPECT_LE(upper.LogDelta(epsilon), exact + 5e-3) << a << " " << k << " " << epsilon;
          EXPECT_LE(lower.LogDelta(epsilon), exact + 1e-12) << a << " " << k << " " << epsilon;
        }
        EXPECT_LE(upper.grids(), 12) << a << " " << k;
      }
    }
  }
}

}  // namespace
}  // namespace sordino
