#include "sordino/accounting/gaussian.h"

#include <gtest/gtest.h>

#include <boost/math/special_functions/erf.hpp>
#include <boost/multiprecision/cpp_bin_float.hpp>
#include <cmath>

#include "sordino/base/quantity.h"

namespace sordino {
namespace {

using Wide = boost::multiprecision::cpp_bin_float_100;

// The textbook formula with 100 digits, as independent of the implementation as can be.
double WideLogDelta(double mu, double epsilon) {
  const Wide m = mu;
  const Wide e = epsilon;
  const auto upper_tail = [](const Wide& x) -> Wide {
    const Wide scaled = x / sqrt(Wide(2));
    return boost::math::erfc(scaled) / 2;
  };
  const Wide delta = upper_tail(e / m - m / 2) - exp(e) * upper_tail(e / m + m / 2);
  return static_cast<double>(log(delta));
}

struct Point {
  double first;
  double delta;
  double expected;
};

TEST(GaussianMu, MatchesPublishedAnalyticCalibration) {
  // (epsilon, delta, sigma): 40-digit values.
  const Point points[] = {
      {1, 1e-5, 3.730631634815942},   {1, 1e-6, 4.224678889326835},
      {0.1, 1e-5, 30.74956613197745}, {10, 1e-5, 0.4998886197090085},
      {30, 1e-6, 0.2268157084275323}, {700, 1e-6, 0.03031347031205581},
      {1, 1e-12, 6.55782206745885},   {0.001, 1e-8, 3619.152080559861},
  };
  for (const auto& [epsilon, delta, sigma] : points) {
    EXPECT_NEAR(1 / GaussianMu(epsilon, std::log(delta)) / sigma, 1, 1e-10)
        << epsilon << " " << delta;
  }
  EXPECT_NEAR(1 / GaussianMu(1, std::log(1e-15)), 7.487009468, 5e-10);
  EXPECT_NEAR(1 / GaussianMu(1, std::log(0.78760074)), 0.33333333, 1e-7);
}

TEST(GaussianEpsilon, MatchesPublishedExactValues) {
  // (sigma, delta, epsilon): 40-digit values; the first stands for two releases at 0.7.
  const Point points[] = {
      {0.7 / std::sqrt(2.0), 1e-5, 10.1224945839},
      {0.5, 1e-5, 9.9972561464343},
      {0.1, 1e-5, 91.81728962466374},
      {100, 1e-5, 0.02721941981457714},
      {1, 1e-20, 9.51093624057438},
      {0.01, 1e-6, 5474.365500194637},
  };
  for (const auto& [sigma, delta, epsilon] : points) {
    EXPECT_NEAR(GaussianEpsilon(1 / sigma, std::log(delta)) / epsilon, 1, 1e-11)
        << sigma << " " << delta;
  }
}

TEST(GaussianLogDelta, MatchesHundredDigitsWithinItsErrorBound) {
  for (const double mu : {1e-6, 0.003, 0.2, 0.99, 1.01, 2.5, 7.0, 30.0}) {
    for (const double ratio : {0.0, 1e-3, 0.3, 0.49, 0.51, 1.0, 2.9, 3.1, 6.0, 11.0}) {
      const double epsilon = ratio * mu * std::max(1.0, mu);
      const double expected = WideLogDelta(mu, epsilon);
      // Two units more for the rounding of the expected value itself.
      const double tolerance = GaussianLogDeltaError(mu, epsilon) + std::abs(expected) * 0x1p-52;
      EXPECT_NEAR(GaussianLogDelta(mu, epsilon), expected, tolerance) << mu << " " << epsilon;
      EXPECT_LT(tolerance, 1e-12 * (10 + std::abs(expected) / 10));
    }
  }
}

TEST(GaussianLogDelta, MatchesHundredDigitsFarInTheTail) {
  for (const double epsilon : {20.0, 36.0}) {
    const double expected = WideLogDelta(1, epsilon);
    EXPECT_NEAR(GaussianLogDelta(1, epsilon) / expected, 1, 1e-14);
  }
}

TEST(GaussianLogDelta, HoldsItsClosedFormAtEpsilonZero) {
  for (const double mu : {1e-300, 1e-12, 0.5, 3.0, 40.0}) {
    EXPECT_NEAR(GaussianLogDelta(mu, 0), std::log(std::erf(mu / std::sqrt(8.0))), 1e-13) << mu;
  }
}

TEST(GaussianInverses, NeverLandOnTheWrongSide) {
  for (const double epsilon : {0.0, 1e-9, 1e-3, 0.7, 5.0, 80.0, 1e3, 1e5}) {
    for (const double log_delta : {std::log(0.5), -5.0, -40.0, -690.0}) {
      const double mu = GaussianMu(epsilon, log_delta);
      ASSERT_GT(mu, 0);
      EXPECT_LE(GaussianLogDelta(mu, epsilon), log_delta) << epsilon << " " << log_delta;
      // And it is tight: a noise 1e-10 smaller breaks the target.
      EXPECT_GT(GaussianLogDelta(mu * (1 + 1e-10), epsilon), log_delta);
      const double back = GaussianEpsilon(mu, log_delta);
      EXPECT_LE(GaussianLogDelta(mu, back), log_delta);
      EXPECT_NEAR(back, epsilon, 1e-9 * epsilon + 1e-11);
    }
  }
}

TEST(GaussianInverses, TinySigmaMutationIsNoticed) {
  // A calibration with 0.99 of the noise misses delta by several per cent at every corner.
  for (const double epsilon : {0.1, 1.0, 10.0}) {
    const double log_delta = std::log(1e-6);
    const double mutated = GaussianMu(epsilon, log_delta) / 0.99;
    EXPECT_GT(GaussianLogDelta(mutated, epsilon), log_delta + 0.05);
  }
}

TEST(GaussianLogDelta, IsMonotoneInMuAndEpsilon) {
  double last = -kInfinity;
  for (double mu = 1e-3; mu < 100; mu *= 1.07) {
    const double now = GaussianLogDelta(mu, 2.0);
    EXPECT_GE(now, last) << mu;
    last = now;
  }
  last = 0;
  for (double epsilon = 0; epsilon < 60; epsilon += 0.37) {
    const double now = GaussianLogDelta(1.7, epsilon);
    EXPECT_LT(now, last) << epsilon;
    last = now;
  }
}

TEST(GaussianCurve, GivesTheTrivialAnswersAtTheEnds) {
  EXPECT_EQ(GaussianLogDelta(0, 1), -kInfinity);
  EXPECT_EQ(GaussianLogDelta(kInfinity, 1), 0);
  EXPECT_EQ(GaussianLogDelta(1, kInfinity), -kInfinity);
  EXPECT_EQ(GaussianEpsilon(0, -5), 0);
  EXPECT_EQ(GaussianEpsilon(1, 0), 0);
  EXPECT_EQ(GaussianEpsilon(1, -kInfinity), kInfinity);
  EXPECT_EQ(GaussianMu(1, -kInfinity), 0);
  EXPECT_EQ(GaussianMu(1, 0), kInfinity);
}

TEST(GaussianCurve, SurvivesExtremeScales) {
  for (const double mu : {1e-300, 1e-150, 1e-8, 1e8, 1e150}) {
    for (const double epsilon : {0.0, 1e-300, 1e-8, 1e8, 1e300}) {
      const double value = GaussianLogDelta(mu, epsilon);
      EXPECT_FALSE(std::isnan(value)) << mu << " " << epsilon;
      EXPECT_LE(value, 0);
      EXPECT_FALSE(std::isnan(GaussianEpsilon(mu, -20))) << mu;
    }
  }
}

}  // namespace
}  // namespace sordino
