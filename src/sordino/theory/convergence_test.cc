#include "sordino/theory/convergence.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "sordino/base/error.h"
#include "sordino/theory/noise_schedule.h"

namespace sordino {
namespace {

struct Reference {
  double kappa;
  double alpha;
  std::int64_t uniform_formula;
  double uniform_formula_bound;
  std::int64_t uniform;
  double uniform_bound;
  std::int64_t dynamic_formula;
  std::int64_t dynamic;
  double dynamic_bound;
};

TEST(Convergence, HorizonsAndBoundsAreTheReferenceValues) {
  const Reference rows[] = {
      {10, 1e-3, 23, .2982446, 21, .2964410, 25, 24, .2752956},
      {10, 1e-4, 45, .0533352, 44, .0532710, 63, 63, .0365846},
      {100, 1e-6, 459, .0553656, 455, .0553580, 650, 649, .0382764},
      {5, 1e-2, 7, .4863149, 6, .4835008, 7, 7, .4733361},
  };
  for (const Reference& row : rows) {
    const ConvergenceProblem problem(row.kappa, row.alpha);
    const Horizon uniform = BestUniform(problem);
    const Horizon dynamic = BestDynamic(problem);
    EXPECT_EQ(uniform.formula_steps, row.uniform_formula);
    EXPECT_NEAR(*uniform.bound_at_formula, row.uniform_formula_bound, 5.1e-8);
    EXPECT_EQ(uniform.steps, row.uniform);
    EXPECT_NEAR(uniform.bound, row.uniform_bound, 5.1e-8);
    EXPECT_EQ(dynamic.formula_steps, row.dynamic_formula);
    EXPECT_EQ(dynamic.steps, row.dynamic);
    EXPECT_NEAR(dynamic.bound, row.dynamic_bound, 5.1e-8);
  }
  EXPECT_NEAR(*BestDynamic({10, 1e-3}).bound_at_formula, .2752973, 5.1e-8);
}

// Every T is looked at, up to where the noise alone is above the least bound.
TEST(Convergence, HorizonsAreTheLeastOverAllNumbersOfSteps) {
  std::mt19937_64 random(4);
  std::uniform_real_distribution<double> log_kappa(0, 6);
  std::uniform_real_distribution<double> log_alpha(-16, 1);
  for (int trial = 0; trial < 400; ++trial) {
    const ConvergenceProblem problem(std::exp(log_kappa(random)), std::exp(log_alpha(random)));
    double uniform = 1;
    double dynamic = 1;
    for (double steps = 0; steps < 20000; ++steps) {
      uniform = std::min(uniform, problem.UniformBound(steps));
      dynamic = std::min(dynamic, problem.DynamicBound(steps));
    }
    EXPECT_NEAR(BestUniform(problem).bound / uniform, 1, 1e-13);
    EXPECT_NEAR(BestDynamic(problem).bound / dynamic, 1, 1e-13);
    EXPECT_LE(dynamic, uniform * (1 + 1e-13));
  }
}

TEST(Convergence, ClosedBoundsAreThoseOfTheirSchedules) {
  for (const std::int64_t steps : {1, 2, 7, 40}) {
    const ConvergenceProblem problem(12.5, 3e-4);
    const double budget = 0.7;
    const std::vector<double> same(static_cast<std::size_t>(steps),
                                   std::sqrt(static_cast<double>(steps) / budget));
    EXPECT_NEAR(problem.BoundOf(same), problem.UniformBound(static_cast<double>(steps)), 1e-13);
    const std::vector<double> best = OptimalNoise(problem.Influence(steps), budget);
    EXPECT_NEAR(problem.BoundOf(best), problem.DynamicBound(static_cast<double>(steps)), 1e-13);
  }
}

TEST(Convergence, AlphaAndKappaFollowFromTheConstants) {
  const ConvergenceProblem problem = ConvergenceProblem::Of({.records = 1000,
                                                             .dimension = 50,
                                                             .lipschitz = 2,
                                                             .smoothness = 4,
                                                             .strong_convexity = 0.5,
                                                             .initial_gap = 3,
                                                             .budget = 0.1});
  EXPECT_DOUBLE_EQ(problem.kappa(), 8);
  EXPECT_DOUBLE_EQ(problem.alpha(), 50 * 4 / (2 * 0.1 * 4 * 1e6 * 3));
  EXPECT_DOUBLE_EQ(problem.gamma(), 0.875);
}

TEST(Convergence, OneStepArrivesWhereKappaIsOne) {
  const ConvergenceProblem problem(1, 0.01);
  EXPECT_EQ(BestUniform(problem).steps, 1);
  EXPECT_DOUBLE_EQ(BestUniform(problem).bound, 0.01);
  EXPECT_EQ(BestDynamic(problem).steps, 1);
  EXPECT_DOUBLE_EQ(BestDynamic(problem).bound, 0.01);
  EXPECT_FALSE(BestUniform(problem).formula_steps.has_value());
}

TEST(Convergence, NoStepIsBestWhereNoiseCostsMoreThanItGains) {
  for (const double kappa : {1.0, 3.0, 50.0}) {
    const ConvergenceProblem problem(kappa, 1.001 / kappa);
    EXPECT_EQ(BestUniform(problem).steps, 0);
    EXPECT_EQ(BestDynamic(problem).steps, 0);
    EXPECT_EQ(BestUniform(problem).bound, 1);
    const ConvergenceProblem less(kappa, 0.999 / kappa);
    EXPECT_EQ(BestUniform(less).steps, 1);
    EXPECT_EQ(BestDynamic(less).steps, 1);
  }
}

TEST(Convergence, HugeConditionNumbersKeepTheirDigits) {
  // With kappa T fixed the bounds approach those of a continuous time: e^-x + x (1 - e^-x) c.
  const ConvergenceProblem problem(1e12, 1e-26);
  const Horizon uniform = BestUniform(problem);
  const double x = static_cast<double>(uniform.steps) / 1e12;
  EXPECT_NEAR(uniform.bound, std::exp(-x) + 1e-2 * x * (1 - std::exp(-x)), 1e-9);
  EXPECT_THROW(BestUniform({1e16, 1e-34}), Error);
}

TEST(Convergence, RefusesImpossibleProblems) {
  EXPECT_THROW(ConvergenceProblem(0.5, 1e-3), Error);
  EXPECT_THROW(ConvergenceProblem(2, 0), Error);
  EXPECT_THROW(ConvergenceProblem(2, -1), Error);
  EXPECT_THROW(ConvergenceProblem(std::nan(""), 1), Error);
  ProblemConstants constants = {.records = 10,
                                .dimension = 2,
                                .lipschitz = 1,
                                .smoothness = 1,
                                .strong_convexity = 2,
                                .initial_gap = 1,
                                .budget = 1};
  EXPECT_THROW(ConvergenceProblem::Of(constants), Error);
}

// The constants of Eq. 9 and 12, over problems from well to badly conditioned and from budgets that
// allow many steps to those that allow none.
TEST(ConvergenceProblem, LeastBoundsAreTheOrdersOfThePaperUpToTheirConstants) {
  int within = 0;
  for (const double kappa : {1.01, 1.1, 1.5, 2.0, 3.0, 10.0, 100.0, 1e4, 1e6}) {
    for (double alpha = 1e-14; alpha < 10; alpha *= 3) {
      const ConvergenceProblem problem(kappa, alpha);
      for (const Horizon& horizon : {BestUniform(problem), BestDynamic(problem)}) {
        ASSERT_TRUE(horizon.published);
        const PublishedOrder& order = *horizon.published;
        EXPECT_GE(horizon.bound, order.least * order.value * (1 - 1e-9)) << kappa << " " << alpha;
        EXPECT_LE(horizon.bound, order.most * order.value * (1 + 1e-9)) << kappa << " " << alpha;
        EXPECT_GT(order.least, 0);
        if (kappa >= 2 && alpha < 0.1) {
          EXPECT_LT(order.most / order.least, 5);
        }
        ++within;
      }
    }
  }
  EXPECT_GT(within, 500);
}

// By hand for kappa = 10 and alpha = 1e-4, x = 0.01.
TEST(ConvergenceProblem, PublishedOrdersAreThoseOfThePaper) {
  const ConvergenceProblem problem(10, 1e-4);
  EXPECT_NEAR(BestUniform(problem).published->value, 0.01 * (1 + (0.01 - 1) * std::log(0.01)),
              1e-15);
  EXPECT_NEAR(BestDynamic(problem).published->value, 0.01 / 1.01, 1e-15);
  EXPECT_EQ(BestUniform({10, 1}).published->value, 1);
  EXPECT_FALSE(BestUniform({1, 1e-4}).published);
}

// m(y) >= kUniformShare g(y): the step of the proof that is a computation.
TEST(ConvergenceProblem, UniformShareIsTheLeastOfTheQuotient) {
  double least = 1;
  for (int i = 1; i <= 2000; ++i) {
    const double y = i / 2000.0;
    const double g = y * (1 + (y - 1) * std::log(y));
    double m = 1;
    for (double t = 0; t < 12; t += 1e-3) {
      m = std::min(m, std::exp(-t) + t * y * (1 - std::exp(-t)));
    }
    least = std::min(least, m / g);
    EXPECT_GE(m, kUniformShare * g) << y;
  }
  EXPECT_NEAR(least, kUniformShare, 1e-4);
}

}  // namespace
}  // namespace sordino
