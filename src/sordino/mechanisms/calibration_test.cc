#include "sordino/mechanisms/calibration.h"

#include <gtest/gtest.h>

#include <cmath>

#include "sordino/accounting/gaussian.h"
#include "sordino/base/error.h"

namespace sordino {
namespace {

double ExactDelta(double sigma, double epsilon) {
  return std::exp(GaussianLogDelta(1 / sigma, epsilon));
}

TEST(AnalyticGaussianNoise, MatchesFortyDigitValues) {
  EXPECT_NEAR(AnalyticGaussianNoise(Epsilon(1), Delta(1e-5)).value() / 3.730631634815942, 1, 1e-10);
  EXPECT_NEAR(AnalyticGaussianNoise(Epsilon(1), Delta(1e-15)).value(), 7.487009468, 5e-10);
  EXPECT_NEAR(AnalyticGaussianNoise(Epsilon(700), Delta(1e-6)).value(), 0.0303134703, 5e-11);
  EXPECT_NEAR(AnalyticGaussianNoise(Epsilon(0.001), Delta(1e-8)).value() / 3619.152080559861, 1,
              1e-10);
}

TEST(AnalyticGaussianNoise, IsTheSmallestThatMeetsTheTarget) {
  for (const double epsilon : {0.0, 0.01, 0.5, 1.0, 4.0, 50.0, 1e4}) {
    for (const double delta : {0.3, 1e-3, 1e-6, 1e-12, 1e-100}) {
      const double sigma = AnalyticGaussianNoise(Epsilon(epsilon), Delta(delta)).value();
      EXPECT_LE(ExactDelta(sigma, epsilon), delta) << epsilon << " " << delta;
      EXPECT_GT(ExactDelta(sigma * (1 - 1e-9), epsilon), delta) << epsilon << " " << delta;
    }
  }
}

TEST(AnalyticGaussianNoise, OnePercentLessNoiseMissesTheTarget) {
  const double sigma = AnalyticGaussianNoise(Epsilon(1), Delta(1e-5)).value();
  EXPECT_GT(ExactDelta(0.99 * sigma, 1), 1.05e-5);
}

TEST(ClassicGaussianNoise, IsTheTextbookFormulaAndSufficient) {
  for (const double epsilon : {0.1, 0.5, 1.0}) {
    for (const double delta : {1e-3, 1e-6, 1e-12}) {
      const double sigma = ClassicGaussianNoise(Epsilon(epsilon), Delta(delta)).value();
      EXPECT_NEAR(sigma, std::sqrt(2 * std::log(1.25 / delta)) / epsilon, 1e-12 * sigma);
      EXPECT_LE(ExactDelta(sigma, epsilon), delta);
      EXPECT_GE(sigma, AnalyticGaussianNoise(Epsilon(epsilon), Delta(delta)).value());
    }
  }
}

TEST(ClassicGaussianNoise, RefusesEpsilonAboveOneWhereItIsReallyTooSmall) {
  EXPECT_THROW(ClassicGaussianNoise(Epsilon(1.0001), Delta(1e-6)), Error);
  EXPECT_THROW(ClassicGaussianNoise(Epsilon(0), Delta(1e-6)), Error);
  // What the formula would have given at epsilon 10 breaks the promise.
  const double formula = std::sqrt(2 * std::log(1.25 / 1e-6)) / 10;
  EXPECT_GT(ExactDelta(formula, 10), 1e-6);
}

TEST(GaussianNoise, RefusesImpossibleDeltas) {
  for (const double delta : {0.0, 1.0}) {
    EXPECT_THROW(ClassicGaussianNoise(Epsilon(1), Delta(delta)), Error);
    EXPECT_THROW(AnalyticGaussianNoise(Epsilon(1), Delta(delta)), Error);
  }
  EXPECT_THROW(AnalyticGaussianNoise(Epsilon(kInfinity), Delta(0.1)), Error);
}

TEST(LaplaceNoise, IsNeverBelowOneOverEpsilon) {
  for (const double epsilon : {1e-9, 0.1, 1.0 / 3, 3.0, 1e6}) {
    const double scale = LaplaceNoise(Epsilon(epsilon)).value();
    EXPECT_GE(scale * epsilon, 1);
    EXPECT_NEAR(scale * epsilon, 1, 1e-14);
  }
  EXPECT_THROW(LaplaceNoise(Epsilon(0)), Error);
  EXPECT_THROW(LaplaceNoise(Epsilon(kInfinity)), Error);
}

}  // namespace
}  // namespace sordino
