// A table as it lies on a disk: text, perhaps compressed, in its encoding, or a Parquet or Arrow
// file.
#ifndef SORDINO_TABLES_TABLE_FILE_H_
#define SORDINO_TABLES_TABLE_FILE_H_

#include <string>

#include "sordino/tables/byte_source.h"
#include "sordino/tables/csv_reader.h"
#include "sordino/tables/table_layout.h"

namespace sordino {

// Of a Parquet or Arrow file, which is recognised by its first bytes, encoding, delimiter and quote
// of the layout do not matter. `bytes` are those of the file where the caller has opened it; "-" is
// standard input, which holds text. Throws Error where the file cannot be opened or begins with no
// table.
CsvReader OpenTableFile(const std::string& path, const TableLayout& layout, ByteSource bytes = {});

}  // namespace sordino

#endif  // SORDINO_TABLES_TABLE_FILE_H_
