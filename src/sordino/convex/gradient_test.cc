#include <ATen/Functions.h>
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace sordino
