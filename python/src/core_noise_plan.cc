// sordino.plan_noise: how good noise is that is correlated between steps, and when it pays.
#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core.h"
#include "sordino/base/error.h"
#include "sordino/base/known_name.h"
#include "sordino/correlation/noise_plan.h"

namespace py = pybind11;

namespace sordino::python {
namespace {

std::optional<std::int64_t> WholeOrNone(std::string_view name, const Number& value) {
  if (!value) return std::nullopt;
  return static_cast<std::int64_t>(Whole(name, *value));
}

std::optional<SampledBudget> SampledBudgetOf(Number epsilon, Number delta, Number rate) {
  if (!epsilon && !delta && !rate) return std::nullopt;
  if (!epsilon || !delta || !rate) {
    throw Error(fmt::format("{} is missing; a budget is epsilon with delta and rate.",
                            !epsilon ? "epsilon" : (!delta ? "delta" : "rate")));
  }
  CheckRange("epsilon", Finite("epsilon", *epsilon), 0, true, kInfinity, true);
  CheckRange("delta", Finite("delta", *delta), 0, true, 1, true);
  return SampledBudget{Epsilon(*epsilon), Delta(*delta), SamplingRate(Finite("rate", *rate))};
}

py::tuple BandsOf(const BandsRow& row, const BandsRow& independent) {
  return py::make_tuple(row.bands, row.noise.value(), Pair(row.epsilon), row.rmse,
                        row.rmse / independent.rmse);
}

py::dict BudgetOfNoise(const SampledBudgetPlan& plan) {
  const BandsRow& independent = plan.sampled.independent;
  py::list bands;
  for (const BandsRow& row : plan.sampled.rows) bands.append(BandsOf(row, independent));
  py::list table;
  for (const NoisePlanCell& cell : plan.cells) {
    table.append(py::make_tuple(cell.epochs, cell.steps, cell.epsilon, cell.bands, cell.ratio));
  }
  py::dict found;
  found["strategy"] = plan.sampled.strategy();
  found["best"] = BandsOf(plan.sampled.best, independent);
  found["independent"] = BandsOf(independent, independent);
  found["fixed_order"] =
      py::make_tuple(plan.fixed_noise, plan.fixed_rmse, plan.fixed_rmse / independent.rmse);
  found["bands"] = bands;
  found["table"] = table;
  return found;
}

py::dict NoisePlanOf(double steps, Number separation, Number participations,
                     const std::string& strategy, const Text& objective, Number epsilon,
                     Number delta, Number rate) {
  const NoisePlan plan = [&] {
    const py::gil_scoped_release release;
    NoisePlanQuestion question;
    question.steps = *WholeOrNone("steps", steps);
    question.separation = WholeOrNone("separation", separation);
    question.participations = WholeOrNone("participations", participations);
    question.strategy = strategy;
    if (objective) {
      question.objective =
          static_cast<CorrelationObjective>(IndexOfName("objective", *objective, kObjectiveNames));
    }
    question.budget = SampledBudgetOf(epsilon, delta, rate);
    return PlanNoise(question, [](std::uint64_t, std::uint64_t) {});
  }();
  const Participation& pattern = plan.strategy->participation();
  py::dict found;
  found["strategy"] = plan.strategy->text();
  found["steps"] = pattern.steps;
  found["separation"] = pattern.separation;
  found["participations"] = pattern.count;
  found["rmse"] = plan.rmse;
  found["max_error"] = plan.max_error;
  found["sensitivity"] = plan.sensitivity;
  found["independent_rmse"] = plan.independent_rmse;
  found["coefficients"] = plan.Coefficients();
  found["budget"] = plan.budget ? py::object(BudgetOfNoise(*plan.budget)) : py::none();
  return found;
}

}  // namespace

void BindNoisePlan(py::module_& module) {
  module.def("plan_noise", &NoisePlanOf, py::arg("steps"), py::arg("separation"),
             py::arg("participations"), py::arg("strategy"), py::arg("objective"),
             py::arg("epsilon"), py::arg("delta"), py::arg("rate"));
}

}  // namespace sordino::python
