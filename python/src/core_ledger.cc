// sordino.Ledger: the budget of a dataset.
#include <fmt/format.h>
#include <unistd.h>

#include <memory>
#include <mutex>
#include <string>

#include "core.h"
#include "sordino/base/error.h"
#include "sordino/ledger/ledger.h"
#include "sordino/ledger/ledger_text.h"

namespace py = pybind11;

namespace sordino::python {
namespace {

// One caller at a time, without the interpreter's lock, and none in a forked child: the two would
// share what a database remembers of its file.
class SharedLedger {
 public:
  explicit SharedLedger(Ledger ledger) : ledger_(std::move(ledger)) {}

  template <typename Use>
  auto With(const Use& use) {
    if (getpid() != process_) {
      throw Error("this ledger was opened before the process was forked; open it again here.");
    }
    const py::gil_scoped_release release;
    const std::lock_guard<std::mutex> lock(mutex_);
    return use(ledger_);
  }

  // With what others wrote since.
  template <typename Use>
  auto WithNewest(const Use& use) {
    return With([&use](Ledger& ledger) {
      ledger.Refresh();
      return use(ledger);
    });
  }

 private:
  Ledger ledger_;
  std::mutex mutex_;
  pid_t process_ = getpid();
};

std::unique_ptr<SharedLedger> Open(const std::string& file, bool read_only) {
  const py::gil_scoped_release release;
  return std::make_unique<SharedLedger>(Ledger::Open(file, {.read_only = read_only}));
}

std::unique_ptr<SharedLedger> Create(const std::string& file, double epsilon, double delta,
                                     const Text& adjacency, const Text& unit, const Text& filter,
                                     Number order) {
  Budget budget;
  CheckRange("epsilon", Finite("epsilon", epsilon), 0, true, kInfinity, true);
  budget.epsilon = Epsilon(epsilon);
  CheckRange("delta", Finite("delta", delta), 0, false, 1, true);
  budget.delta = Delta(delta);
  if (adjacency) budget.adjacency = ParseAdjacency(*adjacency);
  if (unit) budget.unit = ParseProtectedUnit(*unit);
  if (filter) budget.filter = ParseFilter(*filter);
  if (order) budget.order = RenyiOrder(Finite("order", *order));
  const py::gil_scoped_release release;
  return std::make_unique<SharedLedger>(Ledger::Create(file, budget));
}

py::dict BudgetOf(SharedLedger& shared) {
  const Budget budget = shared.With([](Ledger& ledger) { return ledger.budget(); });
  py::dict found;
  found["epsilon"] = budget.epsilon.value();
  found["delta"] = budget.delta.value();
  found["adjacency"] = std::string(AdjacencyName(budget.adjacency));
  found["unit"] = std::string(ProtectedUnitName(budget.unit));
  found["filter"] = std::string(FilterName(budget.filter));
  found["order"] = budget.order ? py::object(py::float_(budget.order->value())) : py::none();
  found["text"] = BudgetText(budget);
  return found;
}

struct State {
  double used;
  std::string used_text;
  double gaussian;
  double pure;
  std::string left_text;
  Interval composed;
  Entry head;
  std::size_t seeded;
};

py::dict StateOf(SharedLedger& shared) {
  const State state = shared.WithNewest([](Ledger& ledger) {
    BudgetFilter& filter = ledger.filter();
    const double used = filter.UsedShare();
    return State{used,
                 UsedText(used),
                 filter.LeftEpsilon(),
                 filter.LeftPureEpsilon(),
                 LeftText(filter),
                 ledger.ComposedEpsilon(),
                 ledger.head(),
                 ledger.SeededRuns()};
  });
  py::dict found;
  found["used"] = state.used;
  found["used_text"] = state.used_text;
  found["left"] = py::make_tuple(state.gaussian, state.pure, state.left_text);
  found["composed"] = Pair(state.composed);
  found["head"] = state.head.hash;
  found["private"] = state.seeded == 0;
  return found;
}

// What people wrote about an entry.
std::string WordsOf(const Entry& entry) {
  switch (entry.kind) {
    case EntryKind::kRun:
      return ParseRunJson(entry.detail).what;
    case EntryKind::kBudget:
      return "";
    default:
      return ParseTextJson(entry.detail);
  }
}

py::list EntriesOf(SharedLedger& shared) {
  const std::vector<Entry> entries =
      shared.WithNewest([](Ledger& ledger) { return ledger.entries(); });
  py::list found;
  for (const Entry& entry : entries) {
    found.append(py::make_tuple(entry.number, std::string(EntryKindName(entry.kind)),
                                TimeText(entry.time), entry.run, entry.event, WordsOf(entry),
                                entry.hash));
  }
  return found;
}

std::string Charge(SharedLedger& shared, const Event& event, const std::string& what, bool whole) {
  if (what.find_first_not_of(" \t\r\n") == std::string::npos) {
    throw Error("note is empty; give words that say what was released.");
  }
  if (event.IsNone()) {
    throw Error("event is of nothing; give what was released, such as Event.gaussian(4).");
  }
  return shared.WithNewest([&](Ledger& ledger) {
    const RunDeclaration run = {
        .what = what, .plan = event, .unit = ledger.budget().unit, .may_count_whole = whole};
    const Begun begun = ledger.BeginRun(run, {.event = event, .words = "charged by hand"});
    if (!begun.verdict.admitted) {
      throw Error(fmt::format(
          "nothing was charged: {}{}; if it was released already, the budget is exceeded, and a "
          "note keeps that.",
          RefusalText(ledger, run, begun.verdict),
          begun.verdict.needs_whole ? "; give whole=True if that is meant" : ""));
    }
    return begun.id;
  });
}

void Note(SharedLedger& shared, const std::string& text) {
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) {
    throw Error("the note is empty; give the words that are to be kept.");
  }
  shared.WithNewest([&text](Ledger& ledger) { ledger.Note(text); });
}

}  // namespace

void BindLedger(py::module_& module) {
  py::class_<SharedLedger>(module, "Ledger")
      .def(py::init(&Open), py::arg("file"), py::arg("read_only"))
      .def_static("create", &Create, py::arg("file"), py::arg("epsilon"), py::arg("delta"),
                  py::arg("adjacency"), py::arg("unit"), py::arg("filter"), py::arg("order"))
      .def("file",
           [](SharedLedger& shared) {
             return shared.With([](Ledger& ledger) { return ledger.file().string(); });
           })
      .def("budget", &BudgetOf)
      .def("state", &StateOf)
      .def("entries", &EntriesOf)
      .def("total",
           [](SharedLedger& shared) {
             return shared.WithNewest([](Ledger& ledger) { return ledger.Total(); });
           })
      .def("contains",
           [](SharedLedger& shared, const std::string& hash) {
             return shared.WithNewest([&hash](Ledger& ledger) { return ledger.Contains(hash); });
           })
      .def("charge", &Charge, py::arg("event"), py::arg("note"), py::arg("whole"))
      .def("note", &Note, py::arg("text"));
  module.def(
      "verify_ledger",
      [](const std::string& file) {
        const py::gil_scoped_release release;
        return VerifyLedger(file);
      },
      py::arg("file"));
}

}  // namespace sordino::python
