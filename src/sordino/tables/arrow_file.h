// Parquet and Arrow files (Arrow's IPC files, which are Feather's too) as tables.
//
// Apache Arrow reads them, in a program of its own, sordino-arrow, that is installed beside sordino
// where Arrow was found (docs/decisions/arrow-files.md). It writes the table as CSV in UTF-8 into a
// pipe, so that everything that is declared about a table holds for these files too. A null is an
// empty cell, a time is written as 2026-02-28 12:00:00, and columns that hold lists or records are
// left out.
#ifndef SORDINO_TABLES_ARROW_FILE_H_
#define SORDINO_TABLES_ARROW_FILE_H_

#include <string>
#include <string_view>

#include "sordino/tables/byte_source.h"

namespace sordino {

// By the first bytes of a file.
bool IsParquet(std::string_view beginning);
bool IsArrow(std::string_view beginning);

// The table as CSV, where `header` with a line that names the columns. Throws Error where the
// program is not there, and, also while it is read, where Arrow cannot read the file.
ByteSource ArrowTableText(const std::string& path, bool header);

}  // namespace sordino

#endif  // SORDINO_TABLES_ARROW_FILE_H_
