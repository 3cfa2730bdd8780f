// A value as it is written into a CSV file.
#ifndef SORDINO_TABLES_CSV_FIELD_H_
#define SORDINO_TABLES_CSV_FIELD_H_

#include <string>
#include <string_view>

namespace sordino {

// In double quotes where it holds a comma, a quote or the end of a line.
std::string CsvField(std::string_view text);

}  // namespace sordino

#endif  // SORDINO_TABLES_CSV_FIELD_H_
