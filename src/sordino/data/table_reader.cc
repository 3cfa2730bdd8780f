#include "sordino/data/table_reader.h"

#include <ATen/Functions.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <utility>

#include "sordino/base/error.h"
#include "sordino/base/list_text.h"
#include "sordino/data/internal/data_format.h"
#include "sordino/data/internal/declaration_check.h"
#include "sordino/data/internal/format_declaration.h"
#include "sordino/data/text_reader.h"
#include "sordino/tables/arrow_file.h"
#include "sordino/tables/bad_cells.h"
#include "sordino/tables/cell_rules.h"
#include "sordino/tables/csv_reader.h"
#include "sordino/tables/data_error.h"
#include "sordino/tables/rows_per_user.h"
#include "sordino/tables/schema_text.h"
#include "sordino/tables/table_file.h"

namespace sordino {
namespace {

// Where a declared column stands in the file; nullopt for one that may be missing and is.
using Places = std::vector<std::optional<std::size_t>>;

// The place of a column by its name; nothing where it is not there.
std::optional<std::size_t> PlaceOf(const std::string& column, const std::vector<std::string>& names,
                                   const std::string& file) {
  const auto found = std::find(names.begin(), names.end(), column);
  if (found == names.end()) return std::nullopt;
  if (std::find(found + 1, names.end(), column) != names.end()) {
    throw Error(fmt::format("'{}' has the column '{}' twice; give it two names.", file, column));
  }
  return static_cast<std::size_t>(found - names.begin());
}

std::size_t NeededPlace(const std::string& column, const std::vector<std::string>& names,
                        const std::string& file, const TableLayout& layout) {
  if (const std::optional<std::size_t> place = PlaceOf(column, names, file)) return *place;
  if (!layout.header) {
    throw Error(
        fmt::format("'{}' has no column '{}'; without a header the columns are called 1, 2, 3 and "
                    "so on.",
                    file, column));
  }
  // The first line of a file without a header is a record.
  const std::vector<std::string_view> known(names.begin(), names.end());
  const std::string nearest = NearestName(column, known);
  throw DataError(
      fmt::format("'{}' has no column '{}' in its first line; declare the columns by the names of "
                  "the file, or give --no-header.",
                  file, column),
      nearest.empty() ? "no name in the line is near to it"
                      : fmt::format("is it {}?", QuotedText(nearest)));
}

Places FindColumns(const std::vector<std::string>& names, const std::string& file,
                   const TableOptions& options) {
  Places places;
  for (const TableColumn& column : options.columns) {
    const bool unneeded = column.role == ColumnRole::kUser ? options.rows_per_user == 0
                                                           : (column.role == ColumnRole::kLabel ||
                                                              column.role == ColumnRole::kTarget) &&
                                                                 !options.labelled;
    places.push_back(unneeded ? PlaceOf(column.name, names, file)
                              : NeededPlace(column.name, names, file, options.layout));
  }
  return places;
}

// Rows of numbers whose count is not known in advance. They are kept in blocks, so that a table
// needs little more memory than its features.
class FeatureRows {
 public:
  explicit FeatureRows(std::size_t width)
      : width_(width), block_rows_(std::max<std::size_t>(1, kBlockNumbers / width)) {}

  // A row of zeros after the last.
  float* Add() {
    const std::size_t place = static_cast<std::size_t>(rows_++) % block_rows_;
    if (place == 0) blocks_.emplace_back(block_rows_ * width_);
    return blocks_.back().data() + place * width_;
  }
  // Takes the last row away.
  void Drop() {
    const std::size_t place = static_cast<std::size_t>(--rows_) % block_rows_;
    if (place == 0) {
      blocks_.pop_back();
    } else {
      std::fill_n(blocks_.back().data() + place * width_, width_, 0.0F);
    }
  }
  std::int64_t rows() const { return rows_; }

  // Gives up the rows.
  at::Tensor Take() {
    at::Tensor all = at::empty({rows_, static_cast<std::int64_t>(width_)}, at::kFloat);
    auto* to = all.mutable_data_ptr<float>();
    std::size_t left = static_cast<std::size_t>(rows_) * width_;
    for (std::vector<float>& block : blocks_) {
      const std::size_t size = std::min(left, block.size());
      std::copy_n(block.begin(), size, to);
      to += size;
      left -= size;
      std::vector<float>().swap(block);
    }
    return all;
  }

 private:
  static constexpr std::size_t kBlockNumbers = std::size_t{1} << 20;

  std::size_t width_;
  std::size_t block_rows_;
  std::int64_t rows_ = 0;
  std::vector<std::vector<float>> blocks_;
};

// What can be wrong with a whole row.
enum class BadRow : std::uint8_t { kBroken, kFields, kNoUser };

std::string ShownValues(const TableColumn& column) {
  return fmt::format("{}", fmt::join(column.values, "|"));
}

class RowReader {
 public:
  RowReader(const std::string& name, const TableOptions& options,
            const std::vector<std::string>& names, std::int64_t width)
      : name_(name),
        options_(options),
        places_(FindColumns(names, name, options)),
        features_(static_cast<std::size_t>(width)) {
    if (!options.id.empty()) id_ = NeededPlace(options.id, names, name, options.layout);
    if (options.rows_per_user > 0) {
      cap_.emplace(static_cast<std::uint32_t>(std::min<std::int64_t>(
          options.rows_per_user, std::numeric_limits<std::uint32_t>::max())));
    }
  }

  // Rows with a cell that does not keep to the declaration are left out and counted, or refused by
  // Finish: at most so many rows of a user as count at all. One without a user is always refused.
  void Take(const std::vector<std::string_view>& fields, std::uint64_t line) {
    if (!Keep(fields, line)) return;
    const std::size_t labels = labels_.size();
    const std::size_t targets = targets_.size();
    if (TakeCells(fields, line)) return;
    features_.Drop();
    labels_.resize(labels);
    targets_.resize(targets);
    if (options_.malformed == MalformedRows::kSkip) ++malformed_;
  }

  // A row that cannot be read at all.
  void Refuse(BadRow kind, std::string what, std::string advice, std::string detail) {
    bad_.Add(BadCells::kRow, static_cast<int>(kind), [&]() -> BadCell {
      return {"a row " + what, fmt::format("a row of '{}' {}; {}.", name_, what, advice), detail};
    });
  }

  Dataset Finish(const DatasetDeclaration& declaration) {
    bad_.Refuse(name_);
    Dataset data;
    data.declaration = declaration;
    data.ids = std::move(ids_);
    data.malformed = malformed_;
    const std::int64_t rows = features_.rows();
    data.inputs = features_.Take();
    if (Has(ColumnRole::kLabel)) {
      data.labels = at::empty({rows}, at::kLong);
      std::copy(labels_.begin(), labels_.end(), data.labels.mutable_data_ptr<std::int64_t>());
    } else if (Has(ColumnRole::kTarget)) {
      data.labels = at::empty({rows}, at::kFloat);
      std::copy(targets_.begin(), targets_.end(), data.labels.mutable_data_ptr<float>());
    }
    return data;
  }

 private:
  // False where a cell does not keep to the declaration; all cells are looked at.
  bool TakeCells(const std::vector<std::string_view>& fields, std::uint64_t line) {
    float* to = features_.Add();
    bool good = true;
    for (std::size_t i = 0; i < places_.size(); ++i) {
      if (!places_[i]) continue;
      const TableColumn& column = options_.columns[i];
      const std::string_view cell = fields[*places_[i]];
      switch (column.role) {
        case ColumnRole::kNumeric: {
          const std::optional<double> number = NumberOf(i, cell, line);
          good = good && number;
          const double value = std::clamp(number.value_or(column.low), column.low, column.high);
          *to++ = static_cast<float>((value - column.low) / (column.high - column.low));
          break;
        }
        case ColumnRole::kCategorical: {
          const std::optional<std::size_t> category = CategoryOf(i, cell, line);
          good = good && category;
          // None: after the last.
          if (category && *category < column.values.size()) to[*category] = 1;
          to += column.values.size();
          break;
        }
        case ColumnRole::kText:
          if (!options_.layout.IsMissing(cell)) AddHashedWords(cell, column.buckets, to);
          to += column.buckets;
          break;
        case ColumnRole::kLabel: {
          const std::optional<std::size_t> label = CategoryOf(i, cell, line);
          good = good && label;
          labels_.push_back(static_cast<std::int64_t>(label.value_or(0)));
          break;
        }
        case ColumnRole::kTarget: {
          const TargetBounds bounds{column.name, column.low, column.high};
          const std::optional<double> number = NumberOf(i, cell, line);
          good = good && number;
          targets_.push_back(static_cast<float>(bounds.Scaled(number.value_or(column.low))));
          break;
        }
        case ColumnRole::kUser:
          break;
      }
    }
    if (id_ && good) ids_.emplace_back(fields[*id_]);
    return good;
  }

  bool Has(ColumnRole role) const {
    for (std::size_t i = 0; i < places_.size(); ++i) {
      if (places_[i] && options_.columns[i].role == role) return true;
    }
    return false;
  }

  bool Keep(const std::vector<std::string_view>& fields, std::uint64_t line) {
    if (!cap_) return true;
    for (std::size_t i = 0; i < places_.size(); ++i) {
      if (options_.columns[i].role != ColumnRole::kUser) continue;
      const std::string_view user = Trimmed(fields[*places_[i]]);
      if (user.empty()) {
        Refuse(BadRow::kNoUser,
               fmt::format("names no user in the column '{}'", options_.columns[i].name),
               "every row needs one", fmt::format("it is line {}", line));
        return false;
      }
      return cap_->Keep(user);
    }
    return true;
  }

  // Notes a cell that does not keep to the declaration; under kSkip its row is left out without a
  // word.
  void AddBad(std::size_t place, int kind, std::string_view holds, const std::string& advice,
              std::string_view cell, std::uint64_t line) {
    if (options_.malformed == MalformedRows::kSkip) return;
    bad_.Add(BadCells::PlaceOf(place), kind, [&]() -> BadCell {
      const TableColumn& column = options_.columns[place];
      const std::string declared =
          column.HasValues() ? fmt::format(", which was declared as {}", ShownValues(column)) : "";
      const std::string what =
          fmt::format("has {} in the column '{}'{}", holds, column.name, declared);
      return {"a row " + what, fmt::format("a row of '{}' {}; {}.", name_, what, advice),
              fmt::format("line {} has {}", line, QuotedText(cell))};
    });
  }

  std::optional<double> NumberOf(std::size_t place, std::string_view cell, std::uint64_t line) {
    const TableColumn& column = options_.columns[place];
    double value = 0;
    const bool may_miss = column.role == ColumnRole::kNumeric;
    const double middle = column.low + (column.high - column.low) / 2;
    if (may_miss && options_.layout.IsMissing(cell)) return middle;
    const NumberError error = ReadCell(column.cells, cell, &value);
    if (error == NumberError::kNone) return value;
    if (error == NumberError::kMissing) return middle;
    const CellForm form = column.cells.form;
    const std::string_view wanted = form == CellForm::kDate      ? "a date as it is declared"
                                    : form == CellForm::kBoolean ? "yes or no as it is declared"
                                                                 : "a finite number";
    const std::string_view holds = error == NumberError::kEmpty ? "nothing"
                                   : form == CellForm::kDate    ? "no date in the declared format"
                                   : form == CellForm::kBoolean ? "neither yes nor no"
                                                                : "no finite number";
    AddBad(place, error == NumberError::kEmpty ? 0 : 1, holds,
           fmt::format("give {}{}", wanted,
                       may_miss ? ", leave the row out, or declare what stands for a missing value "
                                  "with --missing"
                                : " or leave the row out"),
           cell, line);
    return std::nullopt;
  }

  std::optional<std::size_t> CategoryOf(std::size_t place, std::string_view cell,
                                        std::uint64_t line) {
    const TableColumn& column = options_.columns[place];
    std::size_t value = column.ValueOf(Trimmed(cell));
    if (column.role == ColumnRole::kCategorical) {
      if (value == column.values.size()) value = column.ValueOf(kOtherCategory);
      if (options_.layout.IsMissing(cell)) return value;
    }
    if (value < column.values.size()) return value;
    const bool is_empty = Trimmed(cell).empty();
    AddBad(place, is_empty ? 0 : 1, is_empty ? "nothing" : "a value that is not declared",
           column.role == ColumnRole::kLabel
               ? "declare every class, or correct the row"
               : "declare every category, add |* for all that are not named, or declare "
                 "missing values with --missing",
           cell, line);
    return std::nullopt;
  }

  const std::string& name_;
  const TableOptions& options_;
  Places places_;
  std::optional<RowsPerUser> cap_;
  std::optional<std::size_t> id_;
  std::vector<std::string> ids_;
  FeatureRows features_;
  std::vector<std::int64_t> labels_;
  std::vector<float> targets_;
  std::int64_t malformed_ = 0;
  BadCells bad_;
};

Dataset ReadRows(CsvReader reader, const std::string& name, const DatasetDeclaration& declaration,
                 const TableOptions& options) {
  TableRows records(reader, options.layout);
  RowReader rows(name, options, records.names(), declaration.shape[0]);
  while (records.Next()) {
    const std::size_t width = records.names().size();
    if (!reader.broken().empty()) {
      rows.Refuse(BadRow::kBroken, fmt::format("cannot be split into fields: {}", reader.broken()),
                  "correct it or leave it out", fmt::format("it is line {}", reader.line()));
    } else if (reader.fields().size() != width) {
      rows.Refuse(BadRow::kFields, "has another number of fields than its first line",
                  "correct or leave out the row, or give the --delimiter of the table",
                  fmt::format("line {} has {} fields, and the first line {}", reader.line(),
                              reader.fields().size(), width));
    } else {
      rows.Take(reader.fields(), reader.line());
    }
  }
  Dataset data = rows.Finish(declaration);
  CheckDeclaration(data);
  return data;
}

// What a request says about a table. A schema was read before (WithSchema).
TableOptions OptionsFor(const DataRequest& request, char delimiter) {
  TableOptions options;
  options.columns = ParseColumns(request.columns.declared);
  options.layout = {
      .encoding = request.encoding.empty() ? Encoding::kUtf8 : ParseEncoding(request.encoding),
      .delimiter = request.delimiter.empty() ? delimiter : ParseDelimiter(request.delimiter),
      .quote = request.quote.empty() ? TableLayout().quote : ParseQuote(request.quote),
      .header = !request.no_header,
      .missing = request.missing};
  options.rows_per_user = request.rows_per_user;
  options.id = request.id;
  options.malformed = request.malformed;
  return options;
}

void CheckUser(const DataRequest& request, std::span<const TableColumn> columns) {
  const bool has_user = std::any_of(columns.begin(), columns.end(), [](const TableColumn& column) {
    return column.role == ColumnRole::kUser;
  });
  if (has_user && request.rows_per_user == 0) {
    throw Error(
        "a user column was declared without a cap on the rows of a user; give "
        "--rows-per-user, such as 1.");
  }
  if (!has_user && request.rows_per_user > 0) {
    throw Error(
        fmt::format("at most {} rows of a user were declared without a user column; "
                    "declare it, such as id:user.",
                    request.rows_per_user));
  }
}

internal::DatasetReader OpenTable(const DataRequest& request, char delimiter,
                                  DatasetDeclaration& declaration) {
  internal::Need(!request.columns.declared.empty(), "columns of a table",
                 "--columns, such as age:numeric:0:120 sick:label:no|yes, or --schema with a file "
                 "that 'sordino data FILE --declare schema.toml' makes");
  TableOptions options = OptionsFor(request, delimiter);
  DeclareColumns(options.columns, declaration);
  CheckUser(request, options.columns);
  declaration.rows_per_user = request.rows_per_user;
  return [options](const internal::SplitFiles& files, const DatasetDeclaration& declared,
                   const internal::ReadOptions& how) {
    TableOptions now = options;
    now.labelled = how.labelled;
    if (!how.capped) now.rows_per_user = 0;
    return ReadTable(files.inputs.front(), declared, now);
  };
}

std::vector<std::string> NamesIn(const std::filesystem::path& path, const DataRequest& request,
                                 char delimiter) {
  const TableLayout layout = OptionsFor(request, delimiter).layout;
  const std::string name = path.string();
  CsvReader reader = OpenTableFile(name, layout);
  const TableRows rows(reader, layout);
  if (!rows.has_lines()) {
    throw Error(fmt::format("'{}' is empty, and its columns are not known.", name));
  }
  return rows.names();
}

std::string TemplateOf(const std::filesystem::path& path, const DataRequest& request,
                       char delimiter) {
  return SchemaTemplate(NamesIn(path, request, delimiter), OptionsFor(request, delimiter).layout);
}

constexpr internal::NeededSetting kNeededColumns = {
    "columns", "the columns of the table", "--schema schema.toml",
    "a file that 'sordino data FILE --declare schema.toml' makes to be filled in"};

const std::vector<std::string_view>& TableSettings() {
  static const std::vector<std::string_view> keys = {"columns",  "schema",    "no-header",
                                                     "encoding", "delimiter", "quote",
                                                     "missing",  "id",        "rows-per-user"};
  return keys;
}

}  // namespace

void DeclareColumns(std::span<const TableColumn> columns, DatasetDeclaration& declaration) {
  declaration.kind = InputKind::kFeatures;
  declaration.shape = {0};
  for (const TableColumn& column : columns) {
    declaration.shape[0] += column.Features();
    if (column.role == ColumnRole::kLabel) {
      declaration.class_names = column.values;
      declaration.classes = static_cast<std::int64_t>(column.values.size());
    }
    if (column.role == ColumnRole::kTarget) {
      declaration.target = TargetBounds{column.name, column.low, column.high};
    }
  }
  if (declaration.shape[0] == 0) {
    throw Error(
        "the declared columns have no features; declare a numeric or categorical column, such as "
        "age:numeric:0:120.");
  }
}

Dataset ReadTable(const std::filesystem::path& path, const DatasetDeclaration& declaration,
                  const TableOptions& options) {
  const std::string name = path.string();
  return ReadRows(OpenTableFile(name, options.layout), name, declaration, options);
}

Dataset ParseTable(std::string_view text, const std::string& name,
                   const DatasetDeclaration& declaration, const TableOptions& options) {
  const ByteSource source = InUtf8(FromText(text), options.layout.encoding, name);
  return ReadRows(CsvReader(source, options.layout.delimiter, name, options.layout.quote), name,
                  declaration, options);
}

DatasetDeclaration DeclareTable(const DataRequest& request, std::string name) {
  const std::vector<TableColumn> columns = ParseColumns(request.columns.declared);
  DatasetDeclaration declaration;
  declaration.name = std::move(name);
  DeclareColumns(columns, declaration);
  CheckUser(request, columns);
  if (request.records < 0) {
    throw Error(fmt::format("the number of records is {}; give --records above 0, or leave it out.",
                            request.records));
  }
  declaration.rows_per_user = request.rows_per_user;
  declaration.records = request.records;
  internal::CheckItself(declaration);
  return declaration;
}

Dataset TakeTable(const ProgramTable& table, const DatasetDeclaration& declaration,
                  const DataRequest& request, bool labelled) {
  TableOptions options = OptionsFor(request, ',');
  options.labelled = labelled;
  if (!labelled) options.rows_per_user = 0;  // records to predict
  RowReader rows(table.name, options, table.columns, declaration.shape[0]);
  std::vector<std::string_view> cells(table.columns.size());
  for (std::uint64_t row = 1; table.next(cells); ++row) rows.Take(cells, row);
  Dataset data = rows.Finish(declaration);
  CheckDeclaration(data);
  return data;
}

namespace internal {

namespace {

// `kDelimiter` is that of files of this format, where none is declared.
template <char kDelimiter>
DataFormat TableFormat(std::string_view name, std::string_view help,
                       std::vector<std::string_view> endings) {
  return {
      .name = name,
      .help = help,
      .endings = std::move(endings),
      .takes = TableSettings(),
      .needs = {kNeededColumns},
      .open = [](const DataRequest& request,
                 DatasetDeclaration& declared) { return OpenTable(request, kDelimiter, declared); },
      .column_names = [](const std::filesystem::path& path,
                         const DataRequest& request) { return NamesIn(path, request, kDelimiter); },
      .schema_template =
          [](const std::filesystem::path& path, const DataRequest& request) {
            return TemplateOf(path, request, kDelimiter);
          }};
}

}  // namespace

const DataFormat& CsvFormat() {
  static const DataFormat format =
      TableFormat<','>("csv", "a table with commas between its fields", {".csv"});
  return format;
}

const DataFormat& TsvFormat() {
  static const DataFormat format =
      TableFormat<'\t'>("tsv", "a table with tabs between its fields", {".tsv"});
  return format;
}

const DataFormat& ParquetFormat() {
  static const DataFormat format = [] {
    DataFormat parquet = TableFormat<','>("parquet", "a table in Parquet's columns", {".parquet"});
    parquet.begins = [](std::string_view bytes) { return IsParquet(bytes); };
    return parquet;
  }();
  return format;
}

const DataFormat& ArrowFormat() {
  static const DataFormat format = [] {
    DataFormat arrow =
        TableFormat<','>("arrow", "a table as an Arrow or Feather file", {".arrow", ".feather"});
    arrow.begins = [](std::string_view bytes) { return IsArrow(bytes); };
    return arrow;
  }();
  return format;
}

}  // namespace internal
}  // namespace sordino
