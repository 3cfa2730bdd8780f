#include "sordino/accounting/internal/engines/exact_release.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "sordino/accounting/gaussian.h"
#include "sordino/accounting/internal/pairs/dominating_pair.h"
#include "sordino/accounting/testing/engine_test_support.h"

namespace sordino {
namespace {

using testing::Add;
using testing::LaplacePair;
using testing::Remove;
using testing::Replace;

long double UpperTail(long double z) {
  return 0.5L * std::erfc(z / std::numbers::sqrt2_v<long double>);
}

struct HockeyStick {
  double delta;
  double rounding;  // what the difference of the two probabilities may have lost
};

// Neyman-Pearson: delta = P(x > t) - e^epsilon Q(x > t), where the loss at t is epsilon.
HockeyStick SampledRemove(double rate, double sigma, double epsilon) {
  const auto q = static_cast<long double>(rate);
  const auto s = static_cast<long double>(sigma);
  const long double z = std::log((std::expm1(static_cast<long double>(epsilon)) + q) / q);
  const long double t = z * s * s + 0.5L;
  const long double p = (1 - q) * UpperTail(t / s) + q * UpperTail((t - 1) / s);
  const long double reference = std::exp(static_cast<long double>(epsilon)) * UpperTail(t / s);
  return {static_cast<double>(p - reference), static_cast<double>(p) * 1e-15};
}

// x is N(0, sigma^2) under P and has mass q at 1 under Q: the loss exceeds epsilon left of t.
HockeyStick SampledAdd(double rate, double sigma, double epsilon) {
  const auto q = static_cast<long double>(rate);
  const auto s = static_cast<long double>(sigma);
  const long double rest = std::expm1(-static_cast<long double>(epsilon)) + q;
  if (rest <= 0) return {0, 0};
  const long double t = std::log(rest / q) * s * s + 0.5L;
  const long double p = UpperTail(-t / s);
  const long double reference = std::exp(static_cast<long double>(epsilon)) *
                                ((1 - q) * UpperTail(-t / s) + q * UpperTail((1 - t) / s));
  return {static_cast<double>(p - reference), static_cast<double>(p) * 1e-15};
}

TEST(ExactRelease, MatchesTheHockeyStickOfTheSampledGaussian) {
  int resolved = 0;
  for (const double rate : {1e-6, 0.01, 0.3, 0.8}) {
    for (const double sigma : {0.1, 0.5, 1.0, 4.0, 50.0}) {
      for (const double epsilon : {0.0, 1e-4, 0.01, 0.1, 1.0, 4.0}) {
        const HockeyStick remove = SampledRemove(rate, sigma, epsilon);
        const HockeyStick add = SampledAdd(rate, sigma, epsilon);
        EXPECT_NEAR(std::exp(ExactLogDelta(FromDensity(Remove(rate, sigma)), epsilon)),
                    remove.delta, 2e-12 * remove.delta + remove.rounding)
            << rate << " " << sigma << " " << epsilon;
        EXPECT_NEAR(std::exp(ExactLogDelta(FromDensity(Add(rate, sigma)), epsilon)), add.delta,
                    2e-12 * add.delta + add.rounding)
            << rate << " " << sigma << " " << epsilon;
        resolved += remove.delta > 1e4 * remove.rounding ? 1 : 0;
      }
    }
  }
  EXPECT_GT(resolved, 50);
}

TEST(ExactRelease, OneFullShiftIsTheGaussianMechanism) {
  using Parts = GaussianMixtureDensity::Parts;
  for (const double sigma : {0.1, 1.0, 30.0}) {
    const LossPair pair =
        FromDensity(std::make_shared<GaussianMixtureDensity>(sigma, Parts{{1, 1}}, Parts{{0, 1}}));
    for (const double deviations : {0.0, 0.5, 3.0, 10.0, 30.0}) {
      const double epsilon = 0.5 / (sigma * sigma) + deviations / sigma;
      const double log_delta = GaussianLogDelta(1 / sigma, epsilon);
      EXPECT_NEAR(ExactLogDelta(pair, epsilon), log_delta, 2e-12 + 4e-15 * std::abs(log_delta))
          << sigma << " " << deviations;
    }
  }
}

TEST(ExactRelease, ReplaceOneDominatesBothSampledDirections) {
  for (const double epsilon : {0.0, 0.1, 1.0, 3.0}) {
    const double replace = ExactLogDelta(FromDensity(Replace(0.2, 1)), epsilon);
    EXPECT_GT(replace, ExactLogDelta(FromDensity(Remove(0.2, 1)), epsilon));
    EXPECT_GT(replace, ExactLogDelta(FromDensity(Add(0.2, 1)), epsilon));
  }
}

TEST(ExactRelease, MatchesTheLaplaceClosedForm) {
  for (const double scale : {0.1, 1.0, 20.0}) {
    const LossPair pair = LaplacePair(scale, 1, LaplaceDensity::Direction::kRemove);
    for (const double share : {0.0, 0.3, 0.9, 0.999}) {
      const double epsilon = share / scale;
      const double delta = -std::expm1((epsilon - 1 / scale) / 2);
      EXPECT_NEAR(std::exp(ExactLogDelta(pair, epsilon)), delta, 2e-12 * delta)
          << scale << " " << share;
    }
    EXPECT_EQ(ExactLogDelta(pair, 1 / scale), -kInfinity);
    EXPECT_DOUBLE_EQ(LargestLoss(pair), 1 / scale);
  }
}

// sum over x of (f(x - shift) - e^epsilon f(x))_+, smallest terms first.
template <typename Mass>
double DirectSum(Mass f, int shift, double epsilon, int reach) {
  long double sum = 0;
  for (int x = reach; x >= -reach; --x) {
    const long double term = f(x - shift) - std::exp(static_cast<long double>(epsilon)) * f(x);
    if (term > 0) sum += term;
  }
  return static_cast<double>(sum);
}

TEST(ExactRelease, DiscreteGaussianMatchesTheDirectSum) {
  for (const double sigma : {0.3, 1.0, 7.0}) {
    const int reach = 40 + static_cast<int>(40 * sigma);
    const auto weight = [&](int x) {
      return std::exp(-0.5L * x * x /
                      (static_cast<long double>(sigma) * static_cast<long double>(sigma)));
    };
    long double total = 0;
    for (int x = reach; x >= 1; --x) total += 2 * weight(x);
    total += 1;
    for (const int shift : {1, 3}) {
      const Event event = Event::DiscreteGaussian(sigma, static_cast<std::uint64_t>(shift));
      const LossPair pair = DominatingPairsOf(event).upper.front();
      for (const double epsilon : {0.0, 0.2, 1.03, 2.47}) {
        const double delta =
            DirectSum([&](int x) { return weight(x) / total; }, shift, epsilon, reach);
        EXPECT_NEAR(std::exp(ExactLogDelta(pair, epsilon)), delta, 2e-12 * delta)
            << sigma << " " << shift << " " << epsilon;
      }
    }
  }
}

TEST(ExactRelease, DiscreteLaplaceMatchesTheDirectSum) {
  for (const double scale : {0.4, 2.0, 11.0}) {
    const int reach = 60 + static_cast<int>(60 * scale);
    const long double a = std::exp(-1 / static_cast<long double>(scale));
    const auto f = [&](int x) { return (1 - a) / (1 + a) * std::pow(a, std::abs(x)); };
    for (const int shift : {1, 4}) {
      const Event event = Event::DiscreteLaplace(scale, static_cast<std::uint64_t>(shift));
      const LossPair pair = DominatingPairsOf(event).upper.front();
      for (const double share : {0.0, 0.3, 0.8}) {
        const double epsilon = share * shift / scale;
        const double delta = DirectSum(f, shift, epsilon, reach);
        EXPECT_NEAR(std::exp(ExactLogDelta(pair, epsilon)), delta, 1e-12 * delta)
            << scale << " " << shift << " " << share;
      }
    }
  }
}

TEST(ExactRelease, EpsilonInvertsDelta) {
  const std::vector<LossPair> pairs = {
      FromDensity(Remove(0.1, 0.7)), FromDensity(Add(0.1, 0.7)), FromDensity(Replace(0.3, 2)),
      LaplacePair(0.5, 0.2, LaplaceDensity::Direction::kRemove),
      DominatingPairsOf(Event::DiscreteGaussian(2, 1)).upper.front()};
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    for (const double log_delta : {-3.0, -8.0, -30.0, -500.0}) {
      const double epsilon = ExactEpsilon(pairs[i], log_delta);
      if (epsilon == 0) {
        EXPECT_LE(ExactLogDelta(pairs[i], 0), log_delta) << i;
        continue;
      }
      EXPECT_LE(ExactLogDelta(pairs[i], epsilon * (1 + 1e-12)), log_delta + 1e-9) << i;
      EXPECT_GE(ExactLogDelta(pairs[i], epsilon * (1 - 1e-9)), log_delta) << i;
    }
  }
}

TEST(ExactRelease, MassAtInfinityIsNeverGivenBack) {
  const LossPair pair = DominatingPairsOf(Event::Approximate(Epsilon(1), Delta(1e-3))).upper[0];
  EXPECT_NEAR(std::exp(ExactLogDelta(pair, 1)), 1e-3, 1e-15);
  EXPECT_NEAR(std::exp(ExactLogDelta(pair, 50)), 1e-3, 1e-15);
  EXPECT_TRUE(std::isinf(ExactEpsilon(pair, std::log(0.9e-3))));
  EXPECT_NEAR(ExactEpsilon(pair, std::log(1e-3 * (1 + 1e-9))), 1, 1e-5);
  EXPECT_TRUE(std::isinf(LargestLoss(pair)));
}

}  // namespace
}  // namespace sordino
