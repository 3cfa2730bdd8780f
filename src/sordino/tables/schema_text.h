// The text of schema files (table_schema.h), as the program writes them for people to complete.
#ifndef SORDINO_TABLES_SCHEMA_TEXT_H_
#define SORDINO_TABLES_SCHEMA_TEXT_H_

#include <optional>
#include <span>
#include <string>

#include "sordino/tables/table_columns.h"
#include "sordino/tables/table_layout.h"

namespace sordino {

// A schema to fill in: every column by its name, ignored until a kind is written. It holds the
// layout and the names and nothing else. Throws Error where the names cannot be those of columns (a
// name that is empty, a number, there twice, or not in UTF-8), which are cells of a table without a
// header.
std::string SchemaTemplate(std::span<const std::string> names, const TableLayout& layout);

// Throws Error as above.
void CheckColumnNames(std::span<const std::string> names);

// A column as a schema declares it; without a declaration it is ignored.
struct DraftColumn {
  std::string name;
  std::optional<TableColumn> declared = {};
  std::string note = {};  // a comment of one line; empty: none
};
// `source` says where the declarations come from, in one line. The layout holds what was found;
// where `is_text` is false the table has none.
std::string SchemaText(std::span<const DraftColumn> columns, const TableLayout& layout,
                       bool is_text, const std::string& source);

}  // namespace sordino

#endif  // SORDINO_TABLES_SCHEMA_TEXT_H_
