#include "sordino/tables/table_schema.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <sstream>

#include "sordino/base/error.h"
#include "sordino/base/known_name.h"
#include "sordino/base/list_text.h"
#include "sordino/base/toml_nesting.h"
#include "sordino/tables/cell_rules.h"
#include "sordino/tables/encoding.h"

namespace sordino {
namespace {

constexpr std::array<std::string_view, 2> kSections = {"table", "column"};
constexpr std::array<std::string_view, 10> kTableKeys = {
    "encoding", "header",    "delimiter", "quote",        "missing",
    "decimal",  "thousands", "censored",  "not-a-number", "rows-per-user"};
// Rules for cells that [table] declares for all columns that take them.
constexpr std::array<std::string_view, 4> kTableRules = {"decimal", "thousands", "censored",
                                                         "not-a-number"};
constexpr std::array<std::string_view, 13> kColumnKeys = {
    "name", "names",   "kind",      "low",      "high",         "values", "buckets",
    "unit", "decimal", "thousands", "censored", "not-a-number", "format"};
constexpr char kPatternSign = '*';
constexpr std::uintmax_t kMaxBytes = std::uintmax_t{16} << 20;

// The kinds that a schema may name: those of columns, and columns that are not read.
std::vector<std::string_view> Kinds() {
  const std::span<const std::string_view> known = ColumnKindNames();
  std::vector<std::string_view> kinds(known.begin(), known.end());
  kinds.push_back(kIgnoredKind);
  return kinds;
}

// Whether a name is one of a pattern, in which a star stands for any text.
bool Matches(std::string_view pattern, std::string_view name) {
  const std::size_t star = pattern.find(kPatternSign);
  if (star == std::string_view::npos) return pattern == name;
  if (!name.starts_with(pattern.substr(0, star))) return false;
  pattern.remove_prefix(star + 1);
  name.remove_prefix(star);
  for (std::size_t skipped = 0; skipped <= name.size(); ++skipped) {
    if (Matches(pattern, name.substr(skipped))) return true;
  }
  return false;
}

bool MatchesAny(const std::vector<std::string>& patterns, std::string_view name) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return Matches(pattern, name); });
}

class SchemaReader {
 public:
  explicit SchemaReader(const std::string& name) : name_(name) {}

  TableSchema Read(const toml::table& file) {
    CheckKeys(file, kSections, "the file");
    if (const toml::node* const table = file.get("table")) ReadTable(*table);
    const toml::node* const columns = file.get("column");
    if (columns == nullptr || !columns->is_array_of_tables()) {
      throw Error(
          fmt::format("the schema '{}' has no columns; write one [[column]] for each.", name_));
    }
    for (const toml::node& column : *columns->as_array()) ReadColumn(*column.as_table());
    CheckColumns(schema_.columns);
    return schema_;
  }

 private:
  [[noreturn]] void Refuse(const toml::node& node, std::string_view sentence) const {
    throw Error(fmt::format("{}, line {}: {}", name_, node.source().begin.line, sentence));
  }

  void CheckKeys(const toml::table& table, std::span<const std::string_view> known,
                 std::string_view where) const {
    for (const auto& [key, node] : table) {
      if (std::find(known.begin(), known.end(), key.str()) != known.end()) continue;
      Refuse(node, UnknownKey(key.str(), where, known));
    }
  }

  std::string Text(const toml::node& node, std::string_view key) const {
    const std::optional<std::string> text = node.value_exact<std::string>();
    if (!text) Refuse(node, fmt::format("{} must be a text in quotes.", key));
    return std::string(Trimmed(*text));
  }

  std::vector<std::string> Texts(const toml::node& node, std::string_view key) const {
    const toml::array* const array = node.as_array();
    if (array == nullptr) {
      Refuse(node, fmt::format("{} must be a list of texts, such as [\"no\", \"yes\"].", key));
    }
    std::vector<std::string> texts;
    for (const toml::node& entry : *array) texts.push_back(Text(entry, key));
    return texts;
  }

  // A value is a text, or a list of its spellings.
  void ReadValues(const toml::node& node, TableColumn& column) const {
    const toml::array* const array = node.as_array();
    if (array == nullptr) Texts(node, "values");  // refuses
    for (const toml::node& entry : *array) {
      std::vector<std::string> spellings = entry.is_array()
                                               ? Texts(entry, "values")
                                               : std::vector<std::string>{Text(entry, "values")};
      if (spellings.empty()) Refuse(entry, "the list of the spellings of a value is empty.");
      AddValue(column, std::move(spellings));
    }
  }

  // A finite number; of dates a date, or a text such as 2026-02-28.
  double Bound(const toml::node& node, std::string_view key, const TableColumn& column) const {
    if (column.cells.form == CellForm::kDate) return Date(node, key);
    const std::optional<std::int64_t> whole = node.value_exact<std::int64_t>();
    const std::optional<double> real = node.value_exact<double>();
    const double number = whole ? static_cast<double>(*whole) : real.value_or(std::nan(""));
    if (!std::isfinite(number)) Refuse(node, fmt::format("{} must be a finite number.", key));
    return number;
  }

  double Date(const toml::node& node, std::string_view key) const {
    const std::optional<toml::date> date = node.value_exact<toml::date>();
    const std::string text =
        date ? fmt::format("{:04}-{:02}-{:02}", date->year, date->month, date->day)
             : node.value_exact<std::string>().value_or("");
    double days = 0;
    if (!ParseIsoDate(text, &days)) {
      Refuse(node, fmt::format("{} must be a date such as 2026-02-28.", key));
    }
    return days;
  }

  // A text; of units also a list of texts, or { kg = 1, lb = 0.4536 }.
  std::vector<std::string> RuleValues(const toml::node& node, std::string_view key) const {
    if (const toml::table* const factors = node.as_table()) {
      std::vector<std::string> units;
      for (const auto& [name, factor] : *factors) {
        const TableColumn plain;
        units.push_back(fmt::format("{}*{}", name.str(), Bound(factor, name.str(), plain)));
      }
      return units;
    }
    return node.is_array() ? Texts(node, key) : std::vector<std::string>{Text(node, key)};
  }

  void ReadRules(const toml::table& table, std::span<const std::string_view> keys,
                 CellRules& rules) const {
    for (const std::string_view key : keys) {
      const toml::node* const node = table.get(key);
      if (node == nullptr) continue;
      for (const std::string& value : RuleValues(*node, key)) {
        At(*node, [&] { SetCellRule(rules, key, value); });
      }
    }
  }

  // Errors of a sentence that does not know of the file.
  template <typename Action>
  void At(const toml::node& node, const Action& action) const {
    try {
      action();
    } catch (const Error& error) {
      Refuse(node, error.what());
    }
  }

  void ReadTable(const toml::node& node) {
    const toml::table* const table = node.as_table();
    if (table == nullptr) Refuse(node, "table must be a section, [table].");
    CheckKeys(*table, kTableKeys, "[table]");
    if (const toml::node* const header = table->get("header")) {
      schema_.header = header->value_exact<bool>();
      if (!schema_.header) Refuse(*header, "header must be true or false.");
    }
    if (const toml::node* const encoding = table->get("encoding")) {
      At(*encoding, [&] { schema_.encoding = ParseEncoding(Text(*encoding, "encoding")); });
    }
    if (const toml::node* const text = table->get("delimiter")) {
      // Not trimmed: it may be a tab.
      const std::optional<std::string> given = text->value_exact<std::string>();
      if (!given) Refuse(*text, "delimiter must be a text in quotes.");
      At(*text, [&] { schema_.delimiter = ParseDelimiter(*given == "\t" ? "tab" : *given); });
    }
    if (const toml::node* const quote = table->get("quote")) {
      At(*quote, [&] { schema_.quote = ParseQuote(Text(*quote, "quote")); });
    }
    ReadRules(*table, kTableRules, rules_);
    if (const toml::node* const missing = table->get("missing")) {
      schema_.missing = Texts(*missing, "missing");
    }
    if (const toml::node* const rows = table->get("rows-per-user")) {
      schema_.rows_per_user = rows->value_exact<std::int64_t>().value_or(0);
      if (schema_.rows_per_user < 1) Refuse(*rows, "rows-per-user must be a whole number from 1.");
    }
  }

  // What [table] says of all columns, as far as it can be said of this one.
  CellRules RulesFor(const TableColumn& column) const {
    if (!column.HasBounds()) return column.cells;
    CellRules rules = column.cells.form == CellForm::kNumber ? rules_ : CellRules();
    rules.form = column.cells.form;
    rules.text_is_missing = rules_.text_is_missing && column.role == ColumnRole::kNumeric;
    return rules;
  }

  void ReadBounds(const toml::table& table, std::string_view kind, TableColumn& column) const {
    const toml::node* const low = table.get("low");
    const toml::node* const high = table.get("high");
    const toml::node* const values = table.get("values");
    const bool is_boolean = column.cells.form == CellForm::kBoolean;
    const bool numeric = column.HasBounds() && !is_boolean;
    const bool named = column.HasValues();
    if (numeric != (low != nullptr) || numeric != (high != nullptr) ||
        (!is_boolean && named != (values != nullptr))) {
      Refuse(table, fmt::format("the column '{}' is {}, and so it needs {}.", column.name, kind,
                                numeric      ? "low and high and no values"
                                : named      ? "values and neither low nor high"
                                : is_boolean ? "neither low nor high"
                                             : "neither low and high nor values"));
    }
    if (numeric) {
      column.low = Bound(*low, "low", column);
      column.high = Bound(*high, "high", column);
    }
    if (named) ReadValues(*values, column);
    if (const toml::node* const buckets = table.get("buckets")) {
      if (column.role != ColumnRole::kText) {
        Refuse(*buckets,
               fmt::format("the column '{}' is {}, and buckets are of text.", column.name, kind));
      }
      column.buckets = buckets->value_exact<std::int64_t>().value_or(0);
    }
    if (is_boolean && values != nullptr) column.cells.words = Texts(*values, "values");
    if (column.HasBounds()) {
      ReadRules(table, CellRuleNames(), column.cells);
      return;
    }
    for (const std::string_view rule : CellRuleNames()) {
      if (const toml::node* const node = table.get(rule)) {
        Refuse(*node,
               fmt::format("the column '{}' is {}, which has no {}.", column.name, kind, rule));
      }
    }
  }

  // One name, or names with patterns among them.
  std::vector<std::string> NamesOf(const toml::table& table) const {
    const toml::node* const name = table.get("name");
    const toml::node* const names = table.get("names");
    if ((name == nullptr) == (names == nullptr) || table.get("kind") == nullptr) {
      Refuse(table, "a column needs a name and a kind; columns that are alike have names instead.");
    }
    if (name != nullptr) return {Text(*name, "name")};
    return names->is_array() ? Texts(*names, "names")
                             : std::vector<std::string>{Text(*names, "names")};
  }

  void Add(const toml::table& table, TableColumn column, bool is_ignored, bool may_be_pattern) {
    const bool is_pattern = may_be_pattern && column.name.find(kPatternSign) != std::string::npos;
    if (!is_pattern) {
      if (is_ignored) {
        schema_.ignored.push_back(std::move(column.name));
      } else {
        schema_.columns.push_back(std::move(column));
      }
      return;
    }
    if (column.name.find_first_not_of(std::string(1, kPatternSign)) == std::string::npos) {
      Refuse(table, "a pattern needs more than stars, such as lab_*.");
    }
    if (is_ignored) {
      schema_.ignored_patterns.push_back(std::move(column.name));
      return;
    }
    if (column.role != ColumnRole::kNumeric && column.role != ColumnRole::kCategorical) {
      Refuse(table, fmt::format("the pattern '{}' cannot be that of a label, target, user or "
                                "text; name the column.",
                                column.name));
    }
    schema_.patterns.push_back(std::move(column));
  }

  void ReadColumn(const toml::table& table) {
    CheckKeys(table, kColumnKeys, "[[column]]");
    const std::vector<std::string> names = NamesOf(table);
    const toml::node& kind = *table.get("kind");
    for (const std::string& name : names) {
      if (name.empty()) Refuse(table, "the name of a column is empty.");
      TableColumn column{.name = name};
      const std::vector<std::string_view> kinds = Kinds();
      std::size_t place = 0;
      At(kind, [&] {
        place = IndexOfName(fmt::format("the kind of the column '{}'", column.name),
                            Text(kind, "kind"), kinds);
      });
      const bool is_ignored = kinds[place] == kIgnoredKind;
      if (!is_ignored) {
        SetColumnKind(column, place);
        column.cells = RulesFor(column);
        ReadBounds(table, kinds[place], column);
        At(table, [&] { CheckColumn(column); });
      }
      Add(table, std::move(column), is_ignored, table.get("names") != nullptr);
    }
  }

  const std::string& name_;
  CellRules rules_;  // of [table]
  TableSchema schema_;
};

}  // namespace

const TableColumn* TableSchema::Find(std::string_view name) const {
  const auto named = [&](const TableColumn& column) { return column.name == name; };
  const auto found = std::find_if(columns.begin(), columns.end(), named);
  if (found != columns.end()) return &*found;
  if (std::find(ignored.begin(), ignored.end(), name) != ignored.end()) return nullptr;
  if (MatchesAny(ignored_patterns, name)) return nullptr;
  const auto pattern =
      std::find_if(patterns.begin(), patterns.end(),
                   [&](const TableColumn& column) { return Matches(column.name, name); });
  return pattern == patterns.end() ? nullptr : &*pattern;
}

std::vector<TableColumn> TableSchema::ColumnsOf(std::span<const std::string> names) const {
  std::vector<TableColumn> all = columns;
  for (const TableColumn& pattern : patterns) {
    const std::size_t before = all.size();
    for (const std::string& name : names) {
      if (Find(name) != &pattern) continue;
      all.push_back(pattern);
      all.back().name = name;
    }
    if (all.size() == before) {
      throw Error(fmt::format("no column of the table has a name like '{}'; leave the pattern out.",
                              pattern.name));
    }
  }
  CheckColumns(all);
  return all;
}

TableSchema ParseSchema(std::string_view text, const std::string& name) {
  CheckTomlNesting(text, name);
  toml::table table;
  try {
    table = toml::parse(text);
  } catch (const toml::parse_error& error) {
    std::string what(error.description());
    std::replace(what.begin(), what.end(), '\n', ' ');
    throw Error(
        fmt::format("{}, line {}: this is not TOML: {}.", name, error.source().begin.line, what));
  }
  return SchemaReader(name).Read(table);
}

TableSchema ReadSchema(const std::filesystem::path& file) {
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(file, error);
  if (error || size > kMaxBytes) {
    throw Error(fmt::format("the schema '{}' cannot be read: {}.", file.string(),
                            error ? error.message() : "it is too large to be one"));
  }
  std::ifstream in(file, std::ios::binary);
  std::ostringstream content;
  content << in.rdbuf();
  if (!in) throw Error(fmt::format("the schema '{}' cannot be read.", file.string()));
  return ParseSchema(content.str(), file.string());
}

}  // namespace sordino
