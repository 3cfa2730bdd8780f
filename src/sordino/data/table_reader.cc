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
#include "sordino/tables/cell.h"
#include "sordino/tables/compressed_file.h"
#include "sordino/tables/csv_reader.h"
#include "sordino/tables/data_error.h"
#include "sordino/tables/rows_per_user.h"
#include "sordino/tables/table_schema.h"

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

  // A row with a cell that does not keep to the declaration is a DataError, or counted: at most so
  // many rows of a user as count at all. One without a user is always a DataError.
  void Take(const std::vector<std::string_view>& fields, std::uint64_t line) {
    if (!Keep(fields, line)) return;
    if (options_.malformed == MalformedRows::kRefuse) return TakeCells(fields, line);
    const std::size_t labels = labels_.size();
    const std::size_t targets = targets_.size();
    try {
      TakeCells(fields, line);
    } catch (const DataError&) {
      features_.Drop();
      labels_.resize(labels);
      targets_.resize(targets);
      ++malformed_;
    }
  }

  Dataset Finish(const DatasetDeclaration& declaration) {
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
  void TakeCells(const std::vector<std::string_view>& fields, std::uint64_t line) {
    float* to = features_.Add();
    for (std::size_t i = 0; i < places_.size(); ++i) {
      if (!places_[i]) continue;
      const TableColumn& column = options_.columns[i];
      const std::string_view cell = fields[*places_[i]];
      switch (column.role) {
        case ColumnRole::kNumeric: {
          const double value = std::clamp(NumberOf(column, cell, line), column.low, column.high);
          *to++ = static_cast<float>((value - column.low) / (column.high - column.low));
          break;
        }
        case ColumnRole::kCategorical: {
          const std::size_t category = CategoryOf(column, cell, line);  // none: after the last
          if (category < column.values.size()) to[category] = 1;
          to += column.values.size();
          break;
        }
        case ColumnRole::kText:
          if (!options_.layout.IsMissing(cell)) AddHashedWords(cell, column.buckets, to);
          to += column.buckets;
          break;
        case ColumnRole::kLabel:
          labels_.push_back(static_cast<std::int64_t>(CategoryOf(column, cell, line)));
          break;
        case ColumnRole::kTarget: {
          const TargetBounds bounds{column.name, column.low, column.high};
          targets_.push_back(static_cast<float>(bounds.Scaled(NumberOf(column, cell, line))));
          break;
        }
        case ColumnRole::kUser:
          break;
      }
    }
    if (id_) ids_.emplace_back(fields[*id_]);
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
        throw DataError(
            fmt::format("a row of '{}' names no user in the column '{}'; every row needs one.",
                        name_, options_.columns[i].name),
            fmt::format("it is line {}", line));
      }
      return cap_->Keep(user);
    }
    return true;
  }

  double NumberOf(const TableColumn& column, std::string_view cell, std::uint64_t line) const {
    double value = 0;
    const bool may_miss = column.role == ColumnRole::kNumeric;
    if (may_miss && options_.layout.IsMissing(cell)) {
      return column.low + (column.high - column.low) / 2;
    }
    if (ParseNumber(cell, &value) == NumberError::kNone) return value;
    throw DataError(
        fmt::format("a row of '{}' has {} in the column '{}'; give a finite number{}.", name_,
                    Trimmed(cell).empty() ? "nothing" : "no finite number", column.name,
                    may_miss ? ", leave the row out, or declare what stands for a missing value "
                               "with --missing"
                             : " or leave the row out"),
        fmt::format("line {} has {}", line, QuotedText(cell)));
  }

  std::size_t CategoryOf(const TableColumn& column, std::string_view cell,
                         std::uint64_t line) const {
    std::size_t place = column.ValueOf(Trimmed(cell));
    if (column.role == ColumnRole::kCategorical) {
      if (place == column.values.size()) place = column.ValueOf(kOtherCategory);
      if (options_.layout.IsMissing(cell)) return place;
    }
    if (place < column.values.size()) return place;
    throw DataError(
        fmt::format("a row of '{}' has {} in the column '{}', which was declared as {}; {}.", name_,
                    Trimmed(cell).empty() ? "nothing" : "a value that is not declared", column.name,
                    fmt::join(column.values, "|"),
                    column.role == ColumnRole::kLabel
                        ? "declare every class, or correct the row"
                        : "declare every category, add |* for all that are not named, or declare "
                          "missing values with --missing"),
        fmt::format("line {} has {}", line, QuotedText(cell)));
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
};

Dataset ReadRows(ByteSource source, const std::string& name, const DatasetDeclaration& declaration,
                 const TableOptions& options) {
  CsvReader reader(InUtf8(std::move(source), options.layout.encoding, name),
                   options.layout.delimiter, name);
  TableRows records(reader, options.layout);
  RowReader rows(name, options, records.names(), declaration.shape[0]);
  while (records.Next()) {
    if (!reader.broken().empty()) {
      throw DataError(fmt::format("a line of '{}' cannot be read: {}.", name, reader.broken()),
                      fmt::format("it is line {}", reader.line()));
    }
    const std::size_t width = records.names().size();
    if (reader.fields().size() != width) {
      throw DataError(
          fmt::format("a row of '{}' has another number of fields than its first line; correct "
                      "or leave out the row, or give the --delimiter of the table.",
                      name),
          fmt::format("line {} has {} fields, and the first line {}", reader.line(),
                      reader.fields().size(), width));
    }
    rows.Take(reader.fields(), reader.line());
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

std::string TemplateOf(const std::filesystem::path& path, const DataRequest& request,
                       char delimiter) {
  const TableLayout layout = OptionsFor(request, delimiter).layout;
  const std::string name = path.string();
  CsvReader reader(InUtf8(Decompressed(OpenFile(name), name), layout.encoding, name),
                   layout.delimiter, name);
  const TableRows rows(reader, layout);
  if (!rows.has_lines()) {
    throw Error(fmt::format("'{}' is empty, and its columns are not known.", name));
  }
  return SchemaTemplate(rows.names(), layout);
}

constexpr internal::NeededSetting kNeededColumns = {
    "columns", "the columns of the table", "--schema schema.toml",
    "a file that 'sordino data FILE --declare schema.toml' makes to be filled in"};

const std::vector<std::string_view>& TableSettings() {
  static const std::vector<std::string_view> keys = {
      "columns", "schema", "no-header", "encoding", "delimiter", "missing", "id", "rows-per-user"};
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
  return ReadRows(Decompressed(OpenFile(name), name), name, declaration, options);
}

Dataset ParseTable(std::string_view text, const std::string& name,
                   const DatasetDeclaration& declaration, const TableOptions& options) {
  return ReadRows(FromText(text), name, declaration, options);
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

const DataFormat& CsvFormat() {
  static const DataFormat format = {
      .name = "csv",
      .help = "a table with commas between its fields",
      .endings = {".csv"},
      .takes = TableSettings(),
      .needs = {kNeededColumns},
      .open = [](const DataRequest& request,
                 DatasetDeclaration& declared) { return OpenTable(request, ',', declared); },
      .schema_template = [](const std::filesystem::path& path,
                            const DataRequest& request) { return TemplateOf(path, request, ','); }};
  return format;
}

const DataFormat& TsvFormat() {
  static const DataFormat format = {
      .name = "tsv",
      .help = "a table with tabs between its fields",
      .endings = {".tsv"},
      .takes = TableSettings(),
      .needs = {kNeededColumns},
      .open = [](const DataRequest& request,
                 DatasetDeclaration& declared) { return OpenTable(request, '\t', declared); },
      .schema_template =
          [](const std::filesystem::path& path, const DataRequest& request) {
            return TemplateOf(path, request, '\t');
          }};
  return format;
}

}  // namespace internal
}  // namespace sordino
