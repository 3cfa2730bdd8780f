#include "sordino/tables/cell.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <system_error>

#include "sordino/base/list_text.h"

namespace sordino {

namespace {

// Digits with at most one point and 15 digits in all, as most cells are: both the digits and the
// power of ten are whole numbers below 2^53, so one division rounds correctly (Clinger's fast
// path), a few times faster than from_chars. False: something else stands there.
bool ParseShort(std::string_view field, double* number) {
  constexpr std::array<double, 16> kPowers = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                              1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
  const bool negative = field.starts_with('-');
  if (negative) field.remove_prefix(1);
  if (field.empty() || field.size() > 16) return false;
  std::uint64_t digits = 0;
  std::size_t count = 0;
  std::size_t behind = 0;  // digits after the point
  bool point = false;
  for (const char c : field) {
    if (c >= '0' && c <= '9') {
      digits = 10 * digits + static_cast<std::uint64_t>(c - '0');
      ++count;
      behind += point ? 1 : 0;
    } else if (c == '.' && !point) {
      point = true;
    } else {
      return false;
    }
  }
  if (count == 0 || count > 15) return false;
  const double value = static_cast<double>(digits) / kPowers[behind];
  *number = negative ? -value : value;
  return true;
}

}  // namespace

NumberError ParseNumber(std::string_view field, double* number) {
  field = Trimmed(field);
  if (ParseShort(field, number)) return NumberError::kNone;
  if (field.empty()) return NumberError::kEmpty;
  if (field.size() > 1 && field.front() == '+' && field[1] != '-') field.remove_prefix(1);
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), *number);
  if (end != field.data() + field.size()) return NumberError::kNotANumber;
  if (error == std::errc::result_out_of_range) return NumberError::kOutOfRange;
  if (error != std::errc()) return NumberError::kNotANumber;
  return std::isfinite(*number) ? NumberError::kNone : NumberError::kNotFinite;
}

std::string_view NumberErrorText(NumberError error) {
  constexpr std::array<std::string_view, 8> kTexts = {"",
                                                      "is empty",
                                                      "is not a number",
                                                      "is not finite",
                                                      "is too large or too small for a double",
                                                      "is not a date in the declared format",
                                                      "is neither yes nor no",
                                                      "is missing"};
  return kTexts[static_cast<std::size_t>(error)];
}

}  // namespace sordino
