#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "sordino/accounting/accountant.h"
#include "sordino/accounting/failures.h"
#include "sordino/base/error.h"
#include "sordino/convex/method.h"

namespace sordino {
namespace {

FitQuestion Question(std::int64_t records) {
  FitQuestion question;
  question.table = {.loss = "logistic", .features = 3};
  question.records = records;
  question.delta = Delta(1e-6);
  return question;
}

Problem Separable(const FitQuestion& question, std::int64_t rows) {
  at::manual_seed(1);
  at::Tensor x = at::randn({rows, 3}, at::kDouble);
  const at::Tensor y = x.select(1, 0).gt(0).to(at::kLong);
  return {question.table, x, y};
}

TEST(GradientPerturbation, LearnsWhatIsThere) {
  const FitQuestion question = Question(5000);
  const Problem problem = Separable(question, 5000);
  RandomSource source(1);
  const FitResult result = Fit(PlanFit(question, "gradient"), problem, source);
  EXPECT_GT(Evaluate(problem, result.coefficients).accuracy, 0.95);
  EXPECT_FALSE(result.is_private);
}

TEST(GradientPerturbation, SpendsItsBudget) {
  for (const Adjacency adjacency :
       {Adjacency::kAddRemove, Adjacency::kReplaceOne, Adjacency::kZeroOut}) {
    for (const Choice& method :
         {Choice("gradient"), Choice("gradient", {{"batch", std::int64_t{500}}}),
          Choice("gradient", {{"noise", std::string("laplace")}})}) {
      FitQuestion question = Question(5000);
      question.adjacency = adjacency;
      const FitPlan plan = PlanFit(question, method);
      const Interval spent = SpentEpsilon(plan.event, question.delta, plan.failure);
      EXPECT_LE(spent.upper, 1) << plan.event.ToString();
      EXPECT_GT(spent.upper, 0.999) << plan.event.ToString();
    }
  }
}

TEST(GradientPerturbation, PureEpsilonIsTheSumOfItsSteps) {
  FitQuestion question = Question(5000);
  question.delta = Delta(0);
  const FitPlan plan = PlanFit(question, {"gradient", {{"steps", std::int64_t{7}}}});
  EXPECT_TRUE(plan.is_laplace);
  EXPECT_EQ(plan.event.TotalCount(), 7U);
  EXPECT_NEAR(plan.multiplier, 7, 1e-6);
  EXPECT_LE(SpentEpsilon(plan.event, Delta(0), 0).upper, 1);
}

// k steps of Laplace noise, each purely private: their epsilons add up by basic composition, and
// cost about sqrt(k) of them with a small delta. The noise of a plan follows.
TEST(GradientPerturbation, LaplaceStepsCostFarLessThanTheirSumWithADelta) {
  constexpr std::int64_t kSteps = 400;
  FitQuestion question = Question(5000);
  const FitPlan plan =
      PlanFit(question, {"gradient", {{"noise", std::string("laplace")}, {"steps", kSteps}}});
  ASSERT_TRUE(plan.is_laplace);
  ASSERT_EQ(plan.event.TotalCount(), std::uint64_t{kSteps});
  const double step = 1 / plan.multiplier;
  const AccountReport report = Account(plan.event, question.delta);
  const auto method = [&](const std::string& name) {
    for (const MethodReport& one : report.methods) {
      if (one.name == name) return one.value;
    }
    ADD_FAILURE() << name << " did not answer";
    return kInfinity;
  };
  EXPECT_NEAR(method("basic"), kSteps * step, 1e-9 * kSteps * step);
  // Theorem 3.5 of Kairouz, Oh and Viswanath, with all of delta as its slack.
  const double advanced = std::sqrt(2 * std::log(1e6) * kSteps) * step +
                          kSteps * step * std::expm1(step) / (std::exp(step) + 1);
  EXPECT_NEAR(method("advanced"), advanced, 1e-6 * advanced);
  EXPECT_LT(method("advanced"), method("basic") / 3);
  EXPECT_LE(report.value.upper, method("advanced"));
  EXPECT_GT(report.value.upper, 0.999);
  EXPECT_LE(report.value.upper, 1);
  // Without a delta the same epsilon takes the noise of the sum.
  question.delta = Delta(0);
  const FitPlan pure = PlanFit(question, {"gradient", {{"steps", kSteps}}});
  EXPECT_NEAR(pure.multiplier, kSteps, 1e-6 * kSteps);
  EXPECT_LT(plan.multiplier, pure.multiplier / 3);
}

}  // namespace
}  // namespace sordino
