// Tables with declared columns: CSV and TSV with RFC 4180 quotes, a header line, plain or
// compressed.
//
// A column is declared with what is public about it:
//
//   age:numeric:0:120            clamped to the bounds, then scaled to [0, 1]
//   city:categorical:Bern|Basel  one feature for each category, 1 for the one of the row
//   sick:label:no|yes            the class, in the order of the names
//   id:user                      whose row it is
//
// Columns that are not declared are ignored. Features stand in the order of the declaration. A
// category "*" takes every value that is not named, an empty cell too; without it an unknown
// category is an Error, as are a cell without a value, a number that is none, and an unknown label:
// one sentence without the cell and its line (data_error.h).
#ifndef SORDINO_DATA_TABLE_READER_H_
#define SORDINO_DATA_TABLE_READER_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "sordino/data/dataset.h"

namespace sordino {

enum class ColumnRole : std::uint8_t { kNumeric, kCategorical, kLabel, kUser };

struct TableColumn {
  std::string name;
  ColumnRole role = ColumnRole::kNumeric;
  double low = 0;  // kNumeric
  double high = 1;
  std::vector<std::string> values;  // kCategorical, kLabel

  std::int64_t Features() const;
};

// Throws Error unless every column is well formed, names differ, there are features, and at most
// one label and one user.
std::vector<TableColumn> ParseColumns(const std::vector<std::string>& declared);

// Fills in what the columns say: kind, shape, classes, names of the classes.
void DeclareColumns(const std::vector<TableColumn>& columns, DatasetDeclaration& declaration);

struct TableOptions {
  std::vector<TableColumn> columns;
  char separator = ',';
  // The first so many rows of each user are kept, in the order of the file: which of a user's rows
  // are kept depends on nobody else's. 0: all rows.
  std::int64_t rows_per_user = 0;
  // Without it the labels are undefined where the table has no such column.
  bool labelled = true;
};

Dataset ReadTable(const std::filesystem::path& path, const DatasetDeclaration& declaration,
                  const TableOptions& options);
// The same for text in memory; `name` stands in the sentences.
Dataset ParseTable(std::string_view text, const std::string& name,
                   const DatasetDeclaration& declaration, const TableOptions& options);

}  // namespace sordino

#endif  // SORDINO_DATA_TABLE_READER_H_
