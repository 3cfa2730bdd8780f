// The theorems of the methods against brute force: neighbouring tables, exact minima.
#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/convex/internal/gradient_sum.h"
#include "sordino/convex/internal/minimum.h"
#include "sordino/convex/internal/second_moment.h"
#include "sordino/convex/method.h"

namespace sordino {
namespace {

TableShape ShapeFor(const char* loss, std::int64_t features) {
  const std::int64_t classes = std::string(loss) == "softmax" ? 3 : 2;
  return {.loss = loss, .features = features, .classes = classes};
}

Problem Table(const TableShape& shape, const at::Tensor& x, const at::Tensor& y) {
  return {shape, x.clone(), y};
}

at::Tensor RandomTargets(const TableShape& shape, std::int64_t n) {
  if (shape.loss.name == "squares") return at::rand({n}, at::kDouble).mul_(2).sub_(1);
  return at::randint(0, shape.classes, {n}, at::kLong);
}

at::Tensor ExactMinimum(const Problem& problem, double lambda) {
  return internal::Minimise({&problem, lambda}, 1e-9, {}).theta;
}

// |theta - theta'| lambda / L for a table with and without its last row.
double Moved(const TableShape& shape, const at::Tensor& x, const at::Tensor& y, double lambda) {
  const std::int64_t n = x.size(0);
  const Problem with = Table(shape, x, y);
  const Problem without = Table(shape, x.narrow(0, 0, n - 1), y.narrow(0, 0, n - 1));
  const double distance =
      ExactMinimum(with, lambda).sub(ExactMinimum(without, lambda)).norm().item<double>();
  return distance * lambda / with.bounds().slope;
}

TEST(OutputSensitivity, NoTableMovesTheMinimumFurther) {
  at::manual_seed(1);
  for (const char* loss : {"squares", "logistic", "softmax", "huber"}) {
    const TableShape shape = ShapeFor(loss, 2);
    for (const double lambda : {0.1, 1.0, 10.0}) {
      for (int trial = 0; trial < 20; ++trial) {
        const at::Tensor x = at::randn({1 + trial % 5, 2}, at::kDouble).mul_(3);
        EXPECT_LE(Moved(shape, x, RandomTargets(shape, x.size(0)), lambda), 1 + 1e-6)
            << loss << " " << lambda;
      }
    }
  }
}

TEST(OutputSensitivity, IsNearlyAttained) {
  const at::Tensor one = at::ones({1, 1}, at::kDouble);
  EXPECT_GT(Moved(ShapeFor("squares", 1), one, at::ones({1}, at::kDouble), 1000), 0.99);
  EXPECT_GT(Moved(ShapeFor("huber", 1), one, at::ones({1}, at::kLong), 10), 0.99);
  // Many rows of class 0 in one direction; a row of class 1 that they misjudge, half across.
  const std::int64_t n = 2400;
  at::Tensor x = at::zeros({n + 1, 2}, at::kDouble);
  x.select(1, 0).fill_(1);
  x[n][0] = 0.5;
  x[n][1] = std::sqrt(0.75);
  at::Tensor y = at::zeros({n + 1}, at::kLong);
  y[n] = 1;
  EXPECT_GT(Moved(ShapeFor("logistic", 2), x, y, 1), 0.75);
}

TEST(OutputSensitivity, ReplacingARowMovesAtMostTwiceAsFar) {
  const TableShape shape = ShapeFor("huber", 1);
  const double lambda = 10;
  const at::Tensor one = at::ones({1, 1}, at::kDouble);
  const at::Tensor up = ExactMinimum(Table(shape, one, at::ones({1}, at::kLong)), lambda);
  const at::Tensor down = ExactMinimum(Table(shape, one, at::zeros({1}, at::kLong)), lambda);
  const double ratio = up.sub(down).norm().item<double>() * lambda;
  EXPECT_LE(ratio, 2 + 1e-6);
  EXPECT_GT(ratio, 1.99);
}

// The gradient of logistic regression in long double, by hand.
long double LongGradientNorm(const at::Tensor& x, const at::Tensor& y, const at::Tensor& theta,
                             long double lambda) {
  const std::int64_t d = x.size(1);
  std::vector<long double> sum(static_cast<std::size_t>(d), 0);
  for (std::int64_t i = 0; i < x.size(0); ++i) {
    long double s = 0;
    for (std::int64_t j = 0; j < d; ++j) {
      s += static_cast<long double>(x[i][j].item<double>()) *
           static_cast<long double>(theta[j][0].item<double>());
    }
    const long double r =
        1 / (1 + std::exp(-s)) - static_cast<long double>(y[i].item<std::int64_t>());
    for (std::int64_t j = 0; j < d; ++j) {
      sum[static_cast<std::size_t>(j)] += r * static_cast<long double>(x[i][j].item<double>());
    }
  }
  long double square = 0;
  for (std::int64_t j = 0; j < d; ++j) {
    const long double g = sum[static_cast<std::size_t>(j)] +
                          lambda * static_cast<long double>(theta[j][0].item<double>());
    square += g * g;
  }
  return std::sqrt(square);
}

TEST(Certificate, IsAboveTheGradientInHigherPrecision) {
  at::manual_seed(2);
  const TableShape shape = ShapeFor("logistic", 4);
  for (int trial = 0; trial < 10; ++trial) {
    const Problem problem =
        Table(shape, at::randn({50, 4}, at::kDouble), at::randint(0, 2, {50}, at::kLong));
    const internal::RegularisedObjective objective{&problem, 0.3};
    const internal::CertifiedMinimum minimum = internal::Minimise(objective, 1e-10, {});
    for (const double away : {0.0, 1e-9, 1e-3, 1.0}) {
      const at::Tensor theta = minimum.theta.add(at::randn({4, 1}, at::kDouble), away);
      const double certified = internal::CertifiedGradientNorm(objective, theta);
      const auto exact = static_cast<double>(
          LongGradientNorm(problem.Rows(0, problem.rows()), problem.targets(), theta, 0.3L));
      EXPECT_GE(certified, exact);
      EXPECT_LE(certified, exact * (1 + 1e-10) + 1e-11);
      // Strong convexity: the certificate bounds the distance from the minimum.
      EXPECT_LE(theta.sub(minimum.theta).norm().item<double>(),
                (certified + minimum.gradient_norm) / 0.3);
    }
  }
}

TEST(Certificate, IsReachedOnBadlyConditionedTables) {
  at::manual_seed(3);
  const TableShape shape = ShapeFor("softmax", 6);
  at::Tensor x = at::randn({400, 6}, at::kDouble);
  x.mul_(at::logspace(0, -5, 6, 10.0, at::kDouble).unsqueeze(0));
  const Problem problem = Table(shape, x, at::randint(0, 3, {400}, at::kLong));
  for (const double lambda : {1e-6, 1e-2, 100.0}) {
    EXPECT_LE(internal::Minimise({&problem, lambda}, 1e-8, {}).gradient_norm, 1e-8) << lambda;
  }
}

TEST(Certificate, ProgressSaysNothingAboutTheRows) {
  at::manual_seed(4);
  const Problem problem = Table(ShapeFor("logistic", 3), at::randn({40, 3}, at::kDouble),
                                at::randint(0, 2, {40}, at::kLong));
  int reports = 0;
  internal::Minimise({&problem, 0.1}, 1e-9, [&](double done) {
    ++reports;
    EXPECT_EQ(done, 0);
  });
  EXPECT_GT(reports, 0);
}

TEST(Certificate, WhatRoundingForbidsIsNotClaimed) {
  const TableShape shape = ShapeFor("logistic", 1);
  const Problem problem =
      Table(shape, at::ones({1000, 1}, at::kDouble), at::ones({1000}, at::kLong));
  EXPECT_THROW(internal::Minimise({&problem, 1.0}, 1e-14, {}), std::runtime_error);
}

TEST(GradientSensitivity, SumsOfNeighboursAreWithinTheClip) {
  at::manual_seed(4);
  double largest = 0;
  for (const char* loss : {"squares", "logistic", "softmax", "huber"}) {
    const TableShape shape = ShapeFor(loss, 3);
    for (int trial = 0; trial < 50; ++trial) {
      const at::Tensor x = at::randn({6, 3}, at::kDouble).mul_(2);
      const at::Tensor y = RandomTargets(shape, 6);
      const Problem with = Table(shape, x, y);
      const Problem without = Table(shape, x.narrow(0, 0, 5), y.narrow(0, 0, 5));
      const at::Tensor theta = at::randn({3, with.scores()}, at::kDouble).mul_(trial % 7);
      const double clip = 0.4;
      const double moved = internal::GradientSum(with, theta, clip)
                               .sub(internal::GradientSum(without, theta, clip))
                               .norm()
                               .item<double>();
      EXPECT_LE(moved, clip * (1 + 1e-12)) << loss;
      largest = std::max(largest, moved);
    }
  }
  EXPECT_GT(largest, 0.399);
}

TEST(GradientSensitivity, ChosenRowsSumLikeTheirOwnTable) {
  at::manual_seed(5);
  const TableShape shape = ShapeFor("softmax", 3);
  const at::Tensor x = at::randn({1500, 3}, at::kDouble);
  const at::Tensor y = at::randint(0, 3, {1500}, at::kLong);
  const Problem all = Table(shape, x, y);
  const at::Tensor rows = at::arange(0, 1500, 2, at::kLong);
  const Problem half = Table(shape, x.index_select(0, rows), y.index_select(0, rows));
  const at::Tensor theta = at::randn({3, 3}, at::kDouble);
  const at::Tensor difference =
      internal::GradientSum(all, theta, 1, rows).sub(internal::GradientSum(half, theta, 1));
  EXPECT_LT(difference.abs().max().item<double>(), 1e-10);
}

// Features in float32 are summed by code of our own where there is one score.
TEST(GradientSensitivity, FloatRowsSumLikeTheSameNumbersInDouble) {
  at::manual_seed(9);
  for (const char* loss : {"squares", "logistic", "softmax", "huber"}) {
    for (const std::int64_t columns : {1, 7, 8, 50}) {
      const TableShape shape = ShapeFor(loss, columns + 1);
      const std::int64_t n = 20'000;  // several blocks and tasks
      const at::Tensor x = at::randn({n, columns}).mul_(0.5);
      const at::Tensor ones = at::ones({n});
      const at::Tensor y = RandomTargets(shape, n);
      const Problem single(shape, x.clone(), y, ones.clone());
      const Problem exact(shape, single.Rows(0, n).clone(), y);
      const at::Tensor theta = at::randn({columns + 1, single.scores()}, at::kDouble).mul_(3);
      const at::Tensor sum = internal::GradientSum(exact, theta, 0.7);
      const double allowed = internal::GradientRounding(shape, n, theta.norm().item<double>());
      EXPECT_LE(internal::GradientSum(single, theta, 0.7).sub(sum).norm().item<double>(),
                2 * allowed);
      const internal::ValueAndGradient a = internal::LossSum(single, theta);
      const internal::ValueAndGradient b = internal::LossSum(exact, theta);
      EXPECT_NEAR(a.value, b.value, 1e-9 * b.value);
      EXPECT_LE(a.gradient.sub(b.gradient).norm().item<double>(), 2 * allowed);
      EXPECT_LT(allowed, 1e-5);
    }
  }
}

TEST(DescentSensitivity, StoppedDescentStaysWithinWusBound) {
  at::manual_seed(6);
  const TableShape shape = ShapeFor("logistic", 2);
  const double lambda = 0.5;
  const std::int64_t n = 5;
  const double smoothness = n * 0.25 + lambda;
  for (const std::int64_t steps : {1, 3, 10, 100}) {
    double largest = 0;
    for (int trial = 0; trial < 40; ++trial) {
      const at::Tensor x = at::randn({n, 2}, at::kDouble).mul_(3);
      const at::Tensor y = at::randint(0, 2, {n}, at::kLong);
      at::Tensor other_x = x.clone();
      at::Tensor other_y = y.clone();
      other_x[0] = x[0].neg();
      other_y[0] = y[0];
      const auto descend = [&](const Problem& problem) {
        at::Tensor theta = at::zeros({2, 1}, at::kDouble);
        for (std::int64_t t = 0; t < steps; ++t) {
          theta = theta.sub(internal::GradientSum(problem, theta, kInfinity).add(theta, lambda),
                            1 / smoothness);
        }
        return theta;
      };
      const at::Tensor a = descend(Table(shape, x, y));
      const at::Tensor b = descend(Table(shape, other_x, other_y));
      largest = std::max(largest, a.sub(b).norm().item<double>());
    }
    const double bound = 2 / lambda * (1 - std::pow(1 - lambda / smoothness, steps));
    EXPECT_LE(largest, bound);
    // One step from 0 has slopes of 1/2: half of the bound.
    if (steps == 1) {
      EXPECT_GT(largest, 0.49 * bound);
    }
  }
}

TEST(MomentSensitivity, OneRowMovesTheMatrixByItsSquare) {
  at::manual_seed(7);
  FitQuestion question;
  question.table = ShapeFor("squares", 3);
  question.records = 10;
  const double added = internal::SecondMomentSensitivity(question);
  question.adjacency = Adjacency::kReplaceOne;
  const double replaced = internal::SecondMomentSensitivity(question);
  EXPECT_NEAR(added, 1, 1e-3);
  EXPECT_NEAR(replaced, std::sqrt(2.0), 1e-3);
  double largest = 0;
  for (int trial = 0; trial < 100; ++trial) {
    const at::Tensor x = at::eye(3, at::kDouble).narrow(0, 0, 2).contiguous();
    at::Tensor rows = trial == 0 ? x : at::randn({2, 3}, at::kDouble).mul_(2);
    const at::Tensor y = at::zeros({1}, at::kDouble);
    const at::Tensor a = internal::SecondMoment(Table(question.table, rows.narrow(0, 0, 1), y));
    const at::Tensor b = internal::SecondMoment(Table(question.table, rows.narrow(0, 1, 1), y));
    EXPECT_LE(a.norm().item<double>(), added);
    largest = std::max(largest, a.sub(b).norm().item<double>());
  }
  EXPECT_LE(largest, replaced);
  EXPECT_GT(largest, 0.999 * std::sqrt(2.0));
}

}  // namespace
}  // namespace sordino
