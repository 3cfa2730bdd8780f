// The cells of a table as numbers.
#ifndef SORDINO_TABLES_CELL_H_
#define SORDINO_TABLES_CELL_H_

#include <cstdint>
#include <string_view>

namespace sordino {

// A finite number that fills the whole field, except for blanks around it. The last three are of
// cells that are read by rules (cell_rules.h).
enum class NumberError : std::uint8_t {
  kNone,
  kEmpty,
  kNotANumber,
  kNotFinite,
  kOutOfRange,
  kNotADate,
  kNotABoolean,
  kMissing
};
NumberError ParseNumber(std::string_view field, double* number);
// "is not a number"; empty for kNone.
std::string_view NumberErrorText(NumberError error);

}  // namespace sordino

#endif  // SORDINO_TABLES_CELL_H_
