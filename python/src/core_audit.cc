// sordino.audit: lower bounds on epsilon from the outcome of an attack.
#include <vector>

#include "core.h"
#include "sordino/accounting/tradeoff.h"
#include "sordino/base/error.h"
#include "sordino/base/known_name.h"
#include "sordino/lower_bounds/one_run.h"
#include "sordino/lower_bounds/two_worlds.h"

namespace py = pybind11;

namespace sordino::python {
namespace {

double SignificanceOf(Number confidence) {
  const double given = confidence.value_or(kAuditConfidence);
  CheckRange("confidence", given, 0, true, 1, true);
  return 1 - given;
}

// Left out: a bound for pure privacy.
Delta DeltaOf(Number delta) { return Delta(delta ? Finite("delta", *delta) : 0); }

py::tuple Triple(const Estimate& estimate) {
  return py::make_tuple(estimate.value, estimate.lower, estimate.upper);
}

py::dict OneRunBound(double canaries, double guesses, double correct, Number delta,
                     Number confidence, const Text& method, Number epsilon) {
  const auto count = [](std::string_view name, double value) {
    return static_cast<std::int64_t>(Whole(name, value));
  };
  const OneRun run = {.canaries = count("canaries", canaries),
                      .guesses = count("guesses", guesses),
                      .correct = count("correct", correct)};
  CheckOneRun(run);
  const Delta at = DeltaOf(delta);
  const double significance = SignificanceOf(confidence);
  const bool gaussian = method && IndexOfName("the method", *method, kOneRunMethods) == 1;
  if (gaussian && epsilon) {
    throw Error("epsilon asks for the p-value of a claim, which only the method one-run has.");
  }
  py::dict found;
  found["delta"] = at.value();
  found["confidence"] = 1 - significance;
  GaussianLowerBound bound;
  {
    const py::gil_scoped_release release;
    if (gaussian) {
      bound = OneRunGaussian(run, at, significance);
    } else {
      bound.epsilon = OneRunEpsilon(run, at, significance);
    }
  }
  found["epsilon"] = bound.epsilon;
  found["method"] = std::string(kOneRunMethods[gaussian ? 1 : 0]);
  found["mu"] = gaussian ? py::object(py::float_(bound.mu)) : py::none();
  found["p_value"] =
      epsilon ? py::object(py::float_(OneRunPValue(run, Epsilon(Finite("epsilon", *epsilon)), at)))
              : py::none();
  return found;
}

py::dict ScoresBound(std::vector<double> members, std::vector<double> others, Number delta,
                     Number confidence, const std::optional<Event>& event,
                     const std::vector<double>& rates) {
  const Delta at = DeltaOf(delta);
  const double significance = SignificanceOf(confidence);
  const py::gil_scoped_release release;
  const TwoWorlds worlds(std::move(members), std::move(others));
  const auto claim =
      event ? PrivacyProfile(*event, kPlannedClaimLines) : std::vector<PrivacyLine>();
  const TwoWorlds::Bounds bounds =
      event ? worlds.PlannedBounds(
                  at, significance,
                  PlanRanks(claim, worlds.members(), worlds.others(), at, significance))
            : worlds.LowerBounds(at, significance);
  const Estimate area = worlds.Area(significance);
  std::vector<Estimate> hits;
  for (const double rate : rates) hits.push_back(worlds.TruePositiveRate(rate, significance));
  const py::gil_scoped_acquire acquire;
  py::dict found;
  found["delta"] = at.value();
  found["confidence"] = 1 - significance;
  found["epsilon"] = bounds.epsilon;
  found["mu"] = bounds.mu;
  found["mu_epsilon"] = bounds.mu_epsilon;
  found["auc"] = Triple(area);
  py::dict positive;
  for (std::size_t i = 0; i < rates.size(); ++i) positive[py::float_(rates[i])] = Triple(hits[i]);
  found["tpr"] = positive;
  return found;
}

}  // namespace

void BindAudit(py::module_& module) {
  module.def("one_run_bound", &OneRunBound, py::arg("canaries"), py::arg("guesses"),
             py::arg("correct"), py::arg("delta"), py::arg("confidence"), py::arg("method"),
             py::arg("epsilon"));
  module.def("scores_bound", &ScoresBound, py::arg("members"), py::arg("others"), py::arg("delta"),
             py::arg("confidence"), py::arg("event"), py::arg("rates"));
}

}  // namespace sordino::python
