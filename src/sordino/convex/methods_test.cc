// What every method has to keep: its budget, its bounds, and an answer for every table.
#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <cmath>

#include "sordino/accounting/failures.h"
#include "sordino/base/error.h"
#include "sordino/convex/internal/published.h"
#include "sordino/convex/method.h"
#include "sordino/mechanisms/objective_perturbation.h"

namespace sordino {
namespace {

FitQuestion QuestionOf(const char* loss, std::int64_t records, std::int64_t features,
                       std::int64_t classes = 2) {
  FitQuestion question;
  question.table = {.loss = loss, .features = features, .classes = classes};
  question.records = records;
  question.delta = Delta(1e-6);
  return question;
}

// Rows whose target is decided by the first column.
Problem EasyProblem(const FitQuestion& question) {
  at::manual_seed(7);
  const std::int64_t n = question.records;
  at::Tensor x = at::randn({n, question.table.features}, at::kDouble);
  x.div_(x.norm(2, {1}, true));
  const at::Tensor first = x.select(1, 0);
  if (question.table.loss.name == "squares") return {question.table, x, first.mul(0.8)};
  const at::Tensor y = first.gt(0).to(at::kLong);
  return {question.table, x, y};
}

TEST(Methods, SpendTheirBudgetAndNoMore) {
  for (const Adjacency adjacency :
       {Adjacency::kAddRemove, Adjacency::kReplaceOne, Adjacency::kZeroOut}) {
    for (const char* loss : {"squares", "logistic"}) {
      for (const double delta : {1e-6, 0.0}) {
        FitQuestion question = QuestionOf(loss, 2000, 4);
        question.adjacency = adjacency;
        question.delta = Delta(delta);
        int planned = 0;
        for (const PlannedFit& fit : PlanFits(question)) {
          if (!fit.plan) {
            EXPECT_FALSE(fit.refusal.empty());
            continue;
          }
          ++planned;
          const Interval spent = SpentEpsilon(fit.plan->event, question.delta, fit.plan->failure);
          EXPECT_LE(spent.upper, 1) << fit.method << " " << fit.plan->event.ToString();
          EXPECT_GT(spent.upper, 0.9999) << fit.method << " " << fit.plan->event.ToString();
          EXPECT_EQ(fit.plan->event.adjacency(), adjacency);
        }
        EXPECT_GE(planned, delta > 0 ? 5 : 4) << loss;
      }
    }
  }
}

// The plan at the delta of a ledger: a larger epsilon, and not much larger.
TEST(Methods, AreCountedWithTheLossThatALedgerKeeps) {
  FitQuestion question = QuestionOf("logistic", 2000, 4);
  question.delta = Delta(1e-6);
  question.epsilon = Epsilon(0.5);
  int approximate = 0;
  for (const PlannedFit& fit : PlanFits(question)) {
    if (!fit.plan) continue;
    const CountedFit counted = CountedBy(*fit.plan, Delta(1e-9));
    if (fit.plan->event.name() != "approximate") {
      EXPECT_EQ(counted.event, fit.plan->event) << fit.method;
      EXPECT_EQ(counted.failure, fit.plan->failure) << fit.method;
      continue;
    }
    ++approximate;
    EXPECT_EQ(CountedBy(*fit.plan, Delta(1e-6)).event, fit.plan->event);
    double epsilon = 0;
    for (const auto& [release, count] : counted.event.Flatten()) {
      if (release.name() != "approximate") continue;
      EXPECT_LE(release.number("delta"), 1e-9);
      epsilon = release.number("epsilon");
    }
    EXPECT_GT(epsilon, 0.4) << fit.method;
    EXPECT_LT(epsilon, 0.8) << fit.method;
    EXPECT_GT(counted.failure, 0) << fit.method;
  }
  EXPECT_GE(approximate, 2);
}

TEST(Methods, LearnAnEasyTable) {
  for (const char* loss : {"squares", "logistic", "softmax", "huber"}) {
    for (const double delta : {1e-6, 0.0}) {
      FitQuestion question = QuestionOf(loss, 20'000, 3);
      question.delta = Delta(delta);
      question.weight_norm = std::string(loss) == "squares" ? 1 : 10;  // it is 0.8
      const Problem problem = EasyProblem(question);
      for (const PlannedFit& fit : PlanFits(question)) {
        if (!fit.plan) continue;
        RandomSource source(11);
        const FitResult result = Fit(*fit.plan, problem, source);
        EXPECT_GT(Evaluate(problem, result.coefficients).accuracy, 0.9)
            << fit.method << " " << loss << " " << delta;
      }
    }
  }
}

// No linear model has less regularised risk than the one without privacy.
TEST(Methods, WithoutPrivacyTheMinimumIsFound) {
  for (const char* loss : {"squares", "logistic", "softmax", "huber"}) {
    const FitQuestion question = QuestionOf(loss, 3000, 4);
    const Problem problem = EasyProblem(question);
    const FitPlan plan = PlanWithoutPrivacy(question);
    const FitResult best = FitWithoutPrivacy(plan, problem);
    EXPECT_FALSE(best.is_private);
    EXPECT_EQ(plan.event.ToString(), Event::None().ToString());
    const auto objective = [&](const at::Tensor& theta) {
      return 3000 * Evaluate(problem, theta).risk +
             0.5 * plan.lambda * theta.square().sum().item<double>();
    };
    const double least = objective(best.coefficients);
    at::manual_seed(8);
    for (int trial = 0; trial < 20; ++trial) {
      const at::Tensor other = at::randn_like(best.coefficients).mul_(0.1);
      EXPECT_GT(objective(best.coefficients.add(other)), least) << loss;
    }
    EXPECT_GT(Evaluate(problem, best.coefficients).accuracy, 0.97) << loss;
  }
}

TEST(Methods, AutoTakesTheLeastPredictedRisk) {
  const std::vector<PlannedFit> plans = PlanFits(QuestionOf("logistic", 5000, 10));
  const FitPlan chosen = ChooseMethod(plans);
  for (const PlannedFit& fit : plans) {
    if (!fit.plan) continue;
    EXPECT_LE(chosen.excess_risk, fit.plan->excess_risk) << fit.method;
  }
  EXPECT_THROW(ChooseMethod({{.method = "output", .refusal = "no."}}), Error);
}

TEST(Methods, MoreBudgetAndMoreRecordsPredictLessRisk) {
  for (const FitMethod* method : FitMethods().all()) {
    FitQuestion question = QuestionOf("squares", 5000, 10);
    const Choice choice{std::string(method->name())};
    const double risk = PlanFit(question, choice).excess_risk;
    question.epsilon = Epsilon(4);
    EXPECT_LT(PlanFit(question, choice).excess_risk, risk) << method->name();
    question.epsilon = Epsilon(1);
    question.records = 50'000;
    EXPECT_LT(PlanFit(question, choice).excess_risk, risk) << method->name();
  }
}

TEST(Methods, EveryDegenerateTableHasAnAnswer) {
  struct Case {
    const char* name;
    at::Tensor x;
  };
  at::manual_seed(3);
  const at::Tensor duplicate = at::randn({20, 1}, at::kDouble).expand({20, 3}).contiguous();
  const std::vector<Case> cases = {
      {"empty", at::zeros({0, 3}, at::kDouble)},
      {"one row", at::randn({1, 3}, at::kDouble)},
      {"zeros", at::zeros({20, 3}, at::kDouble)},
      {"constant column",
       at::cat({at::ones({20, 1}, at::kDouble), at::randn({20, 2}, at::kDouble)}, 1)},
      {"duplicate columns", duplicate},
      {"huge values", at::randn({20, 3}, at::kDouble).mul(1e300)},
      {"more columns than rows", at::randn({3, 30}, at::kDouble)},
  };
  for (const Case& table : cases) {
    for (const char* loss : {"squares", "logistic", "softmax", "huber"}) {
      const std::int64_t n = table.x.size(0);
      FitQuestion question = QuestionOf(loss, std::max<std::int64_t>(n, 1), table.x.size(1));
      // A single class, and the largest target.
      const at::Tensor y =
          std::string(loss) == "squares" ? at::ones({n}, at::kDouble) : at::zeros({n}, at::kLong);
      const Problem problem(question.table, table.x.clone(), y);
      for (const double delta : {1e-6, 0.0}) {
        question.delta = Delta(delta);
        for (const PlannedFit& fit : PlanFits(question)) {
          if (!fit.plan) continue;
          RandomSource source(5);
          const FitResult result = Fit(*fit.plan, problem, source);
          EXPECT_TRUE(result.coefficients.isfinite().all().item<bool>())
              << table.name << " " << loss << " " << fit.method;
        }
      }
    }
  }
}

TEST(Methods, WrongQuestionsAreRefused) {
  FitQuestion question = QuestionOf("logistic", 100, 3);
  question.lambda = -1;
  EXPECT_THROW(PlanFits(question), Error);
  question.lambda = 1e-9;  // J is above epsilon
  EXPECT_THROW(PlanFit(question, "objective"), Error);
  EXPECT_THROW(PlanFit(question, "adassp"), Error);
  question.lambda = std::nullopt;
  EXPECT_THROW(PlanFit(question, {"output", {{"descent-steps", std::int64_t{5}}}}), Error);
  EXPECT_THROW(PlanFit(question, {"output", {{"steps", std::int64_t{5}}}}), Error);
  EXPECT_THROW(PlanFit(question, "outputs"), Error);
  question.records = 0;
  EXPECT_THROW(PlanFits(question), Error);
}

TEST(Methods, TableOfAnotherShapeIsRefused) {
  const FitQuestion question = QuestionOf("logistic", 100, 3);
  const FitPlan plan = PlanFit(question, "gradient");
  RandomSource source(1);
  FitQuestion other = question;
  other.table.row_bound = 2;
  EXPECT_THROW(Fit(plan, EasyProblem(other), source), Error);
  FitQuestion replaced = question;
  replaced.adjacency = Adjacency::kReplaceOne;
  replaced.records = 99;
  EXPECT_THROW(Fit(PlanFit(replaced, "gradient"), EasyProblem(question), source), Error);
}

// Reference values of the literature.
TEST(Published, ConstantsAreThoseOfThePapers) {
  EXPECT_NEAR(KiferNoise(1, Epsilon(1), Delta(1e-5)), 10.08, 0.005);
  EXPECT_DOUBLE_EQ(KiferRegularisation(0.25, Epsilon(1)), 0.5);
  const double n = 36177;
  const PublishedMinima minima = IyengarMinima(n, 1, Epsilon(0.1), Delta(1 / (n * n)));
  EXPECT_NEAR(minima.regularisation, 202.0202, 1e-4);
  EXPECT_NEAR(minima.objective_noise, 4.641795e-3, 1e-9);
  EXPECT_NEAR(minima.output_noise, 1.115836e-3, 1e-9);
  const PublishedAdassp adassp = WangAdassp(10, Epsilon(1), Delta(1e-6), 0.05);
  EXPECT_NEAR(adassp.noise, 11.85181, 1e-5);
  EXPECT_NEAR(adassp.regularisation, 107.93643, 1e-5);
}

// The exact profile asks for less noise than the published ones at the same lambda.
// Logistic loss of rows of norm 1: a row's gradient is at most 1, and the curvature 1/4.
TEST(OutputPlan, NoiseIsThatOfWhatOneRowMoves) {
  for (const Adjacency adjacency :
       {Adjacency::kAddRemove, Adjacency::kZeroOut, Adjacency::kReplaceOne}) {
    FitQuestion question = QuestionOf("logistic", 1000, 5);
    question.adjacency = adjacency;
    question.lambda = 20;
    const double distance = adjacency == Adjacency::kReplaceOne ? 2 : 1;
    const FitPlan exact = PlanFit(question, "output");
    const double moved = exact.multiplier * distance / 20;
    EXPECT_GE(exact.noises[0].deviation, moved);
    EXPECT_LE(exact.noises[0].deviation, 1.001 * moved);
    if (adjacency == Adjacency::kAddRemove) continue;
    const FitPlan stopped = PlanFit(question, {"output", {{"descent-steps", std::int64_t{5}}}});
    const double kept = std::pow(1 - 20 / (1000 * 0.25 + 20), 5);
    EXPECT_GE(stopped.noises[0].deviation, stopped.multiplier * distance / 20 * (1 - kept));
    EXPECT_LE(stopped.noises[0].deviation, 1.001 * stopped.multiplier * distance / 20 * (1 - kept));
  }
}

TEST(ObjectivePlan, HasTheNoiseOfTheExactProfile) {
  FitQuestion question = QuestionOf("logistic", 10'000, 5);
  question.delta = Delta(1e-5);
  question.lambda = 0.5;
  const FitPlan plan = PlanFit(question, "objective");
  const auto exact = ObjectiveNoise(PerturbedObjective::Logistic(1, 0.5, Adjacency::kAddRemove),
                                    Epsilon(0.99), Delta(0.99e-5));
  ASSERT_TRUE(exact.has_value());
  // 2^-20 of the budget is kept back for the accountant's rounding.
  EXPECT_GE(plan.sigma, *exact);
  EXPECT_LT(plan.sigma, *exact * (1 + 1e-5));
  // 6.266 for the whole budget; a hundredth pays for the distance from the minimum.
  EXPECT_NEAR(plan.sigma, 6.266, 0.15);
  EXPECT_LT(plan.sigma, KiferNoise(1, Epsilon(1), Delta(1e-5)));
}

}  // namespace
}  // namespace sordino
