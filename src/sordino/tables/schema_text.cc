#include "sordino/tables/schema_text.h"

#include <fmt/format.h>

#include <set>
#include <string_view>

#include "sordino/base/error.h"
#include "sordino/base/list_text.h"
#include "sordino/tables/cell.h"
#include "sordino/tables/encoding.h"

namespace sordino {
namespace {

constexpr std::string_view kKinds =
    "#   numeric      with low and high; numbers are clamped to them\n"
    "#   categorical  with values = [\"a\", \"b\"]; \"*\" takes all that are not named\n"
    "#   label        with values: the classes; [\"no\", \"n\"] is a value with two spellings\n"
    "#   target       with low and high: the number to predict\n"
    "#   date         with low and high, such as 2000-01-01, and format = \"DD.MM.YYYY\" if it has "
    "one\n"
    "#   boolean      yes and no; or with values = [\"nein\", \"ja\"], the one for no first\n"
    "#   user         whose row it is; [table] then needs rows-per-user\n"
    "#   text         with buckets = 1024: free text, whose words are hashed into so many "
    "features\n"
    "#   ignored      not read\n"
    "# names = \"lab_*\" instead of a name declares all columns of such names.\n";

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

// A bound as TOML: 3, 0.5, 2026-02-28.
std::string BoundText(const TableColumn& column, double bound) {
  return column.cells.form == CellForm::kDate ? IsoDate(bound) : fmt::format("{}", bound);
}

std::string ListText(const std::vector<std::string>& values) {
  std::string text;
  for (const std::string& value : values) {
    text += (text.empty() ? "" : ", ") + TomlText(value);
  }
  return '[' + text + ']';
}

std::string DeclarationText(const TableColumn& column) {
  std::string text;
  if (column.HasBounds() && column.cells.form != CellForm::kBoolean) {
    text += fmt::format("low = {}\nhigh = {}\n", BoundText(column, column.low),
                        BoundText(column, column.high));
  }
  const bool has_words = !column.cells.words.empty();
  if (column.HasValues() || has_words) {
    text += fmt::format("values = {}\n", ListText(has_words ? column.cells.words : column.values));
  }
  if (column.role == ColumnRole::kText) text += fmt::format("buckets = {}\n", column.buckets);
  std::string units;
  for (const CellUnit& unit : column.cells.units) {
    units += fmt::format("{}{} = {}", units.empty() ? "" : ", ", TomlText(unit.name), unit.factor);
  }
  if (!units.empty()) text += fmt::format("unit = {{ {} }}\n", units);
  CellRules others = column.cells;
  others.units.clear();
  for (const std::string& rule : CellRuleTexts(others)) {
    const auto named = SplitName(rule, '=');
    text += fmt::format("{} = {}\n", named->first, TomlText(named->second));
  }
  return text;
}

}  // namespace

void CheckColumnNames(std::span<const std::string> names) {
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

std::string SchemaTemplate(std::span<const std::string> names, const TableLayout& layout) {
  if (layout.header) CheckColumnNames(names);
  std::string text = fmt::format(
      "# What is declared about the columns of a table. Fill in what is known without the data:\n"
      "# bounds and values must not come from the rows. The kinds of columns:\n"
      "{}\n"
      "[table]\n"
      "encoding = {}\n"
      "header = {}\n"
      "delimiter = {}\n"
      "# missing = [\"?\", \"\"]  # cells without a value\n"
      "# rows-per-user = 1\n",
      kKinds, TomlText(EncodingName(layout.encoding)), layout.header,
      TomlText(DelimiterText(layout.delimiter)));
  for (const std::string& name : names) {
    text += fmt::format("\n[[column]]\nname = {}\nkind = \"{}\"\n", TomlText(name), kIgnoredKind);
  }
  return text;
}

std::string SchemaText(std::span<const DraftColumn> columns, const TableLayout& layout,
                       bool is_text, const std::string& source) {
  std::string text = fmt::format(
      "# {}\n"
      "# Go through it: every bound and value must be known without the private data. The kinds:\n"
      "{}\n[table]\n",
      source, kKinds);
  if (is_text) {
    text += fmt::format("encoding = {}\nheader = {}\ndelimiter = {}\n",
                        TomlText(EncodingName(layout.encoding)), layout.header,
                        TomlText(DelimiterText(layout.delimiter)));
    if (layout.quote != TableLayout().quote) {
      text += fmt::format("quote = {}\n", TomlText(QuoteText(layout.quote)));
    }
  }
  if (!layout.missing.empty()) text += fmt::format("missing = {}\n", ListText(layout.missing));
  text += "# rows-per-user = 1\n";
  for (const DraftColumn& column : columns) {
    text +=
        fmt::format("\n[[column]]{}\nname = {}\nkind = {}\n",
                    column.note.empty() ? "" : "  # " + column.note, TomlText(column.name),
                    TomlText(column.declared ? ColumnKindName(*column.declared) : kIgnoredKind));
    if (column.declared) text += DeclarationText(*column.declared);
  }
  return text;
}

}  // namespace sordino
