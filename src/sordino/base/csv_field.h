// A value as it is written into a CSV file.
//
// Spreadsheets take a cell that begins with = + - or @ (also after a tab or a line break) as a
// formula and compute it when the file is opened, in quotes or not. Such a text gets a single quote
// before it, by which a spreadsheet knows it as text. Numbers are written as they are.
#ifndef SORDINO_BASE_CSV_FIELD_H_
#define SORDINO_BASE_CSV_FIELD_H_

#include <string>
#include <string_view>

namespace sordino {

// In double quotes where it holds a comma, a quote or the end of a line, and where a spreadsheet
// could take it as a formula: then "'=1+1" for =1+1.
std::string CsvField(std::string_view text);

}  // namespace sordino

#endif  // SORDINO_BASE_CSV_FIELD_H_
