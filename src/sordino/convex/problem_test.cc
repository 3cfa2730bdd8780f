#include "sordino/convex/problem.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "sordino/base/error.h"

namespace sordino {
namespace {

TableShape Shape(const char* loss, std::int64_t features, std::int64_t classes = 2) {
  return {.loss = loss, .features = features, .classes = classes};
}

at::Tensor Targets(std::initializer_list<std::int64_t> values) {
  return at::tensor(std::vector<std::int64_t>(values), at::TensorOptions(at::kLong));
}

TEST(Problem, RowsAreInsideTheBoundWhateverIsGiven) {
  const double inf = std::numeric_limits<double>::infinity();
  const at::Tensor rows =
      at::tensor({3.0, 4.0, 0.3, 0.4, 1e308, 1e308, inf, 1.0, std::nan(""), 1.0, 0.0, 0.0})
          .to(at::kDouble)
          .view({6, 2});
  const Problem problem(Shape("logistic", 2), rows, Targets({0, 1, 0, 1, 0, 1}));
  const at::Tensor norms = problem.Rows(0, problem.rows()).norm(2, {1});
  EXPECT_LE(norms.max().item<double>(), 1.0);
  EXPECT_NEAR(norms[0].item<double>(), 1, 1e-8);
  EXPECT_DOUBLE_EQ(problem.Rows(0, problem.rows())[1][0].item<double>(), 0.3);
  EXPECT_NEAR(norms[2].item<double>(), 1, 1e-8);
  EXPECT_EQ(norms[3].item<double>(), 0);
  EXPECT_EQ(norms[4].item<double>(), 0);
}

// Float32 features stay float32: what is below the bound keeps its numbers, and rounding a scaled
// row leaves no norm above the bound, for bounds of every size.
TEST(Problem, FloatRowsAreScaledBelowTheBoundRoundingIncluded) {
  at::manual_seed(5);
  for (const double bound : {1.0, 3.7, 1e-20, 1e-29, 1e-35, 1e20}) {
    TableShape shape = Shape("logistic", 7);
    shape.row_bound = bound;
    const at::Tensor rows = at::randn({5000, 7}).mul_(bound);
    const Problem problem(shape, rows.clone(), at::zeros({5000}, at::kLong));
    const at::Tensor kept = problem.Rows(0, 5000);
    // Exact up to 2^-50, which a norm that is too large by a rounding of float32 exceeds.
    const at::Tensor norms = kept.norm(2, {1}).div_(bound);
    EXPECT_LE(norms.max().item<double>(), 1 + 0x1p-50) << bound;
    EXPECT_GT(norms.max().item<double>(), 1 - 1e-6) << bound;
    const at::Tensor exact = rows.to(at::kDouble);
    const at::Tensor is_short = exact.norm(2, {1}).lt(bound * (1 - 1e-6));
    EXPECT_TRUE(kept.index({is_short}).equal(exact.index({is_short}))) << bound;
  }
}

TEST(Problem, ALastColumnIsInsideTheNorm) {
  at::manual_seed(6);
  for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
    const at::Tensor features = at::randn({300, 4}, type);
    const at::Tensor ones = at::ones({300}, type);
    const at::Tensor targets = at::zeros({300}, at::kLong);
    const Problem apart(Shape("logistic", 5), features.clone(), targets, ones.clone());
    const Problem whole(Shape("logistic", 5), at::cat({features, ones.unsqueeze(1)}, 1), targets);
    EXPECT_TRUE(apart.Rows(0, 300).equal(whole.Rows(0, 300)));
    EXPECT_LE(apart.Rows(0, 300).norm(2, {1}).max().item<double>(), 1);
    const at::Tensor chosen = at::tensor({7, 0, 299}, at::TensorOptions(at::kLong));
    EXPECT_TRUE(apart.ChosenRows(chosen).equal(whole.ChosenRows(chosen)));
    EXPECT_THROW(Problem(Shape("logistic", 4), features, targets, ones), Error);
    EXPECT_THROW(Problem(Shape("logistic", 5), features, targets, ones.narrow(0, 0, 3)), Error);
  }
}

TEST(Problem, TargetsThatAreNumbersAreClipped) {
  const at::Tensor targets = at::tensor({5.0, -7.0, std::nan(""), 0.5}).to(at::kDouble);
  const Problem problem(Shape("squares", 1), at::ones({4, 1}), targets);
  EXPECT_TRUE(problem.targets().equal(at::tensor({1.0, -1.0, 0.0, 0.5}).to(at::kDouble)));
}

TEST(Problem, WhatDoesNotAgreeIsRefused) {
  EXPECT_THROW(Problem(Shape("logistic", 3), at::ones({2, 2}), Targets({0, 1})), Error);
  EXPECT_THROW(Problem(Shape("logistic", 2), at::ones({2, 2}), Targets({0})), Error);
  EXPECT_THROW(Problem(Shape("logistic", 2), at::ones({2, 2}), Targets({0, 2})), Error);
  EXPECT_THROW(Problem(Shape("logistic", 2), at::ones({2, 2}), Targets({0, -1})), Error);
  EXPECT_THROW(Problem(Shape("logistic", 2, 3), at::ones({2, 2}), Targets({0, 1})), Error);
  EXPECT_THROW(Problem(Shape("hinge", 2), at::ones({2, 2}), Targets({0, 1})), Error);
  EXPECT_NO_THROW(Problem(Shape("logistic", 2), at::ones({0, 2}), Targets({})));
}

// Slopes are the derivatives of values, and no slope is longer than its bound.
TEST(ConvexLoss, SlopesAreDerivativesWithinTheirBounds) {
  at::manual_seed(1);
  for (const ConvexLoss* loss : ConvexLosses().all()) {
    const std::int64_t classes = loss->MaxClasses() == 2 ? 2 : 5;
    const std::int64_t k = loss->Scores(classes);
    const double target_bound = 1.5;
    const at::Tensor scores = at::randn({200, k}, at::kDouble).mul_(3);
    const at::Tensor targets = loss->Classifies() ? at::randint(0, classes, {200}, at::kLong)
                                                  : at::randn({200}, at::kDouble).clamp_(-1.5, 1.5);
    const at::Tensor slopes = loss->Slopes(scores, targets, target_bound);
    const LossBounds bounds = loss->Bounds(classes, target_bound);
    EXPECT_LE(slopes.norm(2, {1}).max().item<double>(), bounds.slope * (1 + 1e-15));
    const double step = 1e-5;
    double trace = 0;
    for (std::int64_t j = 0; j < k; ++j) {
      at::Tensor up = scores.clone();
      at::Tensor down = scores.clone();
      up.select(1, j).add_(step);
      down.select(1, j).sub_(step);
      const at::Tensor rise = loss->Values(up, targets, target_bound)
                                  .sub(loss->Values(down, targets, target_bound))
                                  .div_(2 * step);
      EXPECT_LT(rise.sub(slopes.select(1, j)).abs().max().item<double>(), 2e-5) << loss->name();
      const at::Tensor second = loss->Slopes(up, targets, target_bound)
                                    .sub(loss->Slopes(down, targets, target_bound))
                                    .div_(2 * step);
      trace += second.select(1, j).max().item<double>();
      EXPECT_LE(second.norm(2, {1}).max().item<double>(), bounds.curvature * (1 + 1e-6));
    }
    EXPECT_GT(trace, 0);
  }
}

TEST(ConvexLoss, BoundsAreAttained) {
  const ConvexLoss& softmax = ConvexLosses().Find("softmax");
  const at::Tensor wrong = at::tensor({0.0, 60.0, 0.0}).to(at::kDouble).view({1, 3});
  const double slope = softmax.Slopes(wrong, Targets({0}), 1).norm().item<double>();
  EXPECT_NEAR(slope, softmax.Bounds(3, 1).slope, 1e-9);
  const ConvexLoss& logistic = ConvexLosses().Find("logistic");
  const at::Tensor low = at::full({1, 1}, -40.0, at::kDouble);
  EXPECT_NEAR(logistic.Slopes(low, Targets({1}), 1).norm().item<double>(), 1, 1e-9);
}

TEST(Evaluate, CountsRightClassesAndMeansTheLoss) {
  const Problem problem(Shape("logistic", 1), at::tensor({1.0, -1.0, 1.0}).view({3, 1}),
                        Targets({1, 0, 0}));
  const Evaluation at_one = Evaluate(problem, at::ones({1, 1}, at::kDouble));
  EXPECT_NEAR(at_one.accuracy, 2.0 / 3, 1e-15);
  EXPECT_NEAR(at_one.risk, (2 * std::log1p(std::exp(-1.0)) + std::log1p(std::exp(1.0))) / 3, 1e-8);
  EXPECT_EQ(Evaluate(Problem(Shape("logistic", 1), at::ones({0, 1}), Targets({})),
                     at::ones({1, 1}, at::kDouble))
                .accuracy,
            0);
}

}  // namespace
}  // namespace sordino
