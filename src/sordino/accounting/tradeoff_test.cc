#include "sordino/accounting/tradeoff.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "sordino/accounting/gaussian.h"
#include "sordino/base/error.h"

namespace sordino {
namespace {

TEST(Tradeoff, GaussianIsAnInvolutionAndBounded) {
  for (const double mu : {0.0, 0.1, 1.0, 5.0}) {
    for (const double x : {1e-9, 1e-3, 0.2, 0.5, 0.9}) {
      const double f = GaussianTradeoff(mu, x);
      ASSERT_LE(f, 1 - x + 1e-15);
      ASSERT_NEAR(GaussianTradeoff(mu, f) / x, 1, 1e-6) << mu << " " << x;
      ASSERT_NEAR(GaussianTruePositiveRate(mu, x), 1 - f, 1e-14);
    }
    EXPECT_EQ(GaussianTradeoff(mu, 0), 1);
    EXPECT_EQ(GaussianTradeoff(mu, 1), 0);
  }
}

TEST(Tradeoff, ProfileOfAGaussianGivesItsCurveBack) {
  for (const double mu : {0.2, 1.0, 3.0}) {
    const auto delta_of = [mu](double epsilon) { return std::exp(GaussianLogDelta(mu, epsilon)); };
    for (const double x : {1e-4, 0.01, 0.3, 0.7}) {
      const double expected = GaussianTradeoff(mu, x);
      const double actual = ProfileTradeoff(delta_of, x);
      ASSERT_LE(actual, expected * (1 + 1e-9));
      ASSERT_GE(actual, expected * (1 - 1e-5)) << mu << " " << x;
    }
  }
}

TEST(Tradeoff, ApproximateIsPiecewiseLinear) {
  EXPECT_NEAR(ApproximateTradeoff(1, 0.1, 0), 0.9, 1e-15);
  EXPECT_NEAR(ApproximateTradeoff(1, 0.1, 0.1), 0.9 - std::exp(1.0) * 0.1, 1e-15);
  EXPECT_NEAR(ApproximateTradeoff(1, 0.1, 0.5), std::exp(-1.0) * 0.4, 1e-15);
  EXPECT_EQ(ApproximateTradeoff(1, 0.1, 0.95), 0);
  EXPECT_THROW(ApproximateTradeoff(1, 0.1, -1), Error);
}

TEST(Tradeoff, ProfileOfAGaussianEventLiesCloselyBelowItsCurve) {
  for (const double mu : {0.05, 0.5, 2.0, 6.0}) {
    const auto profile = PrivacyProfile(Event::Gaussian(NoiseMultiplier(1 / mu)), 40);
    EXPECT_EQ(profile.size(), 40U);
    for (const double x : {0.0, 1e-3, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0}) {
      const double f = ProfileTradeoff(profile, x);
      ASSERT_LE(f, GaussianTradeoff(mu, x)) << mu << " " << x;
      ASSERT_GE(f, GaussianTradeoff(mu, x) - 2e-3) << mu << " " << x;
    }
  }
}

// Laplace noise of scale 1 / epsilon is tested best by the sign of its log-likelihood ratio, whose
// curve is known: 1 - e^epsilon x up to x = e^-epsilon / 2, then e^-epsilon / (4 x) up to x = 1/2,
// and then e^-epsilon (1 - x).
TEST(Tradeoff, ProfileOfALaplaceEventHasItsPureLine) {
  const double epsilon = 1.5;
  const auto profile = PrivacyProfile(Event::Laplace(NoiseMultiplier(1 / epsilon)), 40);
  for (const double x : {0.0, 0.01, 0.1, 0.2, 0.4, 0.6, 0.9, 1.0}) {
    const double exact = x <= std::exp(-epsilon) / 2 ? 1 - std::exp(epsilon) * x
                         : x <= 0.5                  ? std::exp(-epsilon) / (4 * x)
                                                     : std::exp(-epsilon) * (1 - x);
    const double f = ProfileTradeoff(profile, x);
    EXPECT_LE(f, exact + 1e-15) << x;
    EXPECT_GE(f, exact - 2e-3) << x;
  }
  EXPECT_NEAR(ProfileTradeoff(profile, 0.1), 1 - std::exp(epsilon) * 0.1, 1e-9);
}

TEST(Tradeoff, ProfileOfNothingIsPerfectPrivacyAndOfNoBoundNone) {
  const std::vector<PrivacyLine> nothing = PrivacyProfile(Event::None(Adjacency::kAddRemove), 5);
  EXPECT_EQ(ProfileTradeoff(nothing, 0.25), 0.75);
  EXPECT_EQ(ProfileTradeoff(std::vector<PrivacyLine>(), 0.25), 0);
}

TEST(Tradeoff, ProfileSaysHowFarItIs) {
  std::vector<int> told;
  PrivacyProfile(Event::Gaussian(NoiseMultiplier(1)), 4, [&](int done) { told.push_back(done); });
  EXPECT_EQ(told, (std::vector<int>{1, 2, 3, 4}));
}

TEST(Tradeoff, CurveKeepsTheGivenPoints) {
  const std::vector<double> points = {0, 0.5, 1};
  const auto curve = TradeoffCurve([](double x) { return GaussianTradeoff(1, x); }, points);
  ASSERT_EQ(curve.size(), 3U);
  EXPECT_EQ(curve[1].type_one, 0.5);
  EXPECT_EQ(curve[1].type_two, GaussianTradeoff(1, 0.5));
}

}  // namespace
}  // namespace sordino
