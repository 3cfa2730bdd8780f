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

constexpr std::array<std::string_view, 8> kKindNames = {
    "numeric", "categorical", "label", "target", "user", "text", "date", "boolean"};
constexpr std::size_t kDateKind = 6;
constexpr std::size_t kBooleanKind = 7;
constexpr const char* kForms =
    "NAME:numeric:LOW:HIGH, NAME:categorical:A|B, NAME:label:A|B, NAME:target:LOW:HIGH, "
    "NAME:text:BUCKETS, NAME:user, NAME:date:2000-01-01:2020-12-31 or NAME:boolean";
constexpr char kSpelling = '~';

[[noreturn]] void ThrowUnreadable(const std::string& text) {
  throw Error(fmt::format("the column '{}' cannot be read; write {}.", text, kForms));
}

bool ParseBound(const TableColumn& column, std::string_view text, double* bound) {
  return column.cells.form == CellForm::kDate ? ParseIsoDate(text, bound)
                                              : ParseNumber(text, bound) == NumberError::kNone;
}

// LOW:HIGH, of dates as 2026-02-28, and rules for the cells behind them. Of yes and no their words
// instead.
void SetBounds(TableColumn& column, std::string_view text) {
  std::vector<std::string> parts;
  if (!Trimmed(text).empty()) parts = SplitList(text, ':');
  std::size_t rules = 0;
  if (column.cells.form == CellForm::kBoolean) {
    if (!parts.empty() && !SplitName(parts[0], '=')) {
      column.cells.words = SplitList(parts[rules++], '|');
    }
  } else {
    const bool both = parts.size() >= 2 && ParseBound(column, parts[0], &column.low) &&
                      ParseBound(column, parts[1], &column.high);
    if (!both) column.low = column.high = 0;  // refused by CheckColumn
    rules = std::min<std::size_t>(2, parts.size());
  }
  for (const std::string& rule : std::span(parts).subspan(rules)) {
    const auto named = SplitName(rule, '=');
    if (!named && column.cells.form == CellForm::kBoolean) {
      ThrowUnreadable(fmt::format("{}:boolean:...:{}", column.name, rule));
    }
    if (!named) {
      column.low = column.high = 0;  // as of bounds that are no numbers
      return;
    }
    SetCellRule(column.cells, named->first, std::string(Trimmed(named->second)));
  }
}

// 0, which CheckColumn refuses, for what is no whole number.
std::int64_t BucketsOf(std::string_view text) {
  double number = 0;
  const bool whole = ParseNumber(text, &number) == NumberError::kNone && number >= 0 &&
                     number <= static_cast<double>(kMaxTextBuckets) && number == std::floor(number);
  return whole ? static_cast<std::int64_t>(number) : 0;
}

// The parts between bars that do not stand in quotes, as they are written.
std::vector<std::string_view> BetweenBars(std::string_view text) {
  std::vector<std::string_view> parts;
  std::size_t begin = 0;
  bool in_quotes = false;
  bool at_start = true;  // of a value: quotes elsewhere are ordinary characters
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_quotes) {
      in_quotes = c != '"' || (i + 1 < text.size() && text[i + 1] == '"');
      if (in_quotes && c == '"') ++i;
    } else if (c == '|') {
      parts.push_back(text.substr(begin, i - begin));
      begin = i + 1;
      at_start = true;
    } else if (c == '"' && at_start) {
      in_quotes = true;
      at_start = false;
    } else if (c != ' ' && c != '\t') {
      at_start = c == kSpelling;
    }
  }
  parts.push_back(text.substr(begin));
  return parts;
}

void SetValues(TableColumn& column, std::string_view text) {
  if (text.find(kSpelling) == std::string_view::npos) {
    column.values = SplitList(text, '|');
    return;
  }
  for (const std::string_view part : BetweenBars(text)) {
    AddValue(column, SplitList(part, kSpelling));
  }
}

TableColumn ParseColumn(const std::string& text) {
  const auto named = SplitName(text, ':');
  if (!named || named->first.empty()) ThrowUnreadable(text);
  const auto with_rest = SplitName(named->second, ':');
  const std::string role = with_rest ? with_rest->first : std::string(Trimmed(named->second));
  const auto* const known = std::find(kKindNames.begin(), kKindNames.end(), role);
  if (known == kKindNames.end()) ThrowUnreadable(text);
  TableColumn column;
  column.name = named->first;
  SetColumnKind(column, static_cast<std::size_t>(known - kKindNames.begin()));
  const std::string_view rest = with_rest ? with_rest->second : std::string_view();
  if (column.role == ColumnRole::kUser && with_rest) ThrowUnreadable(text);
  if (column.role == ColumnRole::kText) column.buckets = BucketsOf(rest);
  if (column.HasBounds()) SetBounds(column, rest);
  if (column.HasValues() && !Trimmed(rest).empty()) SetValues(column, rest);
  CheckColumn(column);
  return column;
}

}  // namespace

std::span<const std::string_view> ColumnKindNames() { return kKindNames; }

void SetColumnKind(TableColumn& column, std::size_t kind) {
  if (kind < kDateKind) {
    column.role = static_cast<ColumnRole>(kind);
    return;
  }
  column.role = ColumnRole::kNumeric;
  column.cells.form = kind == kDateKind ? CellForm::kDate : CellForm::kBoolean;
}

std::string_view ColumnKindName(const TableColumn& column) {
  if (column.cells.form == CellForm::kDate) return kKindNames[kDateKind];
  if (column.cells.form == CellForm::kBoolean) return kKindNames[kBooleanKind];
  return kKindNames[static_cast<std::size_t>(column.role)];
}

std::int64_t TableColumn::Features() const {
  switch (role) {
    case ColumnRole::kNumeric:
      return 1;
    case ColumnRole::kCategorical:
      return static_cast<std::int64_t>(values.size());
    case ColumnRole::kText:
      return buckets;
    case ColumnRole::kLabel:
    case ColumnRole::kTarget:
    case ColumnRole::kUser:
      return 0;
  }
  return 0;
}

std::size_t TableColumn::ValueOf(std::string_view cell) const {
  const auto named = std::find(values.begin(), values.end(), cell);
  if (named != values.end()) return static_cast<std::size_t>(named - values.begin());
  for (const ValueSpelling& spelling : spellings) {
    if (spelling.text == cell) return spelling.value;
  }
  return values.size();
}

void AddValue(TableColumn& column, std::vector<std::string> spellings) {
  for (std::size_t i = 1; i < spellings.size(); ++i) {
    column.spellings.push_back({std::move(spellings[i]), column.values.size()});
  }
  column.values.push_back(std::move(spellings.front()));
}

void CheckColumn(const TableColumn& column) {
  if (column.role == ColumnRole::kText &&
      (column.buckets < 2 || column.buckets > kMaxTextBuckets)) {
    throw Error(
        fmt::format("the text column '{}' needs the number of features that its words are hashed "
                    "into, from 2 to {}, such as note:text:1024.",
                    column.name, kMaxTextBuckets));
  }
  if (column.HasBounds() &&
      (!(column.low < column.high) || !std::isfinite(column.high - column.low))) {
    throw Error(
        fmt::format("the column '{}' needs two bounds, finite and the lower one first, such as "
                    "{}; they are declared and do not come from the data.",
                    column.name,
                    column.cells.form == CellForm::kDate ? "birth:date:1920-01-01:2020-12-31"
                    : column.role == ColumnRole::kTarget ? "cost:target:0:5000"
                                                         : "age:numeric:0:120"));
  }
  CheckCellRules(column.cells);
  if (column.role == ColumnRole::kTarget && column.cells.text_is_missing) {
    throw Error(
        fmt::format("the target '{}' cannot be missing; leave out not-a-number.", column.name));
  }
  if (!column.HasValues()) return;
  std::set<std::string> distinct(column.values.begin(), column.values.end());
  for (const ValueSpelling& spelling : column.spellings) distinct.insert(spelling.text);
  if (column.values.size() < 2 ||
      distinct.size() != column.values.size() + column.spellings.size()) {
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
    labels += column.role == ColumnRole::kLabel || column.role == ColumnRole::kTarget ? 1 : 0;
    users += column.role == ColumnRole::kUser ? 1 : 0;
  }
  if (labels > 1 || users > 1) {
    throw Error(
        fmt::format("the declared columns have {} labels or targets and {} users; a table has at "
                    "most one label or target and one user.",
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
  const CellForm form = column.cells.form;
  text += ColumnKindName(column);
  if (form == CellForm::kDate) {
    text += fmt::format(":{}:{}", IsoDate(column.low), IsoDate(column.high));
  } else if (column.HasBounds() && form == CellForm::kNumber) {
    text += fmt::format(":{}:{}", column.low, column.high);
  }
  if (column.role == ColumnRole::kText) text += fmt::format(":{}", column.buckets);
  if (!column.cells.words.empty()) {
    text += fmt::format(":{}", ListValue(ListValue(column.cells.words[0], "|:=") + '|' +
                                             ListValue(column.cells.words[1], "|:="),
                                         ":"));
  }
  for (const std::string& rule : CellRuleTexts(column.cells)) text += ':' + ListValue(rule, ":");
  for (std::size_t i = 0; i < column.values.size(); ++i) {
    text += (i == 0 ? ':' : '|') + ListValue(column.values[i], "|~");
    for (const ValueSpelling& spelling : column.spellings) {
      if (spelling.value == i) text += kSpelling + ListValue(spelling.text, "|~");
    }
  }
  return text;
}

}  // namespace sordino
