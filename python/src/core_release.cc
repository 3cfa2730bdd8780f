// sordino.release: private statistics of a file or of columns in memory.
//
// Columns in memory are read as the CSV file that they would be, one block of rows after the other,
// so that both go one way: rows, the charge, the noise (ReleaseCsv). A number is written with the
// shortest digits that give the same number, and a text in quotes.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "core.h"
#include "sordino/accounting/failures.h"
#include "sordino/base/error.h"
#include "sordino/base/noise_kind.h"
#include "sordino/base/weak_guarantee.h"
#include "sordino/ledger/data_description.h"
#include "sordino/ledger/ledger.h"
#include "sordino/ledger/ledger_text.h"
#include "sordino/mechanisms/table_declaration.h"
#include "sordino/mechanisms/table_release.h"
#include "sordino/random/generator.h"
#include "sordino/tables/csv_reader.h"
#include "sordino/tables/encoding.h"
#include "sordino/tables/table_file.h"
#include "sordino/tables/table_schema.h"

namespace py = pybind11;

namespace sordino::python {
namespace {

template <typename Value>
void AppendNumber(std::string* text, Value value) {
  std::array<char, 32> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  text->append(digits.data(), end);
}

// Nothing for NaN, which stands for a missing value in a column of numbers.
void AppendReal(std::string* text, double value) {
  if (!std::isnan(value)) AppendNumber(text, value);
}

void AppendQuoted(std::string* text, std::string_view cell) {
  text->push_back('"');
  for (const char c : cell) {
    if (c == '"') text->push_back('"');
    text->push_back(c);
  }
  text->push_back('"');
}

// A single number, as a cell holds it. A truth value is 0 or 1.
std::string CellText(const py::handle& value) {
  std::string text;
  if (PyBool_Check(value.ptr()) != 0) return value.ptr() == Py_True ? "1" : "0";
  if (PyFloat_Check(value.ptr()) != 0) {
    AppendReal(&text, PyFloat_AS_DOUBLE(value.ptr()));
    return text;
  }
  return py::str(value);
}

// A column in memory: the items of a buffer of numbers, or texts.
class MemoryColumn {
 public:
  explicit MemoryColumn(const py::object& given) {
    if (py::isinstance<py::buffer>(given) && !py::isinstance<py::bytes>(given)) {
      buffer_ = py::reinterpret_borrow<py::buffer>(given).request();
      if (buffer_.ndim != 1) throw Error("a column of the table has more than one dimension.");
      kind_ = KindOf(buffer_.format);
      rows_ = static_cast<std::size_t>(buffer_.size);
      return;
    }
    // A tuple keeps what it holds, whatever becomes of the list.
    cells_ = py::tuple(given);
    rows_ = cells_.size();
    texts_.reserve(rows_);
    for (const py::handle cell : cells_) {
      if (cell.is_none()) {
        texts_.emplace_back();
      } else if (PyUnicode_Check(cell.ptr()) != 0) {
        Py_ssize_t size = 0;
        const char* const text = PyUnicode_AsUTF8AndSize(cell.ptr(), &size);
        if (text == nullptr) {
          PyErr_Clear();  // it holds the text
          throw Error("a text of the table is not valid Unicode.");
        }
        texts_.emplace_back(text, static_cast<std::size_t>(size));
      } else {
        made_.push_back(std::make_unique<std::string>(CellText(cell)));
        texts_.emplace_back(*made_.back());
      }
    }
  }

  std::size_t rows() const { return rows_; }

  void Append(std::string* text, std::size_t row) const {
    if (kind_ == 0) return AppendQuoted(text, texts_[row]);
    const char* const at =
        static_cast<const char*>(buffer_.ptr) + static_cast<Py_ssize_t>(row) * buffer_.strides[0];
    const std::size_t before = text->size();
    switch (kind_) {
      case 'd':
        AppendReal(text, Item<double>(at));
        break;
      case 'f':
        AppendReal(text, static_cast<double>(Item<float>(at)));
        break;
      case '?':
        text->push_back(Item<std::uint8_t>(at) != 0 ? '1' : '0');
        break;
      case 'i':
        AppendInteger<std::int8_t, std::int16_t, std::int32_t, std::int64_t>(text, at);
        break;
      default:
        AppendInteger<std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t>(text, at);
    }
    if (text->size() == before) text->append("\"\"");
  }

 private:
  template <typename Value>
  static Value Item(const char* at) {
    Value value;
    std::copy_n(at, sizeof(Value), reinterpret_cast<char*>(&value));
    return value;
  }

  template <typename... Integers>
  void AppendInteger(std::string* text, const char* at) const {
    const auto append = [&]<typename Integer>(Integer) {
      if (buffer_.itemsize == sizeof(Integer)) AppendNumber(text, Item<Integer>(at));
    };
    (append(Integers{}), ...);
  }

  static char KindOf(const std::string& format) {
    if (format == "d" || format == "f" || format == "?") return format[0];
    if (format.size() == 1 && std::string_view("bhilq").find(format[0]) != std::string_view::npos) {
      return 'i';
    }
    if (format.size() == 1 && std::string_view("BHILQ").find(format[0]) != std::string_view::npos) {
      return 'u';
    }
    throw Error(fmt::format(
        "a column of the table holds items of the format '{}'; give numbers or texts.", format));
  }

  char kind_ = 0;  // texts
  py::buffer_info buffer_;
  std::size_t rows_ = 0;
  py::tuple cells_;
  std::vector<std::unique_ptr<std::string>> made_;
  std::vector<std::string_view> texts_;
};

// The CSV text of columns.
class MemoryTable {
 public:
  explicit MemoryTable(const py::list& columns) {
    for (const py::handle item : columns) {
      const auto [name, values] = py::cast<std::pair<std::string, py::object>>(item);
      if (!columns_.empty()) text_.push_back(',');
      AppendQuoted(&text_, name);
      columns_.push_back(std::make_unique<MemoryColumn>(values));
      if (columns_.back()->rows() != columns_.front()->rows()) {
        throw Error("the columns of the table differ in length; give one value for each row.");
      }
    }
    if (columns_.empty()) throw Error("the table has no columns; give at least one.");
    text_.push_back('\n');
  }

  std::size_t Read(std::span<char> buffer) {
    constexpr std::size_t kBlock = std::size_t{1} << 16;
    if (at_ == text_.size()) {
      text_.clear();
      at_ = 0;
      for (; row_ < columns_.front()->rows() && text_.size() < kBlock; ++row_) {
        for (const auto& column : columns_) {
          if (&column != &columns_.front()) text_.push_back(',');
          column->Append(&text_, row_);
        }
        text_.push_back('\n');
      }
    }
    const std::size_t size = std::min(buffer.size(), text_.size() - at_);
    std::copy_n(text_.data() + at_, size, buffer.data());
    at_ += size;
    return size;
  }

 private:
  std::vector<std::unique_ptr<MemoryColumn>> columns_;
  std::string text_;
  std::size_t at_ = 0;
  std::size_t row_ = 0;
};

// As the package hands it over.
struct ReleaseArguments {
  // (kind, column, rank of a quantile, epsilon of its own)
  std::vector<std::tuple<std::string, std::string, Number, Number>> statistics;
  std::map<std::string, std::pair<double, double>> bounds;
  std::map<std::string, std::vector<double>> edges;
  std::map<std::string, double> bins;
  std::map<std::string, std::vector<std::string>> categories;
  std::vector<std::pair<std::string, std::optional<std::vector<std::string>>>> group_by;
  Text schema;
  bool no_header = false;
  Text encoding;
  Text delimiter;
  std::optional<std::vector<std::string>> missing;
  Number epsilon;
  Number delta;
  Text noise;
  Text adjacency;
  std::string user;
  std::optional<std::uint32_t> rows_per_user;
  Text on_error;
  Number confidence;
};

TableStatistic KindOf(const std::string& name) {
  for (const TableStatistic kind :
       {TableStatistic::kCount, TableStatistic::kSum, TableStatistic::kMean,
        TableStatistic::kVariance, TableStatistic::kHistogram}) {
    if (name == TableStatisticName(kind)) return kind;
  }
  return TableStatistic::kQuantile;
}

void AddStatistics(TableRequest& request, const ReleaseArguments& given) {
  for (const auto& [kind, column, rank, epsilon] : given.statistics) {
    StatisticRequest statistic{.kind = KindOf(kind), .column = column, .epsilon = epsilon};
    if (rank) statistic.quantile = Finite("the rank of a quantile", *rank);
    request.statistics.push_back(std::move(statistic));
  }
}

void AddBins(TableRequest& request, const ReleaseArguments& given) {
  for (const auto& [column, edges] : given.edges) request.bins[column].edges = edges;
  for (const auto& [column, values] : given.categories) {
    if (request.bins.contains(column) || given.bins.contains(column)) {
      throw Error(
          fmt::format("bins and categories were both given for '{}'; leave one out.", column));
    }
    request.bins[column].categories = values;
  }
  for (const auto& [column, count] : given.bins) {
    const auto bounds = request.bounds.find(column);
    if (bounds == request.bounds.end()) {
      throw Error(fmt::format("{} equal bins for '{}' need its bounds.", count, column));
    }
    request.bins[column] = EqualBins(bounds->second, Whole("bins", count));
  }
}

void AddGroups(TableRequest& request, const ReleaseArguments& given, const TableSchema* schema) {
  for (const auto& [column, values] : given.group_by) {
    if (values) {
      request.group_by.push_back({column, *values});
      continue;
    }
    const TableColumn* const declared = schema == nullptr ? nullptr : schema->Find(column);
    if (declared == nullptr || declared->values.empty()) {
      throw Error(fmt::format(
          "group_by does not declare the groups of '{}'; give them as {{'{}': ['a', 'b', ...]}}, "
          "or declare the values of the column in a schema.",
          column, column));
    }
    request.group_by.push_back({column, ValuesOf(*declared)});
  }
}

TableLayout LayoutOf(const ReleaseArguments& given, const Text& file, const TableSchema* schema) {
  TableLayout layout;
  if (file) {
    layout.delimiter = DelimiterOf(*file);
    if (schema != nullptr) {
      layout.header = schema->header.value_or(layout.header);
      layout.encoding = schema->encoding.value_or(layout.encoding);
      layout.delimiter = schema->delimiter.value_or(layout.delimiter);
      layout.quote = schema->quote.value_or(layout.quote);
    }
    if (given.no_header) layout.header = false;
    if (given.encoding) layout.encoding = ParseEncoding(*given.encoding);
    if (given.delimiter) layout.delimiter = ParseDelimiter(*given.delimiter);
  } else if (given.no_header || given.encoding || given.delimiter) {
    throw Error(
        "no_header, encoding and delimiter say how a file is written; leave them out of a table.");
  }
  if (schema != nullptr) layout.missing = schema->missing;
  if (given.missing) layout.missing = *given.missing;
  return layout;
}

void AddUnit(TableRequest& request, const ReleaseArguments& given, const TableSchema* schema) {
  std::string user = given.user;
  std::optional<std::uint32_t> rows = given.rows_per_user;
  if (schema != nullptr) TakeSchemaUser(*schema, &user, &rows);
  if (user.empty() && rows) {
    throw Error("rows_per_user needs user, the column that tells users apart.");
  }
  if (!user.empty() && !rows) {
    throw Error(
        "user needs rows_per_user, the number of rows of each user that may count; choose it "
        "without looking at the data.");
  }
  request.user_column = user;
  request.rows_per_user = rows.value_or(1);
}

TableRequest RequestOf(const ReleaseArguments& given, const Text& file) {
  const std::optional<TableSchema> read =
      given.schema ? std::optional(ReadSchema(*given.schema)) : std::nullopt;
  const TableSchema* const schema = read ? &*read : nullptr;
  TableRequest request;
  request.layout = LayoutOf(given, file, schema);
  AddStatistics(request, given);
  for (const auto& [column, ends] : given.bounds) {
    request.bounds.emplace(column,
                           Bounds(Finite("bounds", ends.first), Finite("bounds", ends.second)));
  }
  if (schema != nullptr) TakeSchemaBounds(request, *schema);
  AddBins(request, given);
  if (schema != nullptr) TakeSchemaBins(request, *schema);
  AddUnit(request, given, schema);
  AddGroups(request, given, schema);
  if (given.adjacency) request.adjacency = ParseAdjacency(*given.adjacency);
  request.epsilon = given.epsilon;
  request.delta = given.delta.value_or(0);
  // Far below any use; the quantiles of the noise overflow near the smallest numbers.
  if (request.delta > 0 && request.delta < 1e-300) {
    throw Error(fmt::format("delta is {:g}; give 1e-300 or more.", request.delta));
  }
  // A delta asks for Gaussian noise.
  if (given.noise) {
    request.noise = ParseNoiseKind(*given.noise);
  } else if (given.delta) {
    request.noise = NoiseKind::kGaussian;
  }
  if (request.noise == NoiseKind::kGaussian && !given.delta) {
    throw Error("Gaussian noise needs delta, well below one over the number of rows.");
  }
  if (given.confidence) request.confidence = *given.confidence;
  if (given.on_error) request.malformed = ParseMalformedRows("on_error", *given.on_error);
  return request;
}

// A release in preparation: what it costs is known, and nothing was read.
class PlannedRelease {
 public:
  PlannedRelease(const ReleaseArguments& given, Text file, const std::string& ledger, bool whole,
                 std::optional<std::uint64_t> insecure_seed)
      : file_(std::move(file)),
        seed_(insecure_seed),
        delta_(given.delta.value_or(0)),
        request_(RequestOf(given, file_)),
        release_(request_),
        declaration_{
            .what = DescribeRelease(request_, file_.value_or("-")),
            .plan = release_.event(),
            .failure = release_.failure(),
            .unit = request_.user_column.empty() ? ProtectedUnit::kRecord : ProtectedUnit::kUser,
            .is_private = !seed_,
            .may_count_whole = whole} {
    const py::gil_scoped_release release;
    std::vector<std::filesystem::path> data;
    if (file_) data.emplace_back(*file_);
    const std::optional<std::filesystem::path> chosen = ChooseLedger(ledger, data);
    if (!chosen) return;
    ledger_.emplace(Ledger::Open(*chosen));
    const Begun begun = ledger_->Preview(declaration_);
    if (!begun.verdict.admitted) Refuse(begun.verdict);
    after_ = ledger_->filter().After(declaration_.plan, declaration_.failure, begun.terms);
  }

  std::vector<std::string> Columns() const {
    std::vector<std::string> names;
    for (const StatisticRequest& statistic : request_.statistics) {
      if (!statistic.column.empty()) names.push_back(statistic.column);
    }
    for (const GroupByColumn& group : request_.group_by) names.push_back(group.column);
    if (!request_.user_column.empty()) names.push_back(request_.user_column);
    return names;
  }

  // What would be released and charged.
  py::dict Forecast() {
    py::dict found;
    found["what"] = declaration_.what;
    found["event"] = declaration_.plan;
    found["epsilon"] = SpentEpsilon(declaration_.plan, Delta(delta_), declaration_.failure).upper;
    found["delta"] = delta_;
    if (after_) {
      found["ledger"] = ledger_->file().string();
      found["used"] = after_->UsedShare();
      found["left"] = LeftText(*after_);
    }
    return found;
  }

  // `table` holds the columns, and nothing where there is a file.
  py::dict Make(const py::list& table) {
    std::unique_ptr<MemoryTable> memory;
    if (!file_) memory = std::make_unique<MemoryTable>(table);
    std::unique_ptr<Generator> generator;
    if (seed_) {
      generator = std::make_unique<InsecureSeededGenerator>(*seed_);
    } else {
      generator = std::make_unique<SecureGenerator>();
    }
    std::string run;
    const TableResult result = [&] {
      const py::gil_scoped_release release;
      const std::string name = file_.value_or("the table");
      const ByteSource cells = [&memory](std::span<char> buffer) { return memory->Read(buffer); };
      CsvReader reader = file_ ? OpenTableFile(*file_, request_.layout)
                               : CsvReader(cells, request_.layout.delimiter, name);
      return ReleaseCsv(
          reader, release_, *generator,
          [](std::uint64_t) {
            const py::gil_scoped_acquire acquire;
            if (PyErr_CheckSignals() != 0) throw py::error_already_set();
            return true;
          },
          [&](const Event& event) { run = Charge(event); });
    }();
    return Results(result, run);
  }

 private:
  // Durable when it returns. Throws Error where the ledger refuses.
  std::string Charge(const Event& event) {
    if (!ledger_) return "";
    const Begun begun = ledger_->BeginRun(
        declaration_, {.event = event, .failure = declaration_.failure, .words = "the release"});
    if (!begun.verdict.admitted) Refuse(begun.verdict);
    return begun.id;
  }

  [[noreturn]] void Refuse(const Verdict& verdict) {
    throw Error(fmt::format("nothing was released: {}{}.",
                            RefusalText(*ledger_, declaration_, verdict),
                            verdict.needs_whole ? "; give whole=True if that is meant" : ""));
  }

  py::dict Results(const TableResult& result, const std::string& run) {
    py::list releases;
    for (const NamedRelease& named : result.releases) {
      py::list intervals;
      for (const Interval& interval : named.release.intervals) intervals.append(Pair(interval));
      py::dict one;
      one["statistic"] = named.statistic;
      one["column"] = named.column;
      one["group"] = py::tuple(py::cast(named.group));
      one["quantile"] = named.quantile;
      one["bins"] = named.bins;
      one["values"] = named.release.values;
      one["intervals"] = intervals;
      one["noise_scale"] = named.release.noise_scale;
      one["epsilon"] = named.release.epsilon.value();
      one["delta"] = named.release.delta.value();
      releases.append(one);
    }
    py::dict found;
    found["releases"] = releases;
    found["groups"] = py::list();
    for (const GroupByColumn& group : request_.group_by) {
      found["groups"].cast<py::list>().append(group.column);
    }
    found["confidence"] = request_.confidence;
    found["epsilon"] = result.epsilon.value();
    found["delta"] = result.delta.value();
    found["event"] = result.event;
    found["adjacency"] = std::string(AdjacencyName(request_.adjacency));
    found["rows_per_user"] =
        request_.user_column.empty() ? py::object(py::none()) : py::int_(request_.rows_per_user);
    found["private"] = result.is_private;
    found["warning"] = WeakGuarantee(result.epsilon.value(), result.delta.value(), 0);
    if (ledger_) {
      found["run"] = run;
      found["charged"] = ChargedText(*ledger_);
    }
    return found;
  }

  Text file_;
  std::optional<std::uint64_t> seed_;
  double delta_;
  TableRequest request_;
  TableRelease release_;
  RunDeclaration declaration_;
  std::optional<Ledger> ledger_;
  std::optional<BudgetFilter> after_;
};

}  // namespace

void BindRelease(py::module_& module) {
  module.def("cell_text", &CellText, py::arg("value"));
  py::class_<ReleaseArguments>(module, "ReleaseArguments")
      .def(py::init<>())
      .def_readwrite("statistics", &ReleaseArguments::statistics)
      .def_readwrite("bounds", &ReleaseArguments::bounds)
      .def_readwrite("edges", &ReleaseArguments::edges)
      .def_readwrite("bins", &ReleaseArguments::bins)
      .def_readwrite("categories", &ReleaseArguments::categories)
      .def_readwrite("group_by", &ReleaseArguments::group_by)
      .def_readwrite("schema", &ReleaseArguments::schema)
      .def_readwrite("no_header", &ReleaseArguments::no_header)
      .def_readwrite("encoding", &ReleaseArguments::encoding)
      .def_readwrite("delimiter", &ReleaseArguments::delimiter)
      .def_readwrite("missing", &ReleaseArguments::missing)
      .def_readwrite("epsilon", &ReleaseArguments::epsilon)
      .def_readwrite("delta", &ReleaseArguments::delta)
      .def_readwrite("noise", &ReleaseArguments::noise)
      .def_readwrite("adjacency", &ReleaseArguments::adjacency)
      .def_readwrite("user", &ReleaseArguments::user)
      .def_readwrite("rows_per_user", &ReleaseArguments::rows_per_user)
      .def_readwrite("on_error", &ReleaseArguments::on_error)
      .def_readwrite("confidence", &ReleaseArguments::confidence);
  py::class_<PlannedRelease>(module, "PlannedRelease")
      .def(py::init<const ReleaseArguments&, Text, const std::string&, bool,
                    std::optional<std::uint64_t>>(),
           py::arg("arguments"), py::arg("file"), py::arg("ledger"), py::arg("whole"),
           py::arg("insecure_seed"))
      .def("columns", &PlannedRelease::Columns)
      .def("forecast", &PlannedRelease::Forecast)
      .def("make", &PlannedRelease::Make, py::arg("table"));
}

}  // namespace sordino::python
