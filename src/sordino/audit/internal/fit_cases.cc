// Cases of `sordino fit`: every method on a table of one column, with one row and with none.
#include <ATen/Functions.h>
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>

#include "sordino/audit/internal/self_audit_case.h"
#include "sordino/base/check.h"
#include "sordino/convex/method.h"

namespace sordino::internal {
namespace {

constexpr double kFitEpsilon = 2;
constexpr double kFitPenalty = 5;
constexpr std::int64_t kFitsTold = 100;  // between reports of progress

FitQuestion QuestionOf(const char* loss, double delta) {
  FitQuestion question;
  question.table = {.loss = loss, .features = 1};
  question.records = 1;
  question.epsilon = Epsilon(kFitEpsilon);
  question.delta = Delta(delta);
  question.lambda = kFitPenalty;
  question.weight_norm = 1;
  return question;
}

// Pure where the method has it, of classes where it has them.
FitPlan FirstPlan(const FitMethod& method) {
  std::string refusal;
  for (const char* const loss : {"logistic", "squares"}) {
    for (const double delta : {0.0, 1e-2}) {
      PlannedFit planned = method.Plan(QuestionOf(loss, delta), {});
      if (planned.plan) return *planned.plan;
      refusal = planned.refusal;
    }
  }
  SORDINO_CHECK(false, "a method has no plan for the self-audit");
  return {};
}

Problem TableOf(const FitPlan& plan, World world) {
  const std::int64_t rows = world == World::kWith ? 1 : 0;
  const bool has_classes = plan.question.table.loss.name != "squares";
  return {plan.question.table, at::ones({rows, 1}, at::kDouble),
          at::ones({rows}, has_classes ? at::kLong : at::kDouble)};
}

std::vector<double> FitScores(const FitPlan& plan, World world, std::int64_t scores,
                              AuditRuns& runs) {
  const c10::InferenceMode guard;
  const Problem problem = TableOf(plan, world);
  std::vector<double> all;
  while (std::ssize(all) < scores) {
    const auto seed = runs.NextSeed();
    RandomSource source = seed ? RandomSource(*seed) : RandomSource();
    all.push_back(Fit(plan, problem, source).coefficients.flatten()[-1].item<double>());
    if (std::ssize(all) % kFitsTold == 0) {
      runs.Tell(static_cast<double>(std::ssize(all)) / static_cast<double>(scores));
    }
  }
  return all;
}

}  // namespace

std::vector<SelfAuditCase> FitCases() {
  std::vector<SelfAuditCase> cases;
  for (const FitMethod* const method : FitMethods().all()) {
    const FitPlan plan = FirstPlan(*method);
    SelfAuditCase one;
    one.name = fmt::format("fit-{}", method->name());
    one.what = fmt::format("fit by '{}', {} loss", method->name(), plan.question.table.loss.name);
    one.deltas = {plan.question.delta.value()};
    one.claim = [](Delta) { return kFitEpsilon; };
    one.quick_scores = 2000;
    one.score = [plan](World world, std::int64_t scores, AuditRuns& runs) {
      return FitScores(plan, world, scores, runs);
    };
    cases.push_back(std::move(one));
  }
  return cases;
}

}  // namespace sordino::internal
