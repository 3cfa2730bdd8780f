// Tables as datasets: CSV and TSV with RFC 4180 quotes, plain or compressed, with declared columns
// (tables/table_columns.h).
//
// A numeric column is scaled from its bounds to [0, 1]; a categorical one is one feature for each
// category, 1 for that of the row. Features stand in the order of the declaration; columns that are
// not declared are ignored. A cell that was declared to be missing is the middle of the bounds of a
// numeric column; in a categorical one it is the category of its text where that is declared, "*"
// if that is declared, and else none of the categories. Any other cell without a value, text in a
// numeric column, an unknown category and an unknown label are an Error: one sentence without the
// cell and its line (tables/data_error.h). Rows with such a cell may be left out and counted
// instead.
#ifndef SORDINO_DATA_TABLE_READER_H_
#define SORDINO_DATA_TABLE_READER_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sordino/data/catalog.h"
#include "sordino/data/dataset.h"
#include "sordino/tables/table_columns.h"
#include "sordino/tables/table_layout.h"

namespace sordino {

// Fills in what the columns say: kind, shape, classes, names of the classes, or target. Throws
// Error where there is no feature.
void DeclareColumns(std::span<const TableColumn> columns, DatasetDeclaration& declaration);

struct TableOptions {
  std::vector<TableColumn> columns;
  TableLayout layout;
  // The first so many rows of each user are kept, in the order of the file: which of a user's rows
  // are kept depends on nobody else's. 0: all rows.
  std::int64_t rows_per_user = 0;
  // Without it the labels are undefined where the table has no such column.
  bool labelled = true;
  // Rows with a cell that does not keep to the declaration: skipped ones are counted
  // (Dataset::malformed).
  MalformedRows malformed = MalformedRows::kRefuse;
  // The column that names the records, which the dataset keeps as text (ids); empty: none.
  std::string id;
};

Dataset ReadTable(const std::filesystem::path& path, const DatasetDeclaration& declaration,
                  const TableOptions& options);
// The same for text in memory; `name` stands in the sentences.
Dataset ParseTable(std::string_view text, const std::string& name,
                   const DatasetDeclaration& declaration, const TableOptions& options);

// A table that a program holds.
struct ProgramTable {
  std::string name;  // in sentences
  std::vector<std::string> columns;
  // Sets the cells of the next row, one for each column; false behind the last row.
  std::function<bool(std::vector<std::string_view>& cells)> next;
};
// What the request declares of it: columns, records and rows of a user. The source is not used.
DatasetDeclaration DeclareTable(const DataRequest& request, std::string name);
// Without `labelled`, and for a table without such a column, the labels are undefined.
Dataset TakeTable(const ProgramTable& table, const DatasetDeclaration& declaration,
                  const DataRequest& request, bool labelled);

}  // namespace sordino

#endif  // SORDINO_DATA_TABLE_READER_H_
