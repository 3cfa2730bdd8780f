// Output perturbation after proximal steps: what one row moves, and what is left of the bias.
#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "sordino/base/error.h"
#include "sordino/convex/method.h"

namespace sordino {
namespace {

FitQuestion ProximalQuestion(const char* loss, double lambda) {
  FitQuestion question;
  question.table = {.loss = loss,
                    .features = 2,
                    .classes = std::string(loss) == "softmax" ? 3 : 2,
                    .row_bound = 1};
  question.records = 10;
  question.delta = Delta(1e-6);
  question.lambda = lambda;
  return question;
}

// What the method would release without noise, to 1e-4 of its sensitivity: the grid of smaller
// noise would not reach the coefficients.
at::Tensor WithoutNoise(const FitQuestion& question, std::int64_t steps, const at::Tensor& x,
                        const at::Tensor& y) {
  FitPlan plan = PlanFit(question, {"output", {{"proximal-steps", steps}}});
  plan.multiplier = 1e-5;
  RandomSource source(1);
  return Fit(plan, Problem(question.table, x.clone(), y), source).coefficients;
}

TEST(ProximalSteps, NoTableMovesThemFurtherThanOneMinimum) {
  at::manual_seed(21);
  for (const char* loss : {"squares", "logistic", "softmax", "huber"}) {
    for (const double lambda : {0.1, 1.0, 10.0}) {
      const FitQuestion question = ProximalQuestion(loss, lambda);
      for (const std::int64_t steps : {2, 4}) {
        for (int trial = 0; trial < 10; ++trial) {
          const std::int64_t n = 1 + trial % 5;
          const at::Tensor x = at::randn({n, 2}, at::kDouble).mul_(3);
          const at::Tensor y = std::string(loss) == "squares"
                                   ? at::rand({n}, at::kDouble).mul_(2).sub_(1)
                                   : at::randint(0, question.table.classes, {n}, at::kLong);
          const at::Tensor with = WithoutNoise(question, steps, x, y);
          const at::Tensor without =
              WithoutNoise(question, steps, x.narrow(0, 0, n - 1), y.narrow(0, 0, n - 1));
          const double slope = Problem(question.table, x.clone(), y).bounds().slope;
          EXPECT_LE(with.sub(without).norm().item<double>(), slope / lambda * (1 + 3e-4))
              << loss << ' ' << lambda << ' ' << steps;
        }
      }
    }
  }
}

// The slope of a rounded hinge is 1 as long as the margin is not reached.
TEST(ProximalSteps, TheirSensitivityIsAttained) {
  const FitQuestion question = ProximalQuestion("huber", 100);
  const at::Tensor x = at::tensor({1.0, 0.0}, at::TensorOptions(at::kDouble)).view({1, 2});
  const at::Tensor y = at::ones({1}, at::kLong);
  for (const std::int64_t steps : {1, 2, 4, 10}) {
    const double moved = WithoutNoise(question, steps, x, y).norm().item<double>();
    EXPECT_NEAR(moved, 0.01, 1e-6) << steps;
  }
}

// Of n equal rows the square loss has the curvature n: 1 - (k lambda / (n + k lambda))^k of the
// target is reached.
TEST(ProximalSteps, LeaveTheBiasOfTheHeader) {
  const FitQuestion question = ProximalQuestion("squares", 5);
  const at::Tensor x = at::tensor({1.0, 0.0}, at::TensorOptions(at::kDouble)).repeat({10, 1});
  const at::Tensor y = at::full({10}, 0.5, at::kDouble);
  for (const std::int64_t steps : {1, 2, 4, 100}) {
    const double mu = 5.0 * static_cast<double>(steps);
    const double left = std::pow(mu / (10 + mu), static_cast<double>(steps));
    EXPECT_NEAR(WithoutNoise(question, steps, x, y)[0][0].item<double>(), 0.5 * (1 - left), 1e-4)
        << steps;
  }
}

TEST(ProximalSteps, CannotBeUsedWithDescentSteps) {
  FitQuestion question = ProximalQuestion("logistic", 1);
  question.adjacency = Adjacency::kReplaceOne;
  EXPECT_THROW(PlanFit(question,
                       {"output",
                        {{"proximal-steps", std::int64_t{2}}, {"descent-steps", std::int64_t{2}}}}),
               Error);
  EXPECT_THROW(PlanFit(question, {"output", {{"proximal-steps", std::int64_t{0}}}}), Error);
}

// The noise on a sum: of the unit vectors it is the deviations themselves.
TEST(NoiseOfSum, IsThatOfTheCoefficientsAndOfTheirSum) {
  at::manual_seed(22);
  FitQuestion question = ProximalQuestion("squares", 5);
  const at::Tensor x = at::randn({50, 2}, at::kDouble);
  const Problem problem(question.table, x, at::rand({50}, at::kDouble));
  for (const char* method : {"output", "adassp"}) {
    RandomSource source(3);
    const FitResult fit = Fit(PlanFit(question, method), problem, source);
    double squares = 0;
    for (std::int64_t j = 0; j < 2; ++j) {
      at::Tensor unit = at::zeros({2}, at::kDouble);
      unit[j] = 1;
      const double deviation = fit.deviation[j][0].item<double>();
      EXPECT_NEAR(NoiseOfSum(fit, unit).item<double>(), deviation, 1e-12 * deviation) << method;
      squares += deviation * deviation;
    }
    const double sum = NoiseOfSum(fit, at::ones({2}, at::kDouble)).item<double>();
    if (std::string(method) == "output") {
      EXPECT_NEAR(sum, std::sqrt(squares), 1e-9 * sum);
    } else {
      EXPECT_GT(std::abs(sum / std::sqrt(squares) - 1), 1e-6);  // they depend on each other
    }
  }
}

}  // namespace
}  // namespace sordino
