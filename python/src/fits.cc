#include "fits.h"

#include <ATen/core/Tensor.h>
#include <fmt/format.h>
#include <pybind11/numpy.h>
#include <pybind11/stl.h>
#include <torch/csrc/utils/pybind.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/base/known_name.h"
#include "sordino/convex/method.h"
#include "sordino/data/table_reader.h"
#include "sordino/optimizers/optimizer_component.h"
#include "sordino/runs/fit_run.h"
#include "sordino/runs/fit_statement.h"
#include "sordino/tables/table_columns.h"
#include "sordino/tables/table_schema.h"

namespace py = pybind11;

namespace sordino::python {
namespace {

template <typename T>
std::string_view Wanted() {
  if constexpr (std::is_same_v<T, bool>) return "True or False";
  if constexpr (std::is_integral_v<T>) return "a whole number, not below 0";
  if constexpr (std::is_floating_point_v<T>) return "a number";
  if constexpr (std::is_same_v<T, std::string>) return "text";
  return "a list of texts";
}

template <typename T>
T Cast(const std::string& name, const py::handle& value) {
  try {
    return value.cast<T>();
  } catch (const py::cast_error&) {
    throw Error(fmt::format("{} is of the type '{}'; give {}.", name,
                            std::string(py::str(py::type::of(value).attr("__name__"))),
                            Wanted<T>()));
  }
}

// Settings by name; None is one that was left out.
class Given {
 public:
  explicit Given(const py::dict& settings) : settings_(settings) {}

  template <typename T>
  void Into(const char* name, T& to) const {
    if (settings_.contains(name) && !settings_[name].is_none()) to = Cast<T>(name, settings_[name]);
  }
  template <typename T>
  void Into(const char* name, std::optional<T>& to) const {
    if (T value; settings_.contains(name) && !settings_[name].is_none()) {
      Into(name, value);
      to = std::move(value);
    }
  }

 private:
  const py::dict& settings_;
};

// A declared column: name, kind, the bounds, and the values with their spellings.
using Declared =
    std::tuple<std::string, std::string, double, double, std::vector<std::vector<std::string>>>;

TableColumn ColumnOf(const Declared& declared) {
  const auto& [name, kind, low, high, values] = declared;
  TableColumn column;
  column.name = name;
  SetColumnKind(column, IndexOfName("the kind", kind, ColumnKindNames()));
  column.low = low;
  column.high = high;
  for (const std::vector<std::string>& spellings : values) AddValue(column, spellings);
  CheckColumn(column);
  return column;
}

// Rules for cells are about text, and estimators take numbers and values.
Declared DeclaredOf(const TableColumn& column) {
  if (column.cells != CellRules() || column.role == ColumnRole::kText) {
    throw Error(fmt::format(
        "the column '{}' of the schema is {} with rules for its cells, which estimators do not "
        "take; give them a frame of numbers and values, or use 'sordino fit'.",
        column.name, ColumnKindName(column)));
  }
  std::vector<std::vector<std::string>> values;
  for (const std::string& value : column.values) values.push_back({value});
  for (const ValueSpelling& other : column.spellings) values[other.value].push_back(other.text);
  return {column.name, std::string(ColumnKindName(column)), column.low, column.high, values};
}

py::dict Schema(const std::string& file) {
  const TableSchema schema = ReadSchema(file);
  if (!schema.patterns.empty()) {
    throw Error(
        fmt::format("the schema '{}' names columns by the pattern '{}', which estimators do "
                    "not take; name the columns.",
                    file, schema.patterns.front().name));
  }
  std::vector<Declared> columns;
  for (const TableColumn& column : schema.columns) columns.push_back(DeclaredOf(column));
  return py::dict(py::arg("columns") = columns, py::arg("missing") = schema.missing,
                  py::arg("rows_per_user") = schema.rows_per_user);
}

DataRequest RequestOf(const Given& given) {
  DataRequest request;
  std::vector<Declared> columns;
  given.Into("columns", columns);
  for (const Declared& column : columns) {
    request.columns.declared.push_back(ColumnText(ColumnOf(column)));
  }
  given.Into("missing", request.missing);
  given.Into("records", request.records);
  given.Into("rows_per_user", request.rows_per_user);
  return request;
}

void SetOptions(const py::dict& options, OptionValues& values) {
  std::vector<std::string_view> known;
  for (const OptionSpec* spec : FitMethods().options()) known.push_back(spec->flag.substr(2));
  for (const auto& [key, value] : options) {
    std::string name = Cast<std::string>("the name of an option", key);
    for (char& c : name) c = c == '_' ? '-' : c;
    const OptionSpec& spec =
        *FitMethods().options()[IndexOfName("an option of the method", name, known)];
    std::visit([&]<typename T>(std::optional<T>& slot) { slot = Cast<T>(name, value); },
               values.SlotOf(spec));
  }
}

FitSettings SettingsOf(const py::dict& dict) {
  const Given given(dict);
  FitSettings settings;
  settings.data = RequestOf(given);
  given.Into("model", settings.model);
  given.Into("method", settings.method.name);
  if (dict.contains("method_options") && !dict["method_options"].is_none()) {
    SetOptions(dict["method_options"].cast<py::dict>(), settings.method.options);
  }
  given.Into("epsilon", settings.epsilon);
  given.Into("delta", settings.delta);
  given.Into("adjacency", settings.adjacency);
  given.Into("regularisation", settings.lambda);
  given.Into("row_bound", settings.row_bound);
  given.Into("weight_norm", settings.weight_norm);
  given.Into("out", settings.out);
  given.Into("ledger", settings.ledger);
  given.Into("whole", settings.whole);
  given.Into("insecure_seed", settings.insecure_seed);
  given.Into("non_private", settings.non_private);
  given.Into("tune", settings.tune);
  given.Into("brings_test", settings.brings_test);
  given.Into("curator", settings.purpose.curator);
  given.Into("use", settings.purpose.use);
  return settings;
}

// A column of a table: numbers, or the places of cells in a list of texts.
using Numbers = py::array_t<double, py::array::c_style | py::array::forcecast>;
using Codes = py::array_t<std::int64_t, py::array::c_style | py::array::forcecast>;
using HeldColumn =
    std::tuple<std::string, std::optional<Numbers>, std::vector<std::string>, std::optional<Codes>>;

// Cells as they would stand in a file; what is no number is an empty one.
class HeldCells {
 public:
  explicit HeldCells(const std::vector<HeldColumn>& columns) {
    for (const auto& [name, numbers, texts, codes] : columns) {
      Column& column = columns_.emplace_back();
      column.numbers = numbers ? numbers->data() : nullptr;
      column.codes = codes ? codes->data() : nullptr;
      column.texts = &texts;
      rows_ = numbers ? numbers->size() : codes->size();
    }
  }

  bool Next(std::vector<std::string_view>& cells) {
    if (row_ == rows_) return false;
    for (std::size_t i = 0; i < columns_.size(); ++i) cells[i] = columns_[i].Cell(row_);
    ++row_;
    return true;
  }

 private:
  struct Column {
    std::string_view Cell(std::int64_t row) {
      if (numbers == nullptr) return (*texts)[static_cast<std::size_t>(codes[row])];
      if (std::isnan(numbers[row])) return "";
      const auto end = fmt::format_to_n(text.data(), text.size(), "{}", numbers[row]);
      return {text.data(), end.size};
    }

    const double* numbers = nullptr;
    const std::int64_t* codes = nullptr;
    const std::vector<std::string>* texts = nullptr;
    std::array<char, 32> text = {};  // no double takes more than 24 characters
  };

  std::vector<Column> columns_;
  std::int64_t rows_ = 0;
  std::int64_t row_ = 0;
};

// Called without the interpreter's lock.
Dataset Taken(const std::vector<HeldColumn>& columns, const std::string& name,
              const DatasetDeclaration& declaration, const DataRequest& request, bool labelled) {
  ProgramTable table;
  table.name = name;
  for (const HeldColumn& column : columns) table.columns.push_back(std::get<0>(column));
  HeldCells cells(columns);
  table.next = [&cells](std::vector<std::string_view>& row) { return cells.Next(row); };
  return TakeTable(table, declaration, request, labelled);
}

py::list CoefficientsOf(const FitOutcome& outcome) {
  py::list coefficients;
  for (const Coefficient& c : outcome.coefficients) {
    py::dict one(py::arg("feature") = c.feature, py::arg("score") = c.score,
                 py::arg("value") = c.value, py::arg("deviation") = c.deviation,
                 py::arg("interval") = py::none());
    if (c.interval) one["interval"] = py::make_tuple(c.interval->lower, c.interval->upper);
    coefficients.append(one);
  }
  return coefficients;
}

class TableFit {
 public:
  TableFit(const py::dict& settings, std::string name) {
    const FitSettings taken = SettingsOf(settings);
    const py::gil_scoped_release unlocked;
    fit_ = PrepareTableFit(taken, std::move(name));
    if (fit_.plan) static_cast<void>(CheckLedger(fit_));
  }

  py::dict Run(const std::vector<HeldColumn>& train, const std::vector<HeldColumn>& test) {
    const FitOutcome outcome = [&] {
      const py::gil_scoped_release unlocked;
      DataSplits data;
      data.train = Taken(train, "X", fit_.declaration, fit_.settings.data, true);
      if (!test.empty()) {
        data.test = Taken(test, "public_test", fit_.declaration, fit_.settings.data, true);
      }
      return RunTableFit(fit_, std::move(data), [](std::string_view, double) {});
    }();
    const FitFacts& facts = outcome.facts;
    return py::dict(
        py::arg("coefficients") = CoefficientsOf(outcome),
        py::arg("epsilon") = py::make_tuple(outcome.epsilon.lower, outcome.epsilon.upper),
        py::arg("delta") = outcome.delta, py::arg("event") = facts.event,
        py::arg("statement") = FitStatement(facts), py::arg("guarantee") = FitGuarantee(facts),
        py::arg("method") = outcome.plan.method.name,
        py::arg("regularisation") = outcome.plan.lambda,
        py::arg("adjacency") = std::string(AdjacencyName(outcome.plan.question.adjacency)),
        py::arg("is_private") = outcome.is_private);
  }

  // The number of records was neither declared nor asked to be public.
  bool TakesNumberAsPublic() const {
    return fit_.privacy != RunPrivacy::kNonPrivate && !fit_.plan && fit_.settings.adjacency.empty();
  }

 private:
  PreparedFit fit_;
};

// What a model sees of records: the numbers that coefficients belong to, and the labels where they
// are asked for.
std::pair<at::Tensor, std::optional<at::Tensor>> Records(const py::dict& settings,
                                                         const std::vector<HeldColumn>& columns,
                                                         bool labelled) {
  const DataRequest request = RequestOf(Given(settings));
  const py::gil_scoped_release unlocked;
  const Dataset data = Taken(columns, "X", DeclareTable(request, "X"), request, labelled);
  return {data.inputs, labelled ? std::optional(data.labels) : std::nullopt};
}

// What `sordino train` takes where it is left out.
py::dict Recipe() {
  const OptimizerComponent& sgd = Optimizers().Find("sgd");
  py::dict recipe(py::arg("learning_rate") = sgd.LearningRate());
  Choice completed = Optimizers().Completed(Choice("sgd"));
  for (const OptionSpec* spec : sgd.options()) {
    if (spec->key == "momentum") recipe["momentum"] = completed.options.Number(*spec);
  }
  return recipe;
}

}  // namespace

void BindFits(py::module_& module) {
  module.def("schema", &Schema);
  module.def("records", &Records);
  module.def("recipe", &Recipe);
  py::class_<TableFit>(module, "TableFit")
      .def(py::init<const py::dict&, std::string>())
      .def("run", &TableFit::Run)
      .def_property_readonly("takes_number_as_public", &TableFit::TakesNumberAsPublic);
}

}  // namespace sordino::python
