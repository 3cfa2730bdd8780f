// sordino._core: the tier without libtorch. Here: errors, events, accounting and calibration.
#include "core.h"

#include <fmt/format.h>

#include <cmath>
#include <regex>
#include <utility>
#include <vector>

#include "errors.h"
#include "sordino/accounting/accountant.h"
#include "sordino/accounting/best_of.h"
#include "sordino/accounting/step_calibration.h"
#include "sordino/accounting/step_shape.h"
#include "sordino/base/directed_text.h"
#include "sordino/base/known_name.h"

namespace py = pybind11;

namespace sordino::python {

double Finite(std::string_view name, double value) {
  if (std::fpclassify(value) == FP_SUBNORMAL) {
    throw Error(fmt::format(
        "{} is {}, beyond the range of a double; give a number between 1e-307 and 1e308.", name,
        value));
  }
  if (!std::isfinite(value)) {
    throw Error(fmt::format("{} is {}, which is not a finite number; give one, such as 8 or 0.5.",
                            name, value));
  }
  return value;
}

std::uint64_t Whole(std::string_view name, double value) {
  if (!(value >= 0) || value > 0x1p53 || value != std::floor(value)) {
    throw Error(fmt::format("{} is {}, which is not a whole number; give one from 0 to 2^53.", name,
                            value));
  }
  return static_cast<std::uint64_t>(value);
}

Adjacency AdjacencyOf(const Text& name) {
  return name ? ParseAdjacency(*name) : StepShape().adjacency;
}

py::tuple Pair(const Interval& interval) { return py::make_tuple(interval.lower, interval.upper); }

namespace {

// Sentences of the library that name a flag of the command line name the argument instead.
std::string WithArguments(const std::string& sentence) {
  static const std::regex flag("--([a-z][a-z-]*)");
  std::string text;
  auto last = sentence.cbegin();
  for (std::sregex_iterator at(sentence.begin(), sentence.end(), flag), end; at != end; ++at) {
    text.append(last, (*at)[0].first);
    std::string name = (*at)[1];
    for (char& c : name) c = c == '-' ? '_' : c;
    text += name;
    last = (*at)[0].second;
  }
  return text.append(last, sentence.cend());
}

// Asked before the translator of errors.h.
void TranslateFlags() {
  py::register_local_exception_translator([](std::exception_ptr thrown) {
    try {
      if (thrown) std::rethrow_exception(thrown);
    } catch (const Error& error) {
      const py::object type = py::module_::import("sordino._error").attr("Error");
      PyErr_SetString(type.ptr(), WithArguments(error.what()).c_str());
    }
  });
}

struct StepArguments {
  Number rate;
  Number noise;
  Number steps;
  Text sampling;
  Text adjacency;
  Text mechanism;
  Number sensitivity;
  Text select;
};

StepShape ShapeOf(const StepArguments& given, bool has_rate) {
  StepShape shape;
  if (given.mechanism) {
    shape.mechanism =
        static_cast<Mechanism>(IndexOfName("the mechanism", *given.mechanism, kMechanismNames));
  }
  shape.adjacency = AdjacencyOf(given.adjacency);
  shape.sampling = has_rate ? Sampling::kPoisson : Sampling::kNone;
  if (given.sampling) {
    shape.sampling =
        static_cast<Sampling>(IndexOfName("the sampling", *given.sampling, kSamplingNames));
    if (shape.sampling == Sampling::kNone && has_rate) {
      throw Error("sampling 'none' was given with a rate; leave out one of the two.");
    }
    if (shape.sampling != Sampling::kNone && !has_rate) {
      throw Error(fmt::format(
          "sampling '{}' needs a rate, the share of the records that a batch holds on average.",
          *given.sampling));
    }
  }
  if (given.sensitivity) {
    if (shape.mechanism == Mechanism::kGaussian || shape.mechanism == Mechanism::kLaplace) {
      throw Error(
          "sensitivity is for the discrete mechanisms; the noise of the others is already divided "
          "by it.");
    }
    shape.sensitivity = Whole("sensitivity", *given.sensitivity);
    if (shape.sensitivity == 0) throw Error("sensitivity is 0; it must be at least 1.");
  }
  return shape;
}

Event StepsEvent(const StepArguments& given) {
  if (!given.noise) {
    throw Error(
        "noise is missing: the standard deviation or scale of the noise over the sensitivity; an "
        "event may say it too.");
  }
  const StepShape shape = ShapeOf(given, given.rate.has_value());
  const NoiseMultiplier noise(Finite("noise", *given.noise));
  const SamplingRate rate(given.rate ? Finite("rate", *given.rate) : 1);
  const std::uint64_t steps = given.steps ? Whole("steps", *given.steps) : 1;
  return Event::Repeat(shape.Step(noise, rate), shape.CountOf(steps, rate));
}

py::dict AccountOf(const Event& event, Number delta, Number epsilon) {
  if (delta.has_value() == epsilon.has_value()) {
    throw Error(delta
                    ? "delta and epsilon were both given; leave out the one that you want to learn."
                    : "give delta to learn epsilon, or epsilon to learn delta.");
  }
  const AccountReport report = [&] {
    const py::gil_scoped_release release;
    return delta ? Account(event, Delta(Finite("delta", *delta)))
                 : AccountDelta(event, Epsilon(Finite("epsilon", *epsilon)));
  }();
  py::list methods;
  for (const MethodReport& method : report.methods) {
    methods.append(
        py::make_tuple(method.name, method.value, method.sound, method.name == report.decided_by));
  }
  py::dict skipped;
  for (const auto& [name, why] : report.skipped) skipped[py::str(name)] = why;
  py::dict answer;
  answer["value"] = Pair(report.value);
  answer["decided_by"] = report.decided_by;
  answer["methods"] = methods;
  answer["skipped"] = skipped;
  answer["reason"] = report.reason;
  answer["unit"] = UnitNote(event);
  return answer;
}

StepQuestion QuestionOf(const StepArguments& given, double epsilon, double delta) {
  const bool seeks_rate = given.noise && given.steps && !given.rate && given.sampling != "none";
  const StepUnknown unknown = !given.noise ? StepUnknown::kNoise
                              : seeks_rate ? StepUnknown::kRate
                                           : StepUnknown::kSteps;
  if (unknown == StepUnknown::kSteps && given.steps) {
    throw Error(
        "noise, steps and the sampling are all given, so nothing is left to solve for; leave one "
        "out, or ask account() what they spend.");
  }
  if (unknown == StepUnknown::kNoise && !given.steps && given.rate) {
    throw Error("steps is missing; say how many sampled steps the noise must last for.");
  }
  if (unknown == StepUnknown::kRate && given.sampling == "allocation") {
    throw Error(
        "rate is missing; random allocation is solved for the noise or for the steps, not for the "
        "number of batches.");
  }
  StepQuestion question{unknown,
                        ShapeOf(given, given.rate || seeks_rate),
                        {Epsilon(Finite("epsilon", epsilon)), Delta(Finite("delta", delta))},
                        {},
                        {},
                        {}};
  if (given.noise) question.noise = NoiseMultiplier(Finite("noise", *given.noise));
  if (given.rate) question.rate = SamplingRate(Finite("rate", *given.rate));
  if (given.steps) {
    question.steps = Whole("steps", *given.steps);
    if (*question.steps == 0) {
      throw Error("steps is 0, and nothing is released then; give at least 1.");
    }
  }
  if (unknown == StepUnknown::kNoise && !given.steps) question.steps = 1;
  question.select = given.select;
  return question;
}

const char* UnknownName(StepUnknown unknown) {
  switch (unknown) {
    case StepUnknown::kNoise:
      return "noise";
    case StepUnknown::kSteps:
      return "steps";
    case StepUnknown::kRate:
      break;
  }
  return "rate";
}

py::dict CalibrationOf(const StepArguments& given, double epsilon, double delta) {
  const StepQuestion question = QuestionOf(given, epsilon, delta);
  const std::optional<StepAnswer> answer = [&] {
    const py::gil_scoped_release release;
    return SolveStep(question);
  }();
  if (!answer) throw Error(WhyNothingMeets(question));
  py::dict found;
  found["solved_for"] = UnknownName(question.unknown);
  found["value"] = question.unknown == StepUnknown::kSteps
                       ? py::object(py::int_(static_cast<std::uint64_t>(answer->value)))
                       : py::object(py::float_(answer->value));
  found["epsilon"] = Pair(answer->epsilon);
  found["event"] = answer->event;
  found["search_ended"] = answer->at_the_end;
  found["unit"] = answer->event ? UnitNote(*answer->event) : "";
  return found;
}

// A named constructor of a leaf, with the library's adjacency where none is named.
template <typename Quantity>
auto Leaf(Event (*make)(Quantity, Adjacency)) {
  return [make](double value, const Text& adjacency) {
    return make(Quantity(value), AdjacencyOf(adjacency));
  };
}

void BindEvent(py::module_& module) {
  py::class_<Event> event(module, "Event",
                          "What a mechanism released, as data: a tree with a text form.\n\n"
                          ">>> step = Event('add-remove: poisson(0.01, gaussian(4))')\n"
                          ">>> 10_000 * step\n"
                          "Event('add-remove: 10000*poisson(0.01, gaussian(4))')\n"
                          ">>> 2 * step == Event.compose([step, step])\n"
                          "True\n");
  event
      .def(py::init([](const std::string& text) { return Event::Parse(text); }), py::arg("text"),
           "From its text form.")
      .def_static(
          "parse", [](const std::string& text) { return Event::Parse(text); }, py::arg("text"),
          "From its text form, as the constructor.")
      .def_static("gaussian", Leaf<NoiseMultiplier>(&Event::Gaussian), py::arg("noise"),
                  py::arg("adjacency") = py::none(),
                  "Gaussian noise of this standard deviation over the sensitivity.")
      .def_static("laplace", Leaf<NoiseMultiplier>(&Event::Laplace), py::arg("noise"),
                  py::arg("adjacency") = py::none(),
                  "Laplace noise of this scale over the L1 sensitivity.")
      .def_static("pure", Leaf<Epsilon>(&Event::Pure), py::arg("epsilon"),
                  py::arg("adjacency") = py::none(), "Any mechanism with this epsilon and delta 0.")
      .def_static(
          "approximate",
          [](double epsilon, double delta, const Text& adjacency) {
            return Event::Approximate(Epsilon(epsilon), Delta(delta), AdjacencyOf(adjacency));
          },
          py::arg("epsilon"), py::arg("delta"), py::arg("adjacency") = py::none(),
          "Any mechanism with this epsilon and delta.")
      .def_static(
          "poisson",
          [](double rate, const Event& child) { return Event::Poisson(SamplingRate(rate), child); },
          py::arg("rate"), py::arg("event"), "The event on a batch drawn by Poisson sampling.")
      .def_static(
          "compose", [](const std::vector<Event>& events) { return Event::Compose(events); },
          py::arg("events"), "All of these events, on the same data.")
      .def_static(
          "parallel", [](const std::vector<Event>& events) { return Event::Parallel(events); },
          py::arg("events"), "All of these events, each on records of its own.")
      .def_property_readonly(
          "adjacency", [](const Event& e) { return std::string(AdjacencyName(e.adjacency())); })
      .def_property_readonly("releases", &Event::TotalCount, "How many releases it stands for.")
      .def(
          "__mul__", [](const Event& e, std::uint64_t count) { return Event::Repeat(e, count); },
          py::is_operator())
      .def(
          "__rmul__", [](const Event& e, std::uint64_t count) { return Event::Repeat(e, count); },
          py::is_operator())
      .def(
          "__eq__", [](const Event& a, const Event& b) { return a == b; }, py::is_operator())
      .def("__hash__", [](const Event& e) { return py::hash(py::str(e.Hash())); })
      .def("__str__", &Event::ToString)
      .def("__repr__", [](const Event& e) { return "Event('" + e.ToString() + "')"; })
      .def("__reduce__", [](const py::object& self) {
        return py::make_tuple(py::type::of(self), py::make_tuple(py::str(self)));
      });
}

}  // namespace
}  // namespace sordino::python

PYBIND11_MODULE(_core, module) {
  using sordino::python::Number;
  using sordino::python::StepArguments;
  using sordino::python::Text;
  sordino::python::TranslateErrors();
  sordino::python::TranslateFlags();
  sordino::python::BindEvent(module);
  module.def("upper_text", &sordino::UpperText, py::arg("value"));
  module.def("lower_text", &sordino::LowerText, py::arg("value"));
  module.def("account", &sordino::python::AccountOf, py::arg("event"), py::arg("delta"),
             py::arg("epsilon"));
  module.def(
      "steps_event",
      [](Number rate, Number noise, Number steps, Text sampling, Text adjacency, Text mechanism,
         Number sensitivity) {
        return sordino::python::StepsEvent(
            {rate, noise, steps, sampling, adjacency, mechanism, sensitivity, {}});
      },
      py::arg("rate"), py::arg("noise"), py::arg("steps"), py::arg("sampling"),
      py::arg("adjacency"), py::arg("mechanism"), py::arg("sensitivity"));
  module.def("best_of", &sordino::BestOf, py::arg("select"), py::arg("run"));
  module.def(
      "calibrate",
      [](double epsilon, double delta, Number rate, Number noise, Number steps, Text sampling,
         Text adjacency, Text mechanism, Number sensitivity, Text select) {
        return sordino::python::CalibrationOf(
            {rate, noise, steps, sampling, adjacency, mechanism, sensitivity, select}, epsilon,
            delta);
      },
      py::arg("epsilon"), py::arg("delta"), py::arg("rate"), py::arg("noise"), py::arg("steps"),
      py::arg("sampling"), py::arg("adjacency"), py::arg("mechanism"), py::arg("sensitivity"),
      py::arg("select"));
  sordino::python::BindAudit(module);
  sordino::python::BindLedger(module);
  sordino::python::BindPlan(module);
  sordino::python::BindNoisePlan(module);
  sordino::python::BindRelease(module);
}
