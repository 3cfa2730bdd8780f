#include "sordino/tables/cell.h"

#include <array>
#include <charconv>
#include <cmath>
#include <system_error>

#include "sordino/base/list_text.h"

namespace sordino {

NumberError ParseNumber(std::string_view field, double* number) {
  field = Trimmed(field);
  if (field.empty()) return NumberError::kEmpty;
  if (field.size() > 1 && field.front() == '+' && field[1] != '-') field.remove_prefix(1);
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), *number);
  if (end != field.data() + field.size()) return NumberError::kNotANumber;
  if (error == std::errc::result_out_of_range) return NumberError::kOutOfRange;
  if (error != std::errc()) return NumberError::kNotANumber;
  return std::isfinite(*number) ? NumberError::kNone : NumberError::kNotFinite;
}

std::string_view NumberErrorText(NumberError error) {
  constexpr std::array<std::string_view, 5> kTexts = {
      "", "is empty", "is not a number", "is not finite", "is too large or too small for a double"};
  return kTexts[static_cast<std::size_t>(error)];
}

}  // namespace sordino
