// sordino._torch: clipped sums and private runs of models that are Python functions.
//
// The interpreter's lock is released while a step is computed (the autograd engine does not run
// under it), and taken again for each call of the loss, of the loader and of the optimizer.
#include <ATen/core/Tensor.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/utils/pybind.h>

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "errors.h"
#include "fits.h"
#include "sordino/accounting/event.h"
#include "sordino/accounting/failures.h"
#include "sordino/base/known_name.h"
#include "sordino/base/stop.h"
#include "sordino/device/precision.h"
#include "sordino/gradients/clipper.h"
#include "sordino/gradients/norm_clipping.h"
#include "sordino/gradients/own_tensor.h"
#include "sordino/runs/program_run.h"
#include "sordino/runs/statement.h"
#include "sordino/runs/train_settings.h"

namespace py = pybind11;

namespace sordino::python {
namespace {

using Parameters = std::vector<std::pair<std::string, at::Tensor>>;
using Settings = std::map<std::string, std::vector<std::string>>;

std::vector<NamedParameter> Named(const Parameters& parameters) {
  std::vector<NamedParameter> named;
  for (const auto& [name, value] : parameters) named.push_back({name, value});
  return named;
}

py::tuple ToTuple(const std::vector<at::Tensor>& tensors) {
  py::tuple values(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) values[i] = py::cast(tensors[i]);
  return values;
}

// A loss of the whole batch is that of its one record.
LossFunction LossOf(const py::function& loss) {
  return [&loss](const Batch& batch) {
    const py::gil_scoped_acquire lock;
    try {
      const py::object result = loss(*ToTuple(batch));
      if (!THPVariable_Check(result.ptr())) {
        throw Error("the loss function returned '" +
                    std::string(py::str(py::type::of(result).attr("__name__"))) +
                    "' and must return a tensor.");
      }
      const auto value = result.cast<at::Tensor>();
      return value.dim() == 0 ? value.reshape({1}) : value;
    } catch (const py::error_already_set& error) {
      // Its object needs the lock, which is not held where it would be caught.
      if (error.matches(py::module_::import("sordino._error").attr("Error"))) {
        throw Error(py::str(error.value()).cast<std::string>());
      }
      // Without the trace, which has the places of files.
      const std::string text = error.what();
      throw std::runtime_error(text.substr(0, text.find("\n\nAt:\n")));
    }
  };
}

class PythonRecords : public RecordSource {
 public:
  PythonRecords(py::object request, py::object take, Batch form)
      : request_(std::move(request)), take_(std::move(take)), form_(std::move(form)) {}

  void Request(std::vector<std::uint64_t> records, std::uint64_t seed) override {
    const py::gil_scoped_acquire lock;
    request_(std::move(records), seed);
  }
  Batch Take() override {
    const py::gil_scoped_acquire lock;
    auto batch = take_().cast<std::optional<Batch>>();
    if (batch) return *std::move(batch);
    for (at::Tensor& tensor : batch.emplace(form_)) tensor = tensor.narrow(0, 0, 0);
    return *std::move(batch);
  }
  const Batch& form() const { return form_; }

 private:
  py::object request_;
  py::object take_;
  Batch form_;
};

TrainConfig ConfigOf(const Settings& settings) {
  TrainConfig config;
  std::vector<GivenFlag> flags;
  std::vector<std::string_view> known;
  for (const Setting& setting : TrainSettings()) {
    if (!IsProgramSetting(setting.section, setting.key)) continue;
    known.push_back(setting.flag);
    if (const auto given = settings.find(std::string(setting.flag)); given != settings.end()) {
      flags.push_back({&setting, given->second});
    }
  }
  for (const auto& entry : settings) {
    static_cast<void>(IndexOfName("a setting of the run", entry.first, known));
  }
  SetFromFlags(config, flags);
  return config;
}

std::optional<Checkpoint> CheckpointOf(const py::object& state) {
  if (state.is_none()) return std::nullopt;
  Checkpoint checkpoint;
  checkpoint.facts = {.step = state["step"].cast<std::int64_t>(),
                      .noise = state["noise"].cast<double>(),
                      .plan = state["plan"].cast<std::string>(),
                      .ledger = state["ledger"].cast<std::string>(),
                      .run = state["run"].cast<std::string>(),
                      .head = state["head"].cast<std::string>()};
  for (const auto& [name, value] : state["tensors"].cast<std::map<std::string, at::Tensor>>()) {
    checkpoint.tensors.emplace_back(name, value);
  }
  return checkpoint;
}

// Everything that Python holds of a run.
class Run {
 public:
  Run(const Settings& settings, std::string model, const Parameters& parameters,
      std::int64_t records, py::object request, py::object take, Batch form, py::object update,
      const py::object& state)
      : records_(std::move(request), std::move(take), std::move(form)), update_(std::move(update)) {
    const TrainConfig config = ConfigOf(settings);
    const std::optional<Checkpoint> checkpoint = CheckpointOf(state);
    const py::gil_scoped_release unlocked;
    run_ = std::make_unique<ProgramRun>(
        config, std::move(model), Named(parameters),
        ProgramRecords{.source = &records_, .size = records, .form = records_.form()},
        [this](const NoisedGradients& gradients) {
          const py::gil_scoped_acquire lock;
          update_(ToTuple(gradients.value()));
        },
        checkpoint);
  }
  ~Run() {
    const py::gil_scoped_release unlocked;
    run_.reset();
  }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  // The first signal ends the run after the step in hand, as in `sordino train`.
  bool Step(const py::function& loss) {
    bool made = false;
    bool stop = false;
    {
      const LossFunction losses = LossOf(loss);
      const py::gil_scoped_release unlocked;
      const StopGuard guard;
      made = run_->Step(losses);
      stop = StopGuard::Requested();
    }
    if (stop) {
      PyErr_SetNone(PyExc_KeyboardInterrupt);
      throw py::error_already_set();
    }
    return made;
  }

  py::dict StateDict() {
    const Checkpoint checkpoint = run_->Checkpointed();
    py::dict tensors;
    for (const auto& [name, value] : checkpoint.tensors) tensors[name.c_str()] = value;
    const CheckpointFacts& facts = checkpoint.facts;
    return py::dict(py::arg("step") = facts.step, py::arg("noise") = facts.noise,
                    py::arg("plan") = facts.plan, py::arg("ledger") = facts.ledger,
                    py::arg("run") = facts.run, py::arg("head") = facts.head,
                    py::arg("tensors") = tensors);
  }

  void Save(const std::string& folder, const Parameters& weights) {
    const py::gil_scoped_release unlocked;
    run_->Save(folder, weights);
  }

  ProgramRun& run() { return *run_; }

 private:
  PythonRecords records_;
  py::object update_;
  std::unique_ptr<ProgramRun> run_;
};

// Sums and norms of public data, for audits.
class PublicClipper {
 public:
  PublicClipper(const Parameters& parameters, const std::string& norms)
      : clipper_(Named(parameters), OptionsOf(norms)) {}

  at::Tensor Norms(const py::function& loss, const Batch& batch) {
    const LossFunction losses = LossOf(loss);
    const py::gil_scoped_release unlocked;
    return clipper_.Norms(losses, batch, FlatClipping(ClipNorm(1))).squeeze(0);
  }
  std::vector<at::Tensor> ClippedSum(const py::function& loss, const Batch& batch, double clip) {
    const LossFunction losses = LossOf(loss);
    const py::gil_scoped_release unlocked;
    return clipper_.ClippedSum(losses, batch, FlatClipping(ClipNorm(clip))).gradients;
  }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const NamedParameter& parameter : clipper_.parameters()) names.push_back(parameter.name);
    return names;
  }

 private:
  static GradientOptions OptionsOf(const std::string& norms) {
    GradientOptions options;
    options.compare = false;  // the batch that a model sees is one record
    TrainConfig config;
    config.training.norms.name = norms;
    options.norms = GradientOptionsOf(config).norms;
    return options;
  }

  Clipper clipper_;
};

PYBIND11_MODULE(_torch, module) {
  TranslateErrors();
  BindFits(module);
  module.def("own", &OwnTensor);
  // That of the step in hand.
  module.def("precision",
             [] { return kPrecisionNames[static_cast<std::size_t>(UsedPrecision())]; });
  py::class_<PublicClipper>(module, "Clipper")
      .def(py::init<const Parameters&, const std::string&>())
      .def("norms", &PublicClipper::Norms)
      .def("clipped_sum", &PublicClipper::ClippedSum)
      .def_property_readonly("names", &PublicClipper::Names);
  py::class_<Run>(module, "Run")
      .def(py::init<const Settings&, std::string, const Parameters&, std::int64_t, py::object,
                    py::object, Batch, py::object, const py::object&>())
      .def("step", &Run::Step)
      .def("state_dict", &Run::StateDict)
      .def("save", &Run::Save)
      .def("log", [](Run& self, std::optional<double> accuracy,
                     std::optional<double> loss) { self.run().Log(accuracy, loss); })
      .def("hand_back", [](Run& self) { self.run().HandBack(); })
      .def("epsilon",
           [](Run& self) {
             const py::gil_scoped_release unlocked;
             const Interval epsilon = self.run().SpentEpsilon();
             return std::pair(epsilon.lower, epsilon.upper);
           })
      .def("statement",
           [](Run& self) {
             const py::gil_scoped_release unlocked;
             return Statement(self.run().Facts());
           })
      .def("guarantee", [](Run& self) { return GuaranteeSentence(self.run().Facts()); })
      .def_property_readonly("event", [](Run& self) { return self.run().SpentEvent().ToString(); })
      .def_property_readonly("plan", [](Run& self) { return self.run().plan().event().ToString(); })
      .def_property_readonly("description",
                             [](Run& self) { return self.run().plan().Description(); })
      .def_property_readonly("noise", [](Run& self) { return self.run().plan().noise().value(); })
      .def_property_readonly("delta", [](Run& self) { return self.run().plan().delta().value(); })
      .def_property_readonly("steps", [](Run& self) { return self.run().plan().steps(); })
      .def_property_readonly("steps_done", [](Run& self) { return self.run().steps_done(); })
      .def_property_readonly(
          "failure", [](Run& self) { return self.run().plan().Failure(self.run().steps_done()); })
      .def_property_readonly("is_private", [](Run& self) { return self.run().is_private(); })
      .def_property_readonly("refusal", [](Run& self) { return self.run().refusal(); });
  // Of several runs together, at any delta.
  module.def("spent_epsilon",
             [](const std::vector<std::string>& events, double delta, double failure) {
               const py::gil_scoped_release unlocked;
               std::vector<Event> all;
               for (const std::string& event : events) all.push_back(Event::Parse(event));
               const Adjacency adjacency = all.at(0).adjacency();
               const Interval epsilon =
                   SpentEpsilon(Event::Compose(std::move(all), adjacency), Delta(delta), failure);
               return std::pair(epsilon.lower, epsilon.upper);
             });
}

}  // namespace
}  // namespace sordino::python
