#include "sordino/theory/momentum.h"

#include <gtest/gtest.h>

#include <cmath>

#include "sordino/base/error.h"
#include "sordino/theory/noise_schedule.h"

namespace sordino {
namespace {

TEST(MomentumInfluence, ClosedFormIsTheSum) {
  for (const double beta : {0.0, 0.1, 0.5, 0.9, 0.99}) {
    for (const double gamma : {0.0, 0.01, 0.25, 0.81, 0.81 + 1e-15, 0.95, 0.9999}) {
      const std::vector<double> influence = MomentumInfluence(beta, gamma, 60);
      for (std::int64_t left = 1; left <= 60; ++left) {
        const double expected = influence[static_cast<std::size_t>(60 - left)];
        EXPECT_NEAR(MomentumInfluenceAt(beta, gamma, left), expected, 1e-12 * expected)
            << beta << " " << gamma << " " << left;
      }
    }
  }
}

TEST(Momentum, InfluenceHasTheReferenceValues) {
  const struct {
    double beta;
    double gamma;
    std::vector<double> expected;
  } rows[] = {{0.9, 0.95, {3.03644641, 2.743136, 2.3281, 1.76, 1}},
              {0.5, 0.9, {0.90694375, 1.003375, 1.0975, 1.15, 1}}};
  for (const auto& row : rows) {
    const std::vector<double> influence = MomentumInfluence(row.beta, row.gamma, 5);
    for (std::size_t t = 0; t < 5; ++t) EXPECT_NEAR(influence[t], row.expected[t], 5e-9);
  }
}

TEST(Momentum, InfluenceIsTheClosedFormAndItsLimit) {
  for (const auto& [beta, gamma] : {std::pair{0.3, 0.99}, {0.9, 0.5}, {0.0, 0.8}}) {
    const std::vector<double> influence = MomentumInfluence(beta, gamma, 12);
    for (int t = 1; t <= 12; ++t) {
      const int s = 12 - t + 1;
      const double closed = (std::pow(beta, 2 * s) - std::pow(gamma, s)) / (beta * beta - gamma);
      EXPECT_NEAR(influence[static_cast<std::size_t>(t - 1)] / closed, 1, 1e-12);
    }
  }
  const std::vector<double> equal = MomentumInfluence(0.8, 0.64, 6);
  for (int s = 1; s <= 6; ++s) {
    EXPECT_NEAR(equal[static_cast<std::size_t>(6 - s)], s * std::pow(0.64, s - 1), 1e-14);
  }
}

TEST(Momentum, LargestStepIsWhereZetaIsZero) {
  for (const double kappa : {1.5, 10.0, 1e4}) {
    for (const double beta : {0.1, 0.5, 0.9}) {
      const double step = LargestMomentumStep(kappa, beta);
      const ConvergenceProblem problem(kappa, 1e-8);
      const MomentumProblem momentum(problem, beta);
      EXPECT_NEAR(momentum.Zeta(), 0, 1e-9);
      EXPECT_LE(momentum.Zeta(), 0);
      EXPECT_GT(momentum.gamma(), beta);
      EXPECT_THROW(MomentumProblem(problem, beta, step * 1.001), Error);
    }
  }
}

TEST(Momentum, MinimaAreTheLeastOfAllBounds) {
  const ConvergenceProblem problem(4, 1e-5);
  const MomentumProblem momentum(problem, 0.5);
  const MomentumProblem::Best best = momentum.Minima();
  double uniform = 1;
  double dynamic = 1;
  std::int64_t uniform_steps = 0;
  std::int64_t dynamic_steps = 0;
  for (std::int64_t steps = 1; steps < 1000; ++steps) {
    if (const double bound = momentum.UniformBound(steps); bound < uniform) {
      uniform = bound;
      uniform_steps = steps;
    }
    if (const double bound = momentum.DynamicBound(steps); bound < dynamic) {
      dynamic = bound;
      dynamic_steps = steps;
    }
  }
  EXPECT_EQ(best.uniform.steps, uniform_steps);
  EXPECT_EQ(best.dynamic.steps, dynamic_steps);
  EXPECT_NEAR(best.uniform.bound, uniform, 1e-12);
  EXPECT_NEAR(best.dynamic.bound, dynamic, 1e-12);
  EXPECT_LT(dynamic, uniform);
}

TEST(Momentum, BoundsAreThoseOfTheirSchedules) {
  const MomentumProblem momentum({4, 1e-5}, 0.5);
  const std::vector<double> noise = OptimalNoise(momentum.Influence(30), 0.3);
  EXPECT_NEAR(momentum.BoundOf(noise), momentum.DynamicBound(30), 1e-14);
  const std::vector<double> same(30, std::sqrt(30 / 0.3));
  EXPECT_NEAR(momentum.BoundOf(same), momentum.UniformBound(30), 1e-14);
}

TEST(Momentum, RefusesWhatTheTheoremDoesNotTake) {
  const ConvergenceProblem problem(10, 1e-4);
  EXPECT_THROW(MomentumProblem(problem, 0), Error);
  EXPECT_THROW(MomentumProblem(problem, 1), Error);
  EXPECT_THROW(MomentumProblem(problem, 0.9, 0.5), Error);
  EXPECT_THROW(MomentumProblem(problem, 0.9, 0), Error);
}

}  // namespace
}  // namespace sordino
