#include "sordino/theory/step_plan.h"

#include <fmt/format.h>

#include "sordino/base/error.h"
#include "sordino/theory/noise_schedule.h"

namespace sordino {
namespace {

void RefuseNoStep(const Plan& plan) {
  const std::int64_t best =
      plan.momentum_best ? plan.momentum_best->dynamic.steps : plan.dynamic.steps;
  if (plan.steps || best > 0) return;
  throw Error(fmt::format(
      "the best number of steps is 0: with kappa {:g} and alpha {:g} the noise of a single step "
      "costs more than the step gains, so the budget allows no step; give a larger budget or more "
      "records.",
      plan.problem.kappa(), plan.problem.alpha()));
}

}  // namespace

PlanBudget PlanBudgetOf(Epsilon epsilon, Delta delta) {
  CheckRange("delta", delta.value(), 0, true, 1, true);
  const std::optional<double> value = BudgetOf(epsilon, delta);
  if (!value) {
    throw Error(fmt::format("no noise up to 1e12 meets epsilon {:g} at delta {:g}; allow more.",
                            epsilon.value(), delta.value()));
  }
  return {.value = *value,
          .given = true,
          .epsilon = epsilon.value(),
          .zcdp_budget = ZcdpBudgetOf(epsilon, delta)};
}

Plan MakePlan(const ConvergenceProblem& problem, const PlanBudget& budget,
              const StepPlanOptions& options) {
  if (options.step_size && !options.momentum) {
    throw Error("a step size is for momentum; without it the step size is 1 / smoothness.");
  }
  if (options.steps && (*options.steps < 1 || *options.steps > kMaxScheduleSteps)) {
    throw Error(fmt::format("the number of steps is {}; give a number from 1 to {}.",
                            *options.steps, kMaxScheduleSteps));
  }
  Plan plan{.problem = problem,
            .budget = budget,
            .uniform = BestUniform(problem),
            .dynamic = BestDynamic(problem),
            .momentum = {},
            .momentum_best = {},
            .steps = options.steps,
            .influence = {},
            .noise = {},
            .table = {}};
  if (options.momentum) {
    plan.momentum.emplace(problem, *options.momentum, options.step_size);
    if (!plan.steps) plan.momentum_best = plan.momentum->Minima();
  }
  RefuseNoStep(plan);
  plan.schedule_steps = plan.steps           ? *plan.steps
                        : plan.momentum_best ? plan.momentum_best->dynamic.steps
                                             : plan.dynamic.steps;
  std::optional<PublishedQuestion> question = options.published;
  if (question) {
    question->steps = static_cast<double>(plan.schedule_steps);
    question->gamma = problem.gamma();
    if (plan.momentum) question->momentum_gamma = plan.momentum->gamma();
  }
  plan.table = PublishedBounds(question);
  if (plan.schedule_steps <= kMaxScheduleSteps) {
    plan.influence = plan.momentum ? plan.momentum->Influence(plan.schedule_steps)
                                   : problem.Influence(plan.schedule_steps);
    if (!(plan.influence.front() > 0)) {
      throw Error(
          fmt::format("the number of steps is {}, and the first of so many have no influence on "
                      "the result that a number can hold; give fewer, {} are best.",
                      plan.schedule_steps, plan.dynamic.steps));
    }
    plan.noise = OptimalNoise(plan.influence, budget.value);
  }
  return plan;
}

}  // namespace sordino
