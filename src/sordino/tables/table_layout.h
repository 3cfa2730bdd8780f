// How a table is written down: in which encoding, what separates its fields, whether its first line
// names the columns, and which cells stand for a missing value. All of it is declared.
#ifndef SORDINO_TABLES_TABLE_LAYOUT_H_
#define SORDINO_TABLES_TABLE_LAYOUT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sordino/tables/csv_reader.h"
#include "sordino/tables/encoding.h"

namespace sordino {

// What becomes of rows that do not keep to what was declared.
enum class MalformedRows : std::uint8_t { kRefuse, kSkip };
// "refuse" or "skip". Throws Error, with `what` in its sentence, for any other name.
MalformedRows ParseMalformedRows(std::string_view what, std::string_view name);

struct TableLayout {
  Encoding encoding = Encoding::kUtf8;
  char delimiter = ',';
  char quote = '"';  // \0: none
  // Without a header the columns are called 1, 2, 3, ...
  bool header = true;
  // Cells that hold no value, without blanks at their ends: "?", "".
  std::vector<std::string> missing = {};

  bool IsMissing(std::string_view cell) const;
};

// One character, or "tab". Throws Error for a quote, a line break, a blank, and anything longer.
char ParseDelimiter(const std::string& text);
// What ParseDelimiter reads back.
std::string DelimiterText(char delimiter);

// What stands around fields with delimiters in them: ", ' or "none". Throws Error for anything
// else.
char ParseQuote(const std::string& text);
// What ParseQuote reads back.
std::string QuoteText(char quote);

// The records of a table after its header.
class TableRows {
 public:
  // Reads the names of the columns. Throws Error for a table whose header is missing or whose first
  // line cannot be split.
  TableRows(CsvReader& reader, const TableLayout& layout);

  // Without blanks at their ends.
  const std::vector<std::string>& names() const { return names_; }
  // Whether there is a line at all; without one the names are those of any table.
  bool has_lines() const { return has_lines_; }
  // Moves to the next record; false after the last. The reader has its fields.
  bool Next();

 private:
  CsvReader& reader_;
  std::vector<std::string> names_;
  bool first_is_record_;
  bool has_lines_ = true;
};

}  // namespace sordino

#endif  // SORDINO_TABLES_TABLE_LAYOUT_H_
