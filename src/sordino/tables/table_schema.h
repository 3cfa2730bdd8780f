// A schema file: everything that is declared about a table, in TOML. `release`, `train`, `predict`
// and `data` read the same file.
//
//   [table]
//   encoding = "utf-8"       # or "latin-1", "windows-1252", "utf-16"
//   header = true            # false: the columns are called "1", "2", ...
//   delimiter = ","          # or "tab", ";", ...
//   missing = ["?", ""]      # cells without a value
//   rows-per-user = 3        # with a column of the kind user
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
// Further kinds are "target" (with low and high), "user" and "ignored". All keys of [table] may be
// left out. Values are written as they stand in the table; blanks at their ends do not count.
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
  std::vector<std::string> missing;
  std::int64_t rows_per_user = 0;    // 0: left out
  std::vector<TableColumn> columns;  // without those that are ignored

  // nullptr where the schema does not declare it.
  const TableColumn* Find(std::string_view name) const;
};

// Throws Error with the name of the file, the line, and the nearest known key where one is unknown.
TableSchema ReadSchema(const std::filesystem::path& file);
TableSchema ParseSchema(std::string_view text, const std::string& name);

// A schema to fill in: every column by its name, ignored until a kind is written. It holds the
// layout and the names and nothing else. Throws Error where the names cannot be those of columns (a
// name that is empty, a number, there twice, or not in UTF-8), which are cells of a table without a
// header.
std::string SchemaTemplate(std::span<const std::string> names, const TableLayout& layout);

}  // namespace sordino

#endif  // SORDINO_TABLES_TABLE_SCHEMA_H_
