#include "sordino/tables/sample_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>

#include "sordino/base/error.h"
#include "sordino/base/list_text.h"
#include "sordino/tables/arrow_file.h"
#include "sordino/tables/cell_rules.h"
#include "sordino/tables/compressed_file.h"
#include "sordino/tables/schema_text.h"
#include "sordino/tables/table_file.h"

namespace sordino {
namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t{256} << 20;
constexpr std::size_t kTriedRows = 1000;

std::string Drained(const ByteSource& source) {
  std::string text;
  std::vector<char> block(std::size_t{1} << 16);
  while (const std::size_t size = source(block)) text.append(block.data(), size);
  return text;
}

std::string InUtf8(std::string_view bytes, Encoding encoding, const std::string& name) {
  return Drained(InUtf8(FromText(bytes), encoding, name));
}

// Whatever is not UTF-8 and has no mark of UTF-16 is taken for windows-1252, which has all letters
// of latin-1.
Encoding EncodingOf(std::string_view bytes, const std::string& name) {
  if (bytes.starts_with("\xFF\xFE") || bytes.starts_with("\xFE\xFF")) return Encoding::kUtf16;
  if (IsUtf8(bytes)) return Encoding::kUtf8;
  try {
    InUtf8(bytes, Encoding::kWindows1252, name);
  } catch (const Error&) {
    return Encoding::kLatin1;
  }
  return Encoding::kWindows1252;
}

// Whether a cell is a number or a date.
bool IsQuantity(std::string_view cell) {
  static const std::array<CellRules, 3> kRules = {CellRules{}, CellRules{.decimal = ','},
                                                  CellRules{.form = CellForm::kDate}};
  double number = 0;
  return std::any_of(kRules.begin(), kRules.end(), [&](const CellRules& rules) {
    return ReadCell(rules, cell, &number) == NumberError::kNone;
  });
}

// Or a word for yes or no, or for no value.
bool LooksTyped(std::string_view cell) {
  double number = 0;
  return IsQuantity(cell) || LooksMissing(cell) ||
         ReadCell({.form = CellForm::kBoolean}, cell, &number) == NumberError::kNone;
}

bool IsWrapped(std::string_view cell) {
  return cell.size() > 1 && cell.front() == cell.back() &&
         (cell.front() == '"' || cell.front() == '\'');
}

using Rows = std::vector<std::vector<std::string>>;

// nullopt where a row is broken or has another number of fields than the first.
std::optional<Rows> Split(std::string_view text, const TableLayout& layout, std::size_t most) {
  CsvReader reader(FromText(text), layout.delimiter, "the sample", layout.quote);
  Rows rows;
  while (rows.size() < most && reader.Next()) {
    if (!reader.broken().empty()) return std::nullopt;
    std::vector<std::string>& row = rows.emplace_back();
    for (const std::string_view field : reader.fields()) row.emplace_back(Trimmed(field));
    if (row.size() != rows.front().size()) return std::nullopt;
  }
  return rows;
}

// The share of cells behind the first row that mean something; those in quotes of the other kind
// mean less than nothing.
double Meaning(const Rows& rows) {
  double cells = 0;
  double sum = 0;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    for (const std::string& cell : rows[i]) {
      ++cells;
      if (LooksTyped(cell)) ++sum;
      if (IsWrapped(cell)) --sum;
    }
  }
  return cells == 0 ? 0 : sum / cells;
}

struct Try {
  TableLayout layout;
  std::size_t width = 0;
  double meaning = 0;
};

void FindSeparators(std::string_view text, const std::string& path, const KnownLayout& known,
                    TableLayout& layout) {
  std::vector<char> delimiters = {',', ';', '\t', '|'};
  std::vector<char> quotes = {'"', '\''};
  if (known.delimiter) delimiters = {*known.delimiter};
  if (known.quote) quotes = {*known.quote};
  const std::string_view first_line = text.substr(0, text.find('\n'));
  bool may_be_narrow = true;  // no delimiter stands in the first line and fails below it
  std::vector<Try> good;
  for (const char quote : quotes) {
    for (const char delimiter : delimiters) {
      Try one{.layout = layout};
      one.layout.delimiter = delimiter;
      one.layout.quote = quote;
      const std::optional<Rows> rows = Split(text, one.layout, kTriedRows);
      if (!rows) may_be_narrow = may_be_narrow && first_line.find(delimiter) == std::string::npos;
      if (!rows || rows->empty()) continue;
      one.width = rows->front().size();
      one.meaning = Meaning(*rows);
      good.push_back(one);
    }
  }
  // A table of one column is split by none of them.
  if (std::any_of(good.begin(), good.end(), [](const Try& one) { return one.width > 1; })) {
    std::erase_if(good, [](const Try& one) { return one.width == 1; });
  } else if (!may_be_narrow) {
    good.clear();
  }
  if (good.empty()) {
    throw Error(fmt::format(
        "the rows of the public sample '{}' differ in their number of fields, at whatever they are "
        "split; correct it, or give its --delimiter and --quote.",
        path));
  }
  const Try best = *std::max_element(
      good.begin(), good.end(), [](const Try& a, const Try& b) { return a.meaning < b.meaning; });
  for (const Try& other : good) {
    if (best.width > 1 && other.meaning == best.meaning &&
        other.layout.delimiter != best.layout.delimiter) {
      throw Error(fmt::format(
          "the public sample '{}' can be split at {} and at {}; give its --delimiter.", path,
          DelimiterText(best.layout.delimiter), DelimiterText(other.layout.delimiter)));
    }
  }
  layout = best.layout;
}

// Whether the first row names the columns: it can, and it differs from what stands below it.
bool HasHeader(const Rows& rows, const std::string& path) {
  const std::vector<std::string>& first = rows.front();
  if (std::any_of(first.begin(), first.end(), IsQuantity)) return false;
  if (std::find(first.begin(), first.end(), "") != first.end()) {
    throw Error(
        fmt::format("the first line of the public sample '{}' has a column without a name, as "
                    "pandas writes its "
                    "index; name it, leave it out (index=False), or give --no-header.",
                    path));
  }
  if (std::set<std::string>(first.begin(), first.end()).size() != first.size()) return false;
  std::size_t repeated = 0;
  for (std::size_t column = 0; column < first.size(); ++column) {
    repeated += std::any_of(rows.begin() + 1, rows.end(),
                            [&](const auto& row) { return row[column] == first[column]; })
                    ? 1
                    : 0;
  }
  return 2 * repeated < first.size() || repeated == 0;
}

}  // namespace

bool LooksMissing(std::string_view cell) {
  constexpr std::array<std::string_view, 8> kWords = {"",    "?",    "na",   "n/a",
                                                      "nan", "null", "#n/a", "<na>"};
  std::string small(Trimmed(cell));
  std::transform(small.begin(), small.end(), small.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return std::find(kWords.begin(), kWords.end(), small) != kWords.end();
}

PublicTable ReadPublicTable(const std::string& path, const KnownLayout& known) {
  PublicTable table;
  const std::vector<std::byte> raw = ReadWholeFile(path, kMostBytes);
  const std::string_view bytes(reinterpret_cast<const char*>(raw.data()), raw.size());
  std::string text;
  table.is_text = !IsParquet(bytes) && !IsArrow(bytes);
  if (table.is_text) {
    table.layout.encoding = known.encoding.value_or(EncodingOf(bytes, path));
    text = InUtf8(bytes, table.layout.encoding, path);
    if (Trimmed(text).empty())
      throw Error(fmt::format("the public sample '{}' has no rows.", path));
    FindSeparators(text, path, known, table.layout);
  } else {
    text = Drained(ArrowTableText(path, true));
  }
  std::optional<Rows> rows = Split(text, table.layout, static_cast<std::size_t>(-1));
  if (!rows) {
    throw Error(
        fmt::format("the rows of the public sample '{}' differ in their number of fields.", path));
  }
  if (!rows->empty()) {
    table.layout.header = !table.is_text || known.header.value_or(HasHeader(*rows, path));
  }
  if (rows->size() < (table.layout.header ? 2 : 1)) {
    throw Error(fmt::format("the public sample '{}' has no rows.", path));
  }
  for (std::size_t i = 0; i < rows->front().size(); ++i) {
    table.names.push_back(table.layout.header ? rows->front()[i] : fmt::format("{}", i + 1));
  }
  if (table.layout.header) {
    CheckColumnNames(table.names);
    rows->erase(rows->begin());
  }
  table.rows = std::move(*rows);
  return table;
}

}  // namespace sordino
