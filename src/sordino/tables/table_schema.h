// A schema file: everything that is declared about a table, in TOML. `release`, `train`, `predict`
// and `data` read the same file.
//
//   [table]
//   encoding = "utf-8"       # or "latin-1", "windows-1252", "utf-16"
//   header = true            # false: the columns are called "1", "2", ...
//   delimiter = ","          # or "tab", ";", ...
//   quote = "'"              # around fields that hold delimiters; '"' if left out, or "none"
//   missing = ["?", ""]      # cells without a value
//   decimal = ","            # rules for the cells of all columns that take them: decimal,
//   thousands, not-a-number = "missing" # censored, not-a-number (cell_rules.h) rows-per-user = 3
//   # with a column of the kind user
//
//   [[column]]
//   name = "age"
//   kind = "numeric"         # clamped to low and high
//   low = 0
//   high = 120
//
//   [[column]]
//   name = "income"
//   kind = "label"           # or "categorical"
//   values = ["<=50K", [">50K", ">50K."]]   # the second with two spellings
//
//   [[column]]
//   names = "lab_*"          # every column of such a name that no other line names; or a list
//   kind = "numeric"
//   low = 0
//   high = 500
//   unit = { mg = 1, g = 1000 }  # and other rules for cells
//
// Further kinds are "target" (with low and high), "date" (likewise), "boolean", "user" and
// "ignored". All keys of [table] may be left out. Values are written as they stand in the table;
// blanks at their ends do not count.
#ifndef SORDINO_TABLES_TABLE_SCHEMA_H_
#define SORDINO_TABLES_TABLE_SCHEMA_H_

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sordino/tables/table_columns.h"
#include "sordino/tables/table_layout.h"

namespace sordino {

struct TableSchema {
  std::optional<bool> header;
  std::optional<Encoding> encoding;
  std::optional<char> delimiter;
  std::optional<char> quote;
  std::vector<std::string> missing;
  std::int64_t rows_per_user = 0;          // 0: left out
  std::vector<TableColumn> columns;        // without those that are ignored
  std::vector<TableColumn> patterns = {};  // named by patterns
  std::vector<std::string> ignored = {};
  std::vector<std::string> ignored_patterns = {};

  // By its name, else by the first pattern that fits; nullptr where the schema does not declare it.
  const TableColumn* Find(std::string_view name) const;
  // The columns of a table with these names: the named ones, then those of each pattern in the
  // order of the table. Throws Error where a pattern has none.
  std::vector<TableColumn> ColumnsOf(std::span<const std::string> names) const;
};

// Throws Error with the name of the file, the line, and the nearest known key where one is unknown.
TableSchema ReadSchema(const std::filesystem::path& file);
TableSchema ParseSchema(std::string_view text, const std::string& name);

}  // namespace sordino

#endif  // SORDINO_TABLES_TABLE_SCHEMA_H_
