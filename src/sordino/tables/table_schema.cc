#include "sordino/tables/table_schema.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <set>
#include <sstream>

#include "sordino/base/error.h"
#include "sordino/base/known_name.h"
#include "sordino/base/list_text.h"
#include "sordino/base/toml_nesting.h"
#include "sordino/tables/cell.h"
#include "sordino/tables/encoding.h"

namespace sordino {
namespace {

constexpr std::array<std::string_view, 2> kSections = {"table", "column"};
constexpr std::array<std::string_view, 5> kTableKeys = {"encoding", "header", "delimiter",
                                                        "missing", "rows-per-user"};
constexpr std::array<std::string_view, 6> kColumnKeys = {"name", "kind",   "low",
                                                         "high", "values", "buckets"};
constexpr std::string_view kIgnored = "ignored";
constexpr std::uintmax_t kMaxBytes = std::uintmax_t{16} << 20;

// The kinds that a schema may name: the roles of columns, and columns that are not read.
std::vector<std::string_view> Kinds() {
  const std::span<const std::string_view> roles = ColumnRoleNames();
  std::vector<std::string_view> kinds(roles.begin(), roles.end());
  kinds.push_back(kIgnored);
  return kinds;
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

  double Number(const toml::node& node, std::string_view key) const {
    const std::optional<std::int64_t> whole = node.value_exact<std::int64_t>();
    const std::optional<double> real = node.value_exact<double>();
    const double number = whole ? static_cast<double>(*whole) : real.value_or(std::nan(""));
    if (!std::isfinite(number)) Refuse(node, fmt::format("{} must be a finite number.", key));
    return number;
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
    if (const toml::node* const missing = table->get("missing")) {
      schema_.missing = Texts(*missing, "missing");
    }
    if (const toml::node* const rows = table->get("rows-per-user")) {
      schema_.rows_per_user = rows->value_exact<std::int64_t>().value_or(0);
      if (schema_.rows_per_user < 1) Refuse(*rows, "rows-per-user must be a whole number from 1.");
    }
  }

  void ReadColumn(const toml::table& table) {
    CheckKeys(table, kColumnKeys, "[[column]]");
    const toml::node* const name = table.get("name");
    const toml::node* const kind = table.get("kind");
    if (name == nullptr || kind == nullptr) Refuse(table, "a column needs a name and a kind.");
    TableColumn column;
    column.name = Text(*name, "name");
    if (column.name.empty()) Refuse(*name, "the name of a column is empty.");
    const std::vector<std::string_view> kinds = Kinds();
    std::size_t role = 0;
    At(*kind, [&] {
      role = IndexOfName(fmt::format("the kind of the column '{}'", column.name),
                         Text(*kind, "kind"), kinds);
    });
    if (kinds[role] == kIgnored) return;
    column.role = static_cast<ColumnRole>(role);
    const toml::node* const low = table.get("low");
    const toml::node* const high = table.get("high");
    const toml::node* const values = table.get("values");
    const bool numeric = column.HasBounds();
    const bool named = column.HasValues();
    if (numeric != (low != nullptr) || numeric != (high != nullptr) ||
        named != (values != nullptr)) {
      Refuse(table,
             fmt::format("the column '{}' is {}, and so it needs {}.", column.name, kinds[role],
                         numeric ? "low and high and nothing else"
                         : named ? "values and nothing else"
                                 : "neither low and high nor values"));
    }
    if (numeric) {
      column.low = Number(*low, "low");
      column.high = Number(*high, "high");
    }
    if (named) ReadValues(*values, column);
    if (const toml::node* const buckets = table.get("buckets")) {
      if (column.role != ColumnRole::kText) {
        Refuse(*buckets, fmt::format("the column '{}' is {}, and buckets are of text.", column.name,
                                     kinds[role]));
      }
      column.buckets = buckets->value_exact<std::int64_t>().value_or(0);
    }
    At(table, [&] { CheckColumn(column); });
    schema_.columns.push_back(std::move(column));
  }

  const std::string& name_;
  TableSchema schema_;
};

std::string TomlText(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      quoted += {'\\', c};
    } else if (code < 0x20 || code == 0x7F) {
      quoted += fmt::format("\\u{:04X}", code);
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

void CheckNames(std::span<const std::string> names) {
  std::set<std::string> distinct;
  for (const std::string& name : names) {
    double number = 0;
    if (name.empty() || !distinct.insert(name).second ||
        ParseNumber(name, &number) != NumberError::kNotANumber) {
      throw Error(
          "the first line does not look like one that names the columns (a name is empty, a number "
          "or twice there); give --no-header where the table has none.");
    }
    if (!IsUtf8(name)) {
      throw Error("a name in the first line is not text in UTF-8; save the table as UTF-8.");
    }
  }
}

}  // namespace

const TableColumn* TableSchema::Find(std::string_view name) const {
  const auto found = std::find_if(columns.begin(), columns.end(),
                                  [&](const TableColumn& column) { return column.name == name; });
  return found == columns.end() ? nullptr : &*found;
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

std::string SchemaTemplate(std::span<const std::string> names, const TableLayout& layout) {
  if (layout.header) CheckNames(names);
  std::string text = fmt::format(
      "# What is declared about the columns of a table. Fill in what is known without the data:\n"
      "# bounds and values must not come from the rows. The kinds of columns:\n"
      "#   numeric      with low and high; numbers are clamped to them\n"
      "#   categorical  with values = [\"a\", \"b\"]; \"*\" takes all that are not named\n"
      "#   label        with values: the classes; [\"no\", \"n\"] is a value with two spellings\n"
      "#   target       with low and high: the number to predict\n"
      "#   user         whose row it is; [table] then needs rows-per-user\n"
      "#   text         with buckets = 1024: free text, whose words are hashed into so many "
      "features\n"
      "#   ignored      not read\n\n"
      "[table]\n"
      "encoding = {}\n"
      "header = {}\n"
      "delimiter = {}\n"
      "# missing = [\"?\", \"\"]  # cells without a value\n"
      "# rows-per-user = 1\n",
      TomlText(EncodingName(layout.encoding)), layout.header,
      TomlText(DelimiterText(layout.delimiter)));
  for (const std::string& name : names) {
    text += fmt::format("\n[[column]]\nname = {}\nkind = \"{}\"\n", TomlText(name), kIgnored);
  }
  return text;
}

}  // namespace sordino
