#include "sordino/convex/method.h"

#include <ATen/Functions.h>
#include <fmt/format.h>

#include <utility>

#include "sordino/base/check.h"
#include "sordino/base/error.h"
#include "sordino/convex/internal/budget.h"
#include "sordino/convex/internal/minimum.h"

namespace sordino {

#define SORDINO_COMPONENT(function, file) const FitMethod& function();
#include "sordino/convex/method_list.inc"
#undef SORDINO_COMPONENT

const Registry<FitMethod>& FitMethods() {
  static const Registry<FitMethod> list("method", {
#define SORDINO_COMPONENT(function, file) &function(),
#include "sordino/convex/method_list.inc"
#undef SORDINO_COMPONENT
                                                  });
  return list;
}

at::Tensor NoiseOfSum(const FitResult& result, const at::Tensor& weights) {
  if (!result.noise_factor.defined()) {
    return result.deviation.mul(weights.unsqueeze(1)).square_().sum(0).sqrt_();
  }
  return result.noise_factor.t().mv(weights).norm().unsqueeze(0);
}

CountedFit FitMethod::Counted(const FitPlan& plan, Delta /*loss*/) const {
  return {plan.event, plan.failure};
}

CountedFit CountedBy(const FitPlan& plan, Delta loss) {
  return FitMethods().Find(plan.method.name).Counted(plan, loss);
}

void CheckQuestion(const FitQuestion& question) {
  CheckedLoss(question.table);
  CheckRange("the number of records", static_cast<double>(question.records), 1, false,
             static_cast<double>(kMaxConvexRows), false);
  CheckRange("epsilon", question.epsilon.value(), 1e-6, false, kInfinity, true);
  if (question.delta.value() > 0) {
    CheckRange("delta", question.delta.value(), 1e-20, false, 1, true);
  }
  CheckRange("the norm of the weights that is assumed", question.weight_norm, 0, true, 1e6, false);
  if (question.lambda) CheckRange("lambda", *question.lambda, 1e-100, false, 1e100, false);
  CheckRange("the number of rows of a user", static_cast<double>(question.rows_per_user), 1, false,
             static_cast<double>(kMaxFitRowsPerUser), false);
  if (question.rows_per_user > 1 && question.adjacency != Adjacency::kAddRemove) {
    throw Error(fmt::format(
        "users with up to {} rows need add-remove adjacency: under {} the number of rows is "
        "public, and a user who is replaced would change it.",
        question.rows_per_user, AdjacencyName(question.adjacency)));
  }
}

std::vector<PlannedFit> PlanFits(const FitQuestion& question) {
  CheckQuestion(question);
  std::vector<PlannedFit> plans;
  for (const FitMethod* method : FitMethods().all()) {
    try {
      plans.push_back(method->Plan(question, {}));
    } catch (const Error& error) {
      plans.push_back({.method = std::string(method->name()), .refusal = error.what()});
    }
  }
  return plans;
}

FitPlan PlanFit(const FitQuestion& question, const Choice& method) {
  CheckQuestion(question);
  PlannedFit planned = FitMethods().Checked(method).Plan(question, method.options);
  if (!planned.plan) throw Error(planned.refusal);
  return *planned.plan;
}

FitPlan ChooseMethod(const std::vector<PlannedFit>& plans) {
  const FitPlan* best = nullptr;
  for (const PlannedFit& planned : plans) {
    if (planned.plan && (best == nullptr || planned.plan->excess_risk < best->excess_risk)) {
      best = &*planned.plan;
    }
  }
  if (best == nullptr) {
    throw Error(fmt::format("no method meets this budget: {}",
                            plans.empty() ? "there is none." : plans.front().refusal));
  }
  return *best;
}

namespace {

// Of the bound on a row's gradient, for a fit without privacy: the distance is for nobody to pay.
constexpr double kNonPrivateLimitShare = 1e-2;

void CheckTable(const FitPlan& plan, const Problem& problem) {
  const TableShape& planned = plan.question.table;
  const TableShape& given = problem.shape();
  if (given.loss != planned.loss || given.features != planned.features ||
      given.classes != planned.classes || given.row_bound != planned.row_bound ||
      given.target_bound != planned.target_bound) {
    throw Error("the table is not of the shape that the plan was made for; plan again.");
  }
  if (plan.question.adjacency != Adjacency::kAddRemove && problem.rows() != plan.question.records) {
    throw Error(fmt::format(
        "the plan was made for {} rows, and under {} the table has to have as many; declare the "
        "number of its rows.",
        plan.question.records, AdjacencyName(plan.question.adjacency)));
  }
}

}  // namespace

FitResult Fit(const FitPlan& plan, const Problem& problem, RandomSource& source,
              const FitProgress& progress) {
  CheckTable(plan, problem);
  FitResult result = FitMethods().Find(plan.method.name).Run(plan, problem, source, progress);
  SORDINO_CHECK(result.coefficients.dim() == 2 &&
                    result.coefficients.size(0) == problem.shape().features &&
                    result.coefficients.size(1) == problem.scores(),
                "a fit has other coefficients than its table");
  result.is_private = source.IsPrivate();
  return result;
}

FitPlan PlanWithoutPrivacy(const FitQuestion& question) {
  CheckQuestion(question);
  const double rho = internal::WeightNorm(question);
  FitPlan plan;
  plan.method = Choice("none");
  plan.question = question;
  plan.lambda =
      question.lambda.value_or(static_cast<double>(internal::Parameters(question)) / (rho * rho));
  plan.gradient_norm_limit = internal::GradientLimit(question, kNonPrivateLimitShare);
  plan.excess_risk = 0;
  return plan;
}

FitResult FitWithoutPrivacy(const FitPlan& plan, const Problem& problem,
                            const FitProgress& progress) {
  CheckTable(plan, problem);
  internal::CertifiedMinimum minimum =
      internal::Minimise({&problem, plan.lambda}, plan.gradient_norm_limit, progress);
  return {.coefficients = std::move(minimum.theta),
          .gradient_norm = plan.gradient_norm_limit,
          .is_private = false};
}

}  // namespace sordino
