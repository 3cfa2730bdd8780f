// Fits as an auditor sees them: two neighbouring tables, many fits of a tiny problem, and the
// epsilon that the two samples prove. What is proven is wrong with probability at most 2e-6 (two
// Clopper-Pearson bounds at 1e-6 each), events are fixed in advance, and so are the seeds.
//
// The problem: rows (1, 1) / sqrt(2) and (-1, 1) / sqrt(2) of class 0, whose second column is that
// of the intercept; the neighbour lacks the second row. lambda = 0.2, epsilon = 2, pure.
#include <ATen/Functions.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>
#include <vector>

#include "sordino/convex/method.h"
#include "sordino/mechanisms/objective_perturbation.h"
#include "sordino/mechanisms/testing/test_support.h"
#include "sordino/random/grid_noise.h"

namespace sordino {
namespace {

constexpr double kAuditAlpha = 1e-6;
constexpr double kAuditEpsilon = 2;
constexpr double kAuditLambda = 0.2;
constexpr int kFitsPerTable = 50'000;  // 10^5 in all
const double kHalf = std::sqrt(0.5);

using Weights = std::array<double, 2>;

// Scores of the two rows.
double FirstScore(const Weights& w) { return kHalf * (w[0] + w[1]); }
double SecondScore(const Weights& w) { return kHalf * (w[1] - w[0]); }

// Where the determinant of the Hessian grows most by the second row: the first is far on the wrong
// side and the second undecided.
bool IsTelling(const Weights& w) { return FirstScore(w) > 5 && std::abs(SecondScore(w)) < 1; }

struct Audit {
  double largest = 0;  // proven, over all events
  double telling = 0;  // proven by IsTelling
};

Audit AuditOf(const std::vector<Weights>& with, const std::vector<Weights>& without) {
  Audit audit;
  const auto proven = [&](const std::function<bool(const Weights&)>& event) {
    const auto marks = [&](const std::vector<Weights>& fits) {
      std::vector<double> values;
      values.reserve(fits.size());
      for (const Weights& w : fits) values.push_back(event(w) ? 1 : 0);
      return values;
    };
    const auto a = marks(with);
    const auto b = marks(without);
    const double both = std::max(ProvenEpsilon(a, b, 0.5, 0, kAuditAlpha),
                                 ProvenEpsilon(b, a, 0.5, 0, kAuditAlpha));
    audit.largest = std::max(audit.largest, both);
    return both;
  };
  audit.telling = proven(IsTelling);
  for (const double t : {-8.0, -4.0, -2.0, 0.0, 2.0, 4.0}) {
    proven([t](const Weights& w) { return SecondScore(w) > t; });
    proven([t](const Weights& w) { return SecondScore(w) <= t; });
    proven([t](const Weights& w) { return w[1] > t; });
    proven([t](const Weights& w) { return w[1] <= t; });
  }
  return audit;
}

FitQuestion AuditQuestion() {
  FitQuestion question;
  question.table = {.loss = "logistic", .features = 2};
  question.records = 2;
  question.epsilon = Epsilon(kAuditEpsilon);
  question.lambda = kAuditLambda;
  return question;
}

std::vector<Weights> Fits(const FitPlan& plan, std::int64_t rows, int fits, std::uint64_t seed) {
  const c10::InferenceMode guard;
  const at::Tensor x =
      at::tensor({kHalf, kHalf, -kHalf, kHalf}, at::kDouble).view({2, 2}).narrow(0, 0, rows);
  const Problem problem(plan.question.table, x.clone(), at::zeros({rows}, at::kLong));
  std::vector<Weights> result;
  for (int i = 0; i < fits; ++i) {
    RandomSource source(seed + static_cast<std::uint64_t>(i));
    const at::Tensor theta = Fit(plan, problem, source).coefficients;
    result.push_back({theta.const_data_ptr<double>()[0], theta.const_data_ptr<double>()[1]});
  }
  return result;
}

TEST(FitAudit, ObjectivePerturbationKeepsItsEpsilon) {
  const FitPlan plan = PlanFit(AuditQuestion(), "objective");
  const Audit audit =
      AuditOf(Fits(plan, 2, kFitsPerTable, 1), Fits(plan, 1, kFitsPerTable, 1 << 20));
  EXPECT_LE(audit.largest, kAuditEpsilon);
  EXPECT_GT(audit.largest, 0.3);  // the events have power
}

TEST(FitAudit, OutputPerturbationKeepsItsEpsilon) {
  const FitPlan plan = PlanFit(AuditQuestion(), "output");
  const Audit audit = AuditOf(Fits(plan, 2, 5000, 1), Fits(plan, 1, 5000, 1 << 20));
  EXPECT_LE(audit.largest, kAuditEpsilon);
}

// The same mechanism as other libraries have it: the penalty leaves out the intercept, and the
// solver stops where no entry of the gradient is above 1e-4, after 100 steps at the latest. The
// noise is that of the exact minimum with every weight regularised.
Weights CommonFit(std::int64_t rows, const Weights& b) {
  Weights w = {0, 0};
  for (int step = 0; step < 100; ++step) {
    const std::array<double, 2> xs = {kHalf, -kHalf};
    double g0 = b[0] + kAuditLambda * w[0];
    double g1 = b[1];
    double h00 = kAuditLambda, h01 = 0, h11 = 1e-9;
    for (std::int64_t i = 0; i < rows; ++i) {
      const double x = xs[static_cast<std::size_t>(i)];
      const double p = 1 / (1 + std::exp(-(x * w[0] + kHalf * w[1])));
      g0 += p * x;
      g1 += p * kHalf;
      const double f = p * (1 - p);
      h00 += f * x * x;
      h01 += f * x * kHalf;
      h11 += f * 0.5;
    }
    if (std::max(std::abs(g0), std::abs(g1)) <= 1e-4) break;
    const double determinant = h00 * h11 - h01 * h01;
    double d0 = (h11 * g0 - h01 * g1) / determinant;
    double d1 = (h00 * g1 - h01 * g0) / determinant;
    const double size = std::hypot(d0, d1);
    const double factor = size > 1 ? 1 / size : 1;
    w[0] -= factor * d0;
    w[1] -= factor * d1;
  }
  return w;
}

TEST(FitAudit, InterceptOutsideThePenaltyAndALooseSolverBreakTheGuarantee) {
  const auto rate = PureObjectiveRate(
      PerturbedObjective::Logistic(1, kAuditLambda, Adjacency::kAddRemove), Epsilon(kAuditEpsilon));
  ASSERT_TRUE(rate.has_value());
  const GridLaplace noise(std::sqrt(2.0) / *rate);
  const auto fits = [&](std::int64_t rows, std::uint64_t seed) {
    InsecureSeededGenerator generator(seed);
    std::vector<Weights> result;
    for (int i = 0; i < kFitsPerTable; ++i) {
      const double b0 = noise.AddTo(generator, 0);
      const double b1 = noise.AddTo(generator, 0);
      result.push_back(CommonFit(rows, {b0, b1}));
    }
    return result;
  };
  EXPECT_GT(AuditOf(fits(2, 1), fits(1, 2)).telling, kAuditEpsilon);
}

// Noise on the coefficients has the deviation that a fit names.
TEST(FitNoise, HasTheNamedDeviation) {
  FitQuestion question = AuditQuestion();
  for (const double delta : {0.0, 1e-5}) {
    question.delta = Delta(delta);
    const FitPlan plan = PlanFit(question, "output");
    const std::vector<Weights> fits = Fits(plan, 2, 4000, 77);
    std::vector<double> first;
    first.reserve(fits.size());
    for (const Weights& w : fits) first.push_back(w[0]);
    const SampleMoments moments = MomentsOf(first);
    RandomSource source(1);
    // 4000 draws: the variance of a Laplace sample is right to 3.5 % (one deviation), five are
    // allowed; a false alarm has a probability below 1e-6.
    EXPECT_NEAR(moments.variance / std::pow(plan.noises[0].deviation, 2), 1, 0.18) << delta;
    // By symmetry of the two rows the first weight is 0.
    EXPECT_LT(std::abs(moments.mean), 5 * moments.standard_error);
  }
}

}  // namespace
}  // namespace sordino
