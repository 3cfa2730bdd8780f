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

TEST(Tradeoff, CurveKeepsTheGivenPoints) {
  const std::vector<double> points = {0, 0.5, 1};
  const auto curve = TradeoffCurve([](double x) { return GaussianTradeoff(1, x); }, points);
  ASSERT_EQ(curve.size(), 3U);
  EXPECT_EQ(curve[1].type_one, 0.5);
  EXPECT_EQ(curve[1].type_two, GaussianTradeoff(1, 0.5));
}

}  // namespace
}  // namespace sordino
