#include "sordino/base/csv_field.h"

#include <charconv>

namespace sordino {
namespace {

bool IsNumber(std::string_view text) {
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error != std::errc::invalid_argument && end == text.data() + text.size();
}

bool IsTakenAsFormula(std::string_view text) {
  const std::size_t start = text.find_first_not_of("\t\r\n ");
  return start != std::string_view::npos &&
         std::string_view("=+-@").find(text[start]) != std::string_view::npos && !IsNumber(text);
}

}  // namespace

std::string CsvField(std::string_view text) {
  const bool is_formula = IsTakenAsFormula(text);
  if (!is_formula && text.find_first_of(",\"\r\n") == std::string_view::npos) {
    return std::string(text);
  }
  std::string field = is_formula ? "\"'" : "\"";
  for (const char c : text) {
    if (c == '"') field += '"';
    field += c;
  }
  return field + '"';
}

}  // namespace sordino
