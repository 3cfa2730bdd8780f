// sordino.plan: how many steps, and which noise in each, spend a budget best, by theory.
#include <fmt/format.h>

#include <array>
#include <utility>

#include "core.h"
#include "sordino/base/error.h"
#include "sordino/theory/step_plan.h"

namespace py = pybind11;

namespace sordino::python {
namespace {

// (records, dimension, lipschitz, smoothness, strong_convexity, initial_gap)
using Constants = std::array<Number, 6>;
constexpr std::array<std::string_view, 6> kConstants = {
    "records", "dimension", "lipschitz", "smoothness", "strong_convexity", "initial_gap"};

double Required(std::string_view name, const Number& value) {
  if (!value) {
    throw Error(fmt::format(
        "{} is missing; a problem is kappa with alpha, or records, dimension, lipschitz, "
        "smoothness, strong_convexity and initial_gap with a budget.",
        name));
  }
  return Finite(name, *value);
}

PlanBudget BudgetOfPlan(Number epsilon, Number delta, Number budget) {
  if (budget && (epsilon || delta)) {
    throw Error("budget and epsilon are two budgets; give budget, or epsilon with delta.");
  }
  if (budget) {
    CheckRange("budget", Finite("budget", *budget), 0, true, kInfinity, true);
    return {.value = *budget, .given = true, .epsilon = {}, .zcdp_budget = {}};
  }
  if (!epsilon && !delta) return {};
  if (!epsilon || !delta) {
    throw Error(fmt::format("{} is missing; the budget is epsilon together with delta.",
                            epsilon ? "delta" : "epsilon"));
  }
  return PlanBudgetOf(Epsilon(Finite("epsilon", *epsilon)), Delta(Finite("delta", *delta)));
}

ConvergenceProblem ProblemOf(Number kappa, Number alpha, const Constants& given,
                             const PlanBudget& budget) {
  bool has_constants = false;
  for (const Number& value : given) has_constants = has_constants || value;
  if (!has_constants) return {Required("kappa", kappa), Required("alpha", alpha)};
  if (kappa || alpha) {
    throw Error(
        "kappa and alpha follow from the constants of the problem; give them, or the constants "
        "(records, dimension, lipschitz, smoothness, strong_convexity, initial_gap).");
  }
  if (!budget.given) throw Error("there is no budget; give epsilon with delta, or budget.");
  std::array<double, 6> value{};
  for (std::size_t i = 0; i < given.size(); ++i) value[i] = Required(kConstants[i], given[i]);
  return ConvergenceProblem::Of({.records = value[0],
                                 .dimension = value[1],
                                 .lipschitz = value[2],
                                 .smoothness = value[3],
                                 .strong_convexity = value[4],
                                 .initial_gap = value[5],
                                 .budget = budget.value});
}

py::tuple HorizonOf(const Horizon& horizon) { return py::make_tuple(horizon.steps, horizon.bound); }

py::dict PlanOf(Number kappa, Number alpha, const Constants& constants, Number epsilon,
                Number delta, Number budget_given, Number momentum, Number step_size,
                Number steps) {
  PlanBudget budget;
  const Plan plan = [&] {
    const py::gil_scoped_release release;
    budget = BudgetOfPlan(epsilon, delta, budget_given);
    const ConvergenceProblem problem = ProblemOf(kappa, alpha, constants, budget);
    StepPlanOptions options;
    if (steps) options.steps = static_cast<std::int64_t>(Whole("steps", *steps));
    if (momentum) options.momentum = Finite("momentum", *momentum);
    if (step_size) options.step_size = Finite("step_size", *step_size);
    return MakePlan(problem, budget, options);
  }();
  py::dict found;
  found["kappa"] = plan.problem.kappa();
  found["alpha"] = plan.problem.alpha();
  found["budget"] = budget.given ? py::object(py::float_(budget.value)) : py::none();
  found["uniform"] = HorizonOf(plan.momentum_best ? plan.momentum_best->uniform : plan.uniform);
  found["dynamic"] = HorizonOf(plan.momentum_best ? plan.momentum_best->dynamic : plan.dynamic);
  found["steps"] = plan.schedule_steps;
  found["bound"] = plan.DynamicBound(plan.schedule_steps);
  found["noise"] = plan.noise;
  found["influence"] = plan.influence;
  return found;
}

}  // namespace

void BindPlan(py::module_& module) {
  module.def("plan", &PlanOf, py::arg("kappa"), py::arg("alpha"), py::arg("constants"),
             py::arg("epsilon"), py::arg("delta"), py::arg("budget"), py::arg("momentum"),
             py::arg("step_size"), py::arg("steps"));
}

}  // namespace sordino::python
