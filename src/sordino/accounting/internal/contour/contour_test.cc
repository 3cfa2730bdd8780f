#include "sordino/accounting/internal/contour/contour.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "sordino/accounting/gaussian.h"
#include "sordino/accounting/internal/grid/grid.h"
#include "sordino/accounting/internal/pairs/dominating_pair.h"
#include "sordino/accounting/testing/engine_test_support.h"

namespace sordino {
namespace {

using testing::Add;
using testing::Remove;
using testing::Replace;

enum class Kind { kRemove, kAdd, kReplace };

LossPair MakePair(Kind kind, double rate, double sigma) {
  if (kind == Kind::kRemove) return FromDensity(Remove(rate, sigma));
  if (kind == Kind::kAdd) return FromDensity(Add(rate, sigma));
  return FromDensity(Replace(rate, sigma));
}

std::vector<CountedPair> Composition(Kind kind, double rate, double sigma, std::uint64_t steps) {
  return {{MakePair(kind, rate, sigma), steps}};
}

struct Truth {
  Kind kind;
  double rate;
  double sigma;
  std::uint64_t steps;
  double delta;
  double epsilon;
};

// Computed once with mpmath at 40 digits by formula (1) of contour.h, with trapezoidal sums in both
// variables whose steps were refined (x: a sixth and a ninth of the scale; y: period times 1.3)
// until 15 digits stood; nothing of this library took part.
constexpr Truth kTruths[] = {
    {Kind::kRemove, 1e-5, 1, 10000000, 1e-8, 0.19641841672513586},
    {Kind::kRemove, 0.01, 1, 10000, 1e-6, 6.9073844950450821},
    {Kind::kRemove, 0.01, 4, 10000, 1e-5, 0.94686680076438039},
    {Kind::kAdd, 0.01, 1, 10000, 1e-6, 6.2074843787942274},
    {Kind::kRemove, 0.001, 1, 1000000, 1e-6, 6.69427265972102},
    {Kind::kRemove, 0.00033, 4, 10000, 1.1e-18, 0.067213614105919156},
    {Kind::kReplace, 0.01, 2, 10000, 1e-6, 4.9073981921735107},
    {Kind::kRemove, 0.001, 10, 1000, 1e-6, 0.0097373555461063768},
    {Kind::kRemove, 0.1, 3, 512, 1e-6, 3.7696838052121222},
    {Kind::kRemove, 0.04, 1.5, 2249, 1e-5, 6.7670441058166686},
    {Kind::kRemove, 0.5, 2, 100, 1e-10, 20.515250433435758},
    {Kind::kAdd, 0.5, 2, 100, 1e-10, 16.623180657002931},
    {Kind::kReplace, 0.2, 3, 300, 1e-7, 14.026142269053021},
    {Kind::kRemove, 0.2, 0.8, 50, 1e-5, 15.161711675782296},
    {Kind::kRemove, 0.02, 10, 1000000, 1e-12, 15.690121560731677},
    {Kind::kRemove, 0.3, 20, 10000, 1e-30, 18.082904734901122},
    {Kind::kAdd, 0.05, 5, 2000, 1e-3, 1.1872527235474602},
    {Kind::kRemove, 0.9, 1.2, 64, 1e-4, 40.586168619799004},
    {Kind::kRemove, 0.01, 1, 1000000, 1e-6, 145.49683551151388},
};

TEST(Contour, ContainsValuesComputedInHighPrecision) {
  for (const Truth& truth : kTruths) {
    const auto pairs = Composition(truth.kind, truth.rate, truth.sigma, truth.steps);
    const auto epsilon = ContourEpsilon(pairs, std::log(truth.delta));
    ASSERT_TRUE(epsilon) << truth.rate << " " << truth.sigma << " " << truth.steps;
    EXPECT_LE(epsilon->lower, truth.epsilon * (1 + 1e-15)) << truth.rate << " " << truth.sigma;
    EXPECT_GE(epsilon->upper, truth.epsilon * (1 - 1e-15)) << truth.rate << " " << truth.sigma;
    EXPECT_LE(epsilon->upper - epsilon->lower, 1e-7 * truth.epsilon)
        << truth.rate << " " << truth.sigma;
    const auto log_delta = ContourLogDelta(pairs, truth.epsilon);
    ASSERT_TRUE(log_delta);
    EXPECT_LE(log_delta->lower, std::log(truth.delta) + 1e-14);
    EXPECT_GE(log_delta->upper, std::log(truth.delta) - 1e-14);
  }
}

TEST(Contour, PureGaussiansMatchTheClosedForm) {
  LossPair gaussian;
  gaussian.gaussian_mu = 0.25;
  for (const std::uint64_t steps : {1, 40, 3000}) {
    const std::vector<CountedPair> pairs = {{gaussian, steps}};
    const double mu = 0.25 * std::sqrt(static_cast<double>(steps));
    for (const double delta : {0.1, 1e-6, 1e-100, 1e-300}) {
      const double exact = GaussianEpsilon(mu, std::log(delta));
      const auto epsilon = ContourEpsilon(pairs, std::log(delta));
      ASSERT_TRUE(epsilon) << steps << " " << delta;
      EXPECT_LE(epsilon->lower, exact * (1 + 1e-12)) << steps << " " << delta;
      EXPECT_GE(epsilon->upper, exact * (1 - 1e-12)) << steps << " " << delta;
      EXPECT_LE(epsilon->upper - epsilon->lower, 1e-9 * exact + 1e-15) << steps << " " << delta;
    }
  }
}

struct DrawnPair {
  std::vector<CountedPair> pairs;
  double log_delta;
};

// Few or sparse steps have no contour certificate; the grid answers all.
DrawnPair Draw(std::mt19937_64& engine) {
  const auto log_uniform = [&](double low, double high) {
    return std::exp(std::uniform_real_distribution<double>(std::log(low), std::log(high))(engine));
  };
  DrawnPair drawn;
  const int groups = std::uniform_int_distribution<int>(1, 2)(engine);
  const auto kind = static_cast<Kind>(std::uniform_int_distribution<int>(0, 2)(engine));
  for (int g = 0; g < groups; ++g) {
    drawn.pairs.push_back({MakePair(kind, log_uniform(1e-2, 0.9), log_uniform(0.8, 10)),
                           static_cast<std::uint64_t>(log_uniform(2, 2000))});
  }
  drawn.log_delta = std::log(log_uniform(1e-12, 1e-2));
  return drawn;
}

TEST(Contour, IntersectsTheGridOnRandomCompositions) {
  std::mt19937_64 engine(41);
  int compared = 0;
  for (int i = 0; i < 14; ++i) {
    const DrawnPair drawn = Draw(engine);
    const auto contour = ContourEpsilon(drawn.pairs, drawn.log_delta);
    if (!contour) continue;
    ++compared;
    EXPECT_LE(contour->lower, contour->upper) << i;
    EXPECT_LE(contour->lower, GridEpsilon(drawn.pairs, drawn.log_delta, Bound::kUpper)) << i;
    EXPECT_GE(contour->upper, GridEpsilon(drawn.pairs, drawn.log_delta, Bound::kLower)) << i;
    EXPECT_GE(contour->upper, GridEpsilon(drawn.pairs, drawn.log_delta, Bound::kSpread)) << i;
  }
  EXPECT_GE(compared, 7);
}

TEST(Contour, DeltaAndEpsilonAreInverse) {
  std::mt19937_64 engine(42);
  int compared = 0;
  for (int i = 0; i < 40; ++i) {
    const DrawnPair drawn = Draw(engine);
    const auto epsilon = ContourEpsilon(drawn.pairs, drawn.log_delta);
    if (!epsilon || epsilon->upper == 0) continue;
    const auto at_upper = ContourLogDelta(drawn.pairs, epsilon->upper);
    const auto at_lower = ContourLogDelta(drawn.pairs, epsilon->lower);
    if (!at_upper || !at_lower) continue;
    ++compared;
    // delta at the upper end is at most the target, at the lower end at least.
    EXPECT_LE(at_upper->lower, drawn.log_delta) << i;
    EXPECT_GE(at_lower->upper, drawn.log_delta) << i;
    EXPECT_NEAR(at_upper->upper, drawn.log_delta, 1e-4) << i;
  }
  EXPECT_GE(compared, 20);
}

TEST(Contour, CountsAndCopiesAgree) {
  const LossPair pair = MakePair(Kind::kRemove, 0.05, 1.3);
  const std::vector<CountedPair> once = {{pair, 600}};
  const std::vector<CountedPair> split = {{pair, 100}, {pair, 200}, {pair, 300}};
  const auto a = ContourEpsilon(once, std::log(1e-6));
  const auto b = ContourEpsilon(split, std::log(1e-6));
  ASSERT_TRUE(a && b);
  EXPECT_LE(a->lower, b->upper);
  EXPECT_LE(b->lower, a->upper);
  EXPECT_NEAR(a->upper, b->upper, 1e-9 * a->upper);
}

// Discrete and clipped pairs have no strip of analyticity or no density: none is invented.
TEST(Contour, GivesNoCertificateWithoutADensity) {
  const auto discrete = DominatingPairsOf(Event::DiscreteLaplace(3, 1)).upper;
  const std::vector<CountedPair> pairs = {{discrete.front(), 1000}};
  EXPECT_FALSE(ContourEpsilon(pairs, std::log(1e-6)));
  EXPECT_FALSE(ContourLogDelta(pairs, 1));
}

// Randomised response with a chance of telling the truth, hidden among Gaussian steps: the mass at
// infinity is charged to delta.
TEST(Contour, ChargesTheMassAtInfinity) {
  const LossPair leak = DominatingPairsOf(Event::Approximate(Epsilon(0.01), Delta(1e-7))).upper[0];
  const std::vector<CountedPair> clean = {{MakePair(Kind::kRemove, 0.05, 1.3), 600}};
  std::vector<CountedPair> leaking = clean;
  leaking.push_back({leak, 5});
  const auto without = ContourEpsilon(clean, std::log(1e-6));
  const auto with = ContourEpsilon(leaking, std::log(1e-6));
  ASSERT_TRUE(without && with);
  // Half of delta is gone, and five steps of 0.01 are added at most.
  const auto half = ContourEpsilon(clean, std::log(0.5e-6));
  ASSERT_TRUE(half);
  EXPECT_GE(with->upper, half->lower - 1e-6);
  EXPECT_GT(with->lower, without->upper);
  EXPECT_LE(with->lower, half->upper + 0.05);
}

}  // namespace
}  // namespace sordino
