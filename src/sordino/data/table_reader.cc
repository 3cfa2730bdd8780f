#include "sordino/data/table_reader.h"

#include <ATen/Functions.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <set>
#include <span>

#include "sordino/base/csv_reader.h"
#include "sordino/base/error.h"
#include "sordino/base/rows_per_user.h"
#include "sordino/data/compressed_file.h"
#include "sordino/data/data_error.h"

namespace sordino {
namespace {

constexpr std::string_view kOther = "*";
constexpr const char* kForms =
    "NAME:numeric:LOW:HIGH, NAME:categorical:A|B, NAME:label:A|B or NAME:user";

std::vector<std::string> Split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (true) {
    const std::size_t end = text.find(separator);
    parts.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::string_view Trimmed(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

// The whole text as a finite number.
std::optional<double> Number(std::string_view text) {
  text = Trimmed(text);
  if (text.size() > 1 && text.front() == '+' && text[1] != '-') text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return {};
  return value;
}

TableColumn ParseNumeric(std::string_view text, TableColumn column, std::string_view bounds) {
  const std::vector<std::string> parts = Split(bounds, ':');
  const std::optional<double> low = parts.size() == 2 ? Number(parts[0]) : std::nullopt;
  const std::optional<double> high = parts.size() == 2 ? Number(parts[1]) : std::nullopt;
  if (!low || !high || !(*low < *high) || !std::isfinite(*high - *low)) {
    throw Error(
        fmt::format("The column '{}' needs two bounds, the lower one first, such as "
                    "age:numeric:0:120; they are declared and do not come from the data.",
                    text));
  }
  column.role = ColumnRole::kNumeric;
  column.low = *low;
  column.high = *high;
  return column;
}

TableColumn ParseNamed(std::string_view text, TableColumn column, std::string_view names) {
  column.values = Split(names, '|');
  const std::set<std::string> distinct(column.values.begin(), column.values.end());
  if (column.values.size() < 2 || distinct.size() != column.values.size() ||
      distinct.contains("")) {
    throw Error(
        fmt::format("The column '{}' needs at least two different values with bars between "
                    "them, such as city:categorical:Bern|Basel.",
                    text));
  }
  if (column.role == ColumnRole::kLabel && distinct.contains(std::string(kOther))) {
    throw Error(
        fmt::format("The label '{}' has the value '*'; a label has no class for the rest.", text));
  }
  return column;
}

TableColumn ParseColumn(const std::string& text) {
  const std::string_view whole = text;
  const std::size_t first = whole.find(':');
  const std::size_t second = first == std::string::npos ? first : whole.find(':', first + 1);
  TableColumn column;
  column.name = whole.substr(0, first);
  const std::string_view role =
      first == std::string::npos ? std::string_view() : whole.substr(first + 1, second - first - 1);
  const std::string_view rest =
      second == std::string::npos ? std::string_view() : whole.substr(second + 1);
  if (!column.name.empty()) {
    if (role == "numeric") return ParseNumeric(text, std::move(column), rest);
    column.role = role == "label" ? ColumnRole::kLabel : ColumnRole::kCategorical;
    if (role == "label" || role == "categorical") return ParseNamed(text, std::move(column), rest);
    column.role = ColumnRole::kUser;
    if (role == "user" && second == std::string::npos) return column;
  }
  throw Error(fmt::format("The column '{}' cannot be read; write {}.", text, kForms));
}

// Where a declared column stands in the file; nullopt for one that may be missing and is.
using Places = std::vector<std::optional<std::size_t>>;

Places FindColumns(const std::vector<std::string_view>& header, const std::string& name,
                   const TableOptions& options) {
  Places places;
  for (const TableColumn& column : options.columns) {
    const auto found = std::find(header.begin(), header.end(), column.name);
    if (found == header.end()) {
      const bool unneeded = column.role == ColumnRole::kUser
                                ? options.rows_per_user == 0
                                : column.role == ColumnRole::kLabel && !options.labelled;
      if (unneeded) {
        places.emplace_back();
        continue;
      }
      // The first line of a file without a header is a record.
      const std::string nearest = NearestName(column.name, header);
      throw DataError(fmt::format("'{}' has no column '{}' in its first line; declare the columns "
                                  "by the names of the file.",
                                  name, column.name),
                      nearest.empty() ? "no name in the line is near to it"
                                      : fmt::format("is it {}?", QuotedText(nearest)));
    }
    if (std::find(found + 1, header.end(), column.name) != header.end()) {
      throw Error(
          fmt::format("'{}' has the column '{}' twice; give it two names.", name, column.name));
    }
    places.emplace_back(static_cast<std::size_t>(found - header.begin()));
  }
  return places;
}

class RowReader {
 public:
  RowReader(const std::string& name, const TableOptions& options, Places places)
      : name_(name), options_(options), places_(std::move(places)) {
    if (options.rows_per_user > 0) {
      cap_.emplace(static_cast<std::uint32_t>(std::min<std::int64_t>(
          options.rows_per_user, std::numeric_limits<std::uint32_t>::max())));
    }
  }

  void Take(const std::vector<std::string_view>& fields, std::uint64_t line) {
    if (!Keep(fields, line)) return;
    for (std::size_t i = 0; i < places_.size(); ++i) {
      if (!places_[i]) continue;
      const TableColumn& column = options_.columns[i];
      const std::string_view cell = fields[*places_[i]];
      switch (column.role) {
        case ColumnRole::kNumeric:
          TakeNumber(column, cell, line);
          break;
        case ColumnRole::kCategorical: {
          const std::size_t category = CategoryOf(column, cell, line);
          for (std::size_t k = 0; k < column.values.size(); ++k) {
            features_.push_back(k == category ? 1.0F : 0.0F);
          }
          break;
        }
        case ColumnRole::kLabel:
          labels_.push_back(static_cast<std::int64_t>(CategoryOf(column, cell, line)));
          break;
        case ColumnRole::kUser:
          break;
      }
    }
    ++rows_;
  }

  Dataset Finish(const DatasetDeclaration& declaration) const {
    Dataset data;
    data.declaration = declaration;
    const std::int64_t width = declaration.shape[0];
    data.inputs = at::empty({rows_, width}, at::kFloat);
    std::copy(features_.begin(), features_.end(), data.inputs.mutable_data_ptr<float>());
    if (HasLabel()) {
      data.labels = at::empty({rows_}, at::kLong);
      std::copy(labels_.begin(), labels_.end(), data.labels.mutable_data_ptr<std::int64_t>());
    }
    return data;
  }

 private:
  bool HasLabel() const {
    for (std::size_t i = 0; i < places_.size(); ++i) {
      if (places_[i] && options_.columns[i].role == ColumnRole::kLabel) return true;
    }
    return false;
  }

  bool Keep(const std::vector<std::string_view>& fields, std::uint64_t line) {
    if (!cap_) return true;
    for (std::size_t i = 0; i < places_.size(); ++i) {
      if (options_.columns[i].role != ColumnRole::kUser) continue;
      const std::string_view user = fields[*places_[i]];
      if (user.empty()) {
        throw DataError(
            fmt::format("A row of '{}' names no user in the column '{}'; every row needs one.",
                        name_, options_.columns[i].name),
            fmt::format("it is line {}", line));
      }
      return cap_->Keep(user);
    }
    return true;
  }

  void TakeNumber(const TableColumn& column, std::string_view cell, std::uint64_t line) {
    const std::optional<double> value = Number(cell);
    if (!value) {
      throw DataError(
          fmt::format("A row of '{}' has {} in the column '{}'; give a finite number, "
                      "or leave the row out.",
                      name_, Trimmed(cell).empty() ? "nothing" : "no finite number", column.name),
          fmt::format("line {} has {}", line, QuotedText(cell)));
    }
    const double clamped = std::clamp(*value, column.low, column.high);
    features_.push_back(static_cast<float>((clamped - column.low) / (column.high - column.low)));
  }

  std::size_t CategoryOf(const TableColumn& column, std::string_view cell, std::uint64_t line) {
    const auto find = [&](std::string_view value) {
      return std::find(column.values.begin(), column.values.end(), value) - column.values.begin();
    };
    auto place = static_cast<std::size_t>(find(cell));
    if (place == column.values.size()) place = static_cast<std::size_t>(find(Trimmed(cell)));
    if (place == column.values.size() && column.role == ColumnRole::kCategorical) {
      place = static_cast<std::size_t>(find(kOther));
    }
    if (place < column.values.size()) return place;
    throw DataError(
        fmt::format("A row of '{}' has {} in the column '{}', which was declared as {}; {}.", name_,
                    Trimmed(cell).empty() ? "nothing" : "a value that is not declared", column.name,
                    fmt::join(column.values, "|"),
                    column.role == ColumnRole::kLabel
                        ? "declare every class, or correct the row"
                        : "declare every category, or add |* for all that are not named"),
        fmt::format("line {} has {}", line, QuotedText(cell)));
  }

  const std::string& name_;
  const TableOptions& options_;
  Places places_;
  std::optional<RowsPerUser> cap_;
  std::vector<float> features_;
  std::vector<std::int64_t> labels_;
  std::int64_t rows_ = 0;
};

}  // namespace

std::int64_t TableColumn::Features() const {
  switch (role) {
    case ColumnRole::kNumeric:
      return 1;
    case ColumnRole::kCategorical:
      return static_cast<std::int64_t>(values.size());
    case ColumnRole::kLabel:
    case ColumnRole::kUser:
      return 0;
  }
  return 0;
}

std::vector<TableColumn> ParseColumns(const std::vector<std::string>& declared) {
  std::vector<TableColumn> columns;
  std::set<std::string> names;
  std::int64_t features = 0;
  std::int64_t labels = 0;
  std::int64_t users = 0;
  for (const std::string& text : declared) {
    columns.push_back(ParseColumn(text));
    const TableColumn& column = columns.back();
    if (!names.insert(column.name).second) {
      throw Error(fmt::format("The column '{}' is declared twice; declare it once.", column.name));
    }
    features += column.Features();
    labels += column.role == ColumnRole::kLabel ? 1 : 0;
    users += column.role == ColumnRole::kUser ? 1 : 0;
  }
  if (features == 0 || labels > 1 || users > 1) {
    throw Error(fmt::format(
        "The declared columns have {} features, {} labels and {} users; a table needs at least one "
        "feature, and at most one label and one user: write {}.",
        features, labels, users, kForms));
  }
  return columns;
}

void DeclareColumns(const std::vector<TableColumn>& columns, DatasetDeclaration& declaration) {
  declaration.kind = InputKind::kFeatures;
  declaration.shape = {0};
  for (const TableColumn& column : columns) {
    declaration.shape[0] += column.Features();
    if (column.role == ColumnRole::kLabel) {
      declaration.class_names = column.values;
      declaration.classes = static_cast<std::int64_t>(column.values.size());
    }
  }
}

Dataset ReadTable(const std::filesystem::path& path, const DatasetDeclaration& declaration,
                  const TableOptions& options) {
  const std::vector<std::byte> bytes = ReadWholeFile(path);
  return ParseTable({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path.string(),
                    declaration, options);
}

Dataset ParseTable(std::string_view text, const std::string& name,
                   const DatasetDeclaration& declaration, const TableOptions& options) {
  CsvReader reader(FromText(text), options.separator);
  const auto next = [&] {
    if (!reader.Next()) return false;
    if (!reader.broken().empty()) {
      throw DataError(fmt::format("A row of '{}' cannot be read: {}.", name, reader.broken()),
                      fmt::format("it is line {}", reader.line()));
    }
    return true;
  };
  if (!next())
    throw Error(fmt::format("'{}' is empty; a table starts with a line of names.", name));
  const std::size_t width = reader.fields().size();
  RowReader rows(name, options, FindColumns(reader.fields(), name, options));
  while (next()) {
    if (reader.fields().size() != width) {
      throw DataError(
          fmt::format("A row of '{}' has another number of fields than its first line; correct "
                      "or leave out the row.",
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

}  // namespace sordino
