// The theorems of the methods against brute force: neighbouring tables, exact minima.
#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
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

// A table of `base` rows and then the rows of one user.
struct UserTables {
  Problem with;
  Problem without;
};

UserTables TablesOf(const TableShape& shape, const at::Tensor& base, const at::Tensor& user,
                    const at::Tensor& base_y, const at::Tensor& user_y) {
  return {Table(shape, at::cat({base, user}), at::cat({base_y, user_y})),
          Table(shape, base, base_y)};
}

FitQuestion UserQuestion(const char* loss, std::int64_t features, std::int64_t rows_per_user) {
  FitQuestion question;
  question.table = ShapeFor(loss, features);
  question.records = 1000;
  question.delta = Delta(1e-6);
  question.rows_per_user = rows_per_user;
  return question;
}

TEST(UserSensitivity, SumsMoveByNoMoreThanTheNoiseCovers) {
  at::manual_seed(10);
  for (const char* loss : {"squares", "logistic", "softmax", "huber"}) {
    for (const std::int64_t k : {1, 2, 5}) {
      const FitQuestion question = UserQuestion(loss, 3, k);
      const FitPlan plan = PlanFit(question, Choice("gradient"));
      const FitPlan newton = PlanFit(question, Choice("newton"));
      const double covered = plan.noises[0].deviation / plan.multiplier;
      const double moment = newton.noises[1].deviation / newton.second_multiplier;
      double largest = 0;
      for (int trial = 0; trial < 40; ++trial) {
        const bool alike = trial % 2 == 0;  // all rows of the user are the same
        at::Tensor user = at::randn({k, 3}, at::kDouble).mul_(3);
        at::Tensor user_y = RandomTargets(question.table, k);
        if (alike) {
          user = user.narrow(0, 0, 1).expand({k, 3}).contiguous();
          user_y = user_y.narrow(0, 0, 1).expand({k}).contiguous();
        }
        const UserTables tables = TablesOf(question.table, at::randn({4, 3}, at::kDouble), user,
                                           RandomTargets(question.table, 4), user_y);
        const at::Tensor theta = at::randn({3, tables.with.scores()}, at::kDouble).mul_(trial);
        const double moved = internal::GradientSum(tables.with, theta, plan.clip)
                                 .sub(internal::GradientSum(tables.without, theta, plan.clip))
                                 .norm()
                                 .item<double>();
        EXPECT_LE(moved, covered) << loss << " " << k;
        EXPECT_LE(moved, newton.noises[0].deviation / newton.multiplier) << loss << " " << k;
        const double matrix = internal::SecondMoment(tables.with)
                                  .sub(internal::SecondMoment(tables.without))
                                  .norm()
                                  .item<double>();
        EXPECT_LE(matrix, moment);
        if (alike && user[0].norm().item<double>() > 1) {
          EXPECT_GT(matrix, 0.999 * moment);
        }
        largest = std::max(largest, moved);
      }
      EXPECT_GT(largest, 0.98 * covered) << loss << " " << k;
    }
  }
}

TEST(UserSensitivity, MinimaMoveByNoMoreThanTheNoiseCovers) {
  at::manual_seed(11);
  for (const char* loss : {"squares", "logistic", "softmax", "huber"}) {
    for (const std::int64_t k : {2, 5}) {
      FitQuestion question = UserQuestion(loss, 2, k);
      question.lambda = 0.5;
      const FitPlan plan =
          PlanFit(question, Choice("output", {{"proximal-steps", std::int64_t{1}}}));
      for (int trial = 0; trial < 10; ++trial) {
        const UserTables tables = TablesOf(
            question.table, at::randn({3, 2}, at::kDouble), at::randn({k, 2}, at::kDouble).mul_(3),
            RandomTargets(question.table, 3), RandomTargets(question.table, k));
        const double moved = ExactMinimum(tables.with, *question.lambda)
                                 .sub(ExactMinimum(tables.without, *question.lambda))
                                 .norm()
                                 .item<double>();
        EXPECT_LE(moved, plan.noises[0].deviation / plan.multiplier) << loss << " " << k;
      }
    }
  }
  // Rows that pull together, against a strong regularisation: nearly attained.
  FitQuestion question = UserQuestion("squares", 1, 4);
  question.lambda = 1000;
  const FitPlan plan = PlanFit(question, Choice("output", {{"proximal-steps", std::int64_t{1}}}));
  const at::Tensor one = at::ones({4, 1}, at::kDouble);
  const UserTables tables = TablesOf(question.table, one.narrow(0, 0, 0), one,
                                     at::zeros({0}, at::kDouble), at::ones({4}, at::kDouble));
  const double moved =
      ExactMinimum(tables.with, 1000).sub(ExactMinimum(tables.without, 1000)).norm().item<double>();
  EXPECT_GT(moved, 0.99 * plan.noises[0].deviation / plan.multiplier);
}

TEST(UserSensitivity, ProductsWithTheTargetsAreCovered) {
  const FitPlan plan = PlanFit(UserQuestion("squares", 2, 3), Choice("adassp"));
  EXPECT_NEAR(plan.noises[0].deviation / plan.multiplier, 3, 1e-2);  // 3 rows x x^T
  EXPECT_NEAR(plan.noises[1].deviation / plan.multiplier, 3, 1e-2);  // 3 rows x y
}

// delta(epsilon) of the minimum of (lambda / 2) t^2 + b t for a Gaussian b, with and without the
// losses log(1 + e^-t) of k rows, by its density: t is the minimum for one b.
double ExactObjectiveDelta(std::int64_t rows, double lambda, double sigma, double epsilon) {
  const auto k = static_cast<double>(rows);
  const auto log_density = [&](double t, double count) {
    const double p = 1 / (1 + std::exp(-t));
    const double b = count * (1 - p) - lambda * t;
    return -0.5 * b * b / (sigma * sigma) + std::log(lambda + count * p * (1 - p));
  };
  const double scale = 1 / (sigma * std::sqrt(2 * std::numbers::pi));
  const double reach = (k + 12 * sigma) / lambda;
  const int cells = 400'000;
  double up = 0;
  double down = 0;
  for (int i = 0; i < cells; ++i) {
    const double t = -reach + 2 * reach * (i + 0.5) / cells;
    const double with = scale * std::exp(log_density(t, k));
    const double without = scale * std::exp(log_density(t, 0));
    up += std::max(0.0, with - std::exp(epsilon) * without);
    down += std::max(0.0, without - std::exp(epsilon) * with);
  }
  return std::max(up, down) * 2 * reach / cells;
}

TEST(UserSensitivity, ObjectivePerturbationHidesAUserByItsDensity) {
  for (const std::int64_t k : {1, 2, 4}) {
    FitQuestion question = UserQuestion("logistic", 1, k);
    question.delta = Delta(1e-4);
    question.lambda = 20;
    const FitPlan plan = PlanFit(question, Choice("objective"));
    EXPECT_LE(ExactObjectiveDelta(k, *question.lambda, plan.sigma, 1), 1e-4) << k;
    // The noise for half as many rows would not do.
    if (k == 1) continue;
    question.rows_per_user = k / 2;
    const FitPlan less = PlanFit(question, Choice("objective"));
    EXPECT_GT(ExactObjectiveDelta(k, *question.lambda, less.sigma, 1), 1e-4) << k;
  }
}

TEST(UserSensitivity, WhatIsNotCoveredIsRefused) {
  FitQuestion question = UserQuestion("logistic", 2, 2);
  EXPECT_THROW(PlanFit(question, Choice("gradient", {{"batch", std::int64_t{100}}})), Error);
  EXPECT_NO_THROW(PlanFit(question, Choice("gradient", {{"batch", std::int64_t{1000}}})));
  question.adjacency = Adjacency::kReplaceOne;
  EXPECT_THROW(PlanFits(question), Error);
  question.adjacency = Adjacency::kZeroOut;
  EXPECT_THROW(PlanFits(question), Error);
  question.rows_per_user = 1;
  EXPECT_NO_THROW(PlanFits(question));
  question.rows_per_user = 0;
  EXPECT_THROW(PlanFits(question), Error);
}

}  // namespace
}  // namespace sordino
