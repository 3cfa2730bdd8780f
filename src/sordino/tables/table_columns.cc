#include "sordino/tables/table_columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include "sordino/base/error.h"
#include "sordino/base/list_text.h"
#include "sordino/tables/cell.h"

namespace sordino {
namespace {

constexpr std::array<std::string_view, 4> kRoleNames = {"numeric", "categorical", "label", "user"};
constexpr const char* kForms =
    "NAME:numeric:LOW:HIGH, NAME:categorical:A|B, NAME:label:A|B or NAME:user";

bool HasValues(ColumnRole role) {
  return role == ColumnRole::kCategorical || role == ColumnRole::kLabel;
}

[[noreturn]] void ThrowUnreadable(const std::string& text) {
  throw Error(fmt::format("the column '{}' cannot be read; write {}.", text, kForms));
}

void SetBounds(TableColumn& column, std::string_view text) {
  const std::size_t colon = text.find(':');
  const bool both = colon != std::string_view::npos &&
                    ParseNumber(text.substr(0, colon), &column.low) == NumberError::kNone &&
                    ParseNumber(text.substr(colon + 1), &column.high) == NumberError::kNone;
  if (!both) column.low = column.high = 0;  // refused by CheckColumn
}

TableColumn ParseColumn(const std::string& text) {
  const auto named = SplitName(text, ':');
  if (!named || named->first.empty()) ThrowUnreadable(text);
  const auto with_rest = SplitName(named->second, ':');
  const std::string role = with_rest ? with_rest->first : std::string(Trimmed(named->second));
  const auto known = std::find(kRoleNames.begin(), kRoleNames.end(), role);
  if (known == kRoleNames.end()) ThrowUnreadable(text);
  TableColumn column;
  column.name = named->first;
  column.role = static_cast<ColumnRole>(known - kRoleNames.begin());
  const std::string_view rest = with_rest ? with_rest->second : std::string_view();
  if (column.role == ColumnRole::kUser && with_rest) ThrowUnreadable(text);
  if (column.role == ColumnRole::kNumeric) SetBounds(column, rest);
  if (HasValues(column.role) && !Trimmed(rest).empty()) column.values = SplitList(rest, '|');
  CheckColumn(column);
  return column;
}

}  // namespace

std::span<const std::string_view> ColumnRoleNames() { return kRoleNames; }

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

void CheckColumn(const TableColumn& column) {
  if (column.role == ColumnRole::kNumeric &&
      (!(column.low < column.high) || !std::isfinite(column.high - column.low))) {
    throw Error(
        fmt::format("the column '{}' needs two bounds, finite and the lower one first, such as "
                    "age:numeric:0:120; they are declared and do not come from the data.",
                    column.name));
  }
  if (!HasValues(column.role)) return;
  const std::set<std::string> distinct(column.values.begin(), column.values.end());
  if (column.values.size() < 2 || distinct.size() != column.values.size()) {
    throw Error(
        fmt::format("the column '{}' needs at least two different values with bars between them, "
                    "such as city:categorical:Bern|Basel.",
                    column.name));
  }
  if (column.role == ColumnRole::kLabel && distinct.contains(std::string(kOtherCategory))) {
    throw Error(fmt::format("the label '{}' has the value '*'; a label has no class for the rest.",
                            column.name));
  }
}

void CheckColumns(std::span<const TableColumn> columns) {
  std::set<std::string> names;
  std::int64_t labels = 0;
  std::int64_t users = 0;
  for (const TableColumn& column : columns) {
    if (!names.insert(column.name).second) {
      throw Error(fmt::format("the column '{}' is declared twice; declare it once.", column.name));
    }
    labels += column.role == ColumnRole::kLabel ? 1 : 0;
    users += column.role == ColumnRole::kUser ? 1 : 0;
  }
  if (labels > 1 || users > 1) {
    throw Error(
        fmt::format("the declared columns have {} labels and {} users; a table has at most one "
                    "label and one user.",
                    labels, users));
  }
}

std::vector<TableColumn> ParseColumns(const std::vector<std::string>& declared) {
  std::vector<TableColumn> columns;
  columns.reserve(declared.size());
  for (const std::string& text : declared) columns.push_back(ParseColumn(text));
  CheckColumns(columns);
  return columns;
}

std::string ColumnText(const TableColumn& column) {
  std::string text = ListValue(column.name, ":") + ':';
  text += kRoleNames[static_cast<std::size_t>(column.role)];
  if (column.role == ColumnRole::kNumeric) text += fmt::format(":{}:{}", column.low, column.high);
  for (std::size_t i = 0; i < column.values.size(); ++i) {
    text += (i == 0 ? ':' : '|') + ListValue(column.values[i], "|");
  }
  return text;
}

}  // namespace sordino
