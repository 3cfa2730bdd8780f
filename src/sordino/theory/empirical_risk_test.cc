#include "sordino/theory/empirical_risk.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "sordino/base/error.h"

namespace sordino {
namespace {

// With one parameter the only eigenvalue is the trace, and every formula is by hand.
TEST(EmpiricalRisk, OneParameterIsTheFormulaOfTheHeader) {
  const RiskShape shape{.records = 100, .parameters = 1, .trace = 0.25, .weight_norm = 2};
  EXPECT_DOUBLE_EQ(OutputRisk(shape, 0.1, 8), 0.5 * 0.01 * 0.25 + 0.08 * 4 / 8);
  EXPECT_NEAR(ObjectiveRisk(shape, 3, 8),
              0.5 * 9e-4 * 0.25 / std::pow(0.25 + 0.08, 2) + 0.08 * 4 / 8, 1e-15);
  EXPECT_NEAR(DescentRisk(shape, 3, 1), 0.5 * 9e-4 * 0.25 + 4 / (4 * std::exp(1.0)), 1e-15);
  EXPECT_NEAR(DescentRisk(shape, 3, 50), 0.5 * 9e-4 * 25 + 4 / (200 * std::exp(1.0)), 1e-15);
}

// k proximal steps of k mu leave (k mu / (h + k mu))^k of a weight; the worst h by search.
TEST(EmpiricalRisk, ProximalStepsLoseTheWorstOfAllCurvatures) {
  const RiskShape shape{.records = 100, .parameters = 1, .trace = 0.25, .weight_norm = 2};
  const double mu = 0.08;
  for (const int k : {1, 2, 4, 16}) {
    double worst = 0;
    for (double h = 1e-4; h < 10; h *= 1.001) {
      worst = std::max(worst, 0.5 * h * std::pow(k * mu / (h + k * mu), 2 * k) * 4);
    }
    EXPECT_NEAR(OutputRisk(shape, 0, 8, k), worst, 1e-6 * worst) << k;
  }
  EXPECT_THROW(OutputRisk(shape, 0, 8, 0), Error);
}

// With a floor far above every eigenvalue the inverse is a step size.
TEST(EmpiricalRisk, LargeFloorMakesNewtonStepsDescent) {
  const RiskShape shape{.records = 100, .parameters = 50, .trace = 1, .weight_norm = 2};
  EXPECT_NEAR(PreconditionedRisk(shape, 3, 1e4, 1e3) / DescentRisk(shape, 3, 10), 1, 0.01);
}

TEST(EmpiricalRisk, EigenvaluesAddUpToTheTrace) {
  // For a huge lambda every term of the objective is h / mu^2.
  for (const double p : {2.0, 100.0, 1000.0, 123'456.0}) {
    const RiskShape shape{.records = 1, .parameters = p, .trace = 0.25, .weight_norm = 1e-9};
    EXPECT_NEAR(ObjectiveRisk(shape, 1e6, 1e6), 0.5 * 0.25, 0.5 * 0.25 * 0.01) << p;
  }
}

TEST(EmpiricalRisk, IsLeastWhereTheDerivativeVanishes) {
  const double at = LeastRiskAt([](double x) { return x + 9 / x; }, 1e-6, 1e6);
  EXPECT_NEAR(at, 3, 3e-3);
}

TEST(EmpiricalRisk, BoundIsTheLeastOfItsTwoTerms) {
  const double n = 1000, p = 20, rho = 3, sigma = 4;
  const double t = LeastRiskAt(
      [&](double x) { return rho * rho / (2 * x) + x * p * sigma * sigma / (n * n); }, 1e-6, 1e9);
  EXPECT_NEAR(DescentRiskBound(n, p, rho, sigma),
              rho * rho / (2 * t) + t * p * sigma * sigma / (n * n), 1e-6);
}

TEST(EmpiricalRisk, BadNumbersAreRefused) {
  EXPECT_THROW(OutputRisk({.records = 0}, 1, 1), Error);
  EXPECT_THROW(ObjectiveRisk({}, 1, 0), Error);
  EXPECT_THROW(DescentRisk({}, -1, 1), Error);
  EXPECT_THROW(DescentRiskBound(10, 0, 1, 1), Error);
}

}  // namespace
}  // namespace sordino
