#include "sordino/base/directed_text.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

namespace sordino {
namespace {

constexpr int kShownDigits = 7;

double ValueOf(const std::string& text) {
  double value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::string Directed(double value, bool up) {
  if (std::isinf(value)) return "infinity";
  const auto holds = [&](const std::string& text) {
    return up ? ValueOf(text) >= value : ValueOf(text) <= value;
  };
  std::string text = fmt::format("{:.{}g}", value, kShownDigits);
  if (holds(text)) return text;
  const double unit = std::pow(10, std::floor(std::log10(std::abs(value))) - kShownDigits + 1);
  text = fmt::format("{:.{}g}", ValueOf(text) + (up ? unit : -unit), kShownDigits);
  // Among the subnormal numbers a unit of the last digit may vanish: show all there is.
  return holds(text) ? text : fmt::format("{}", value);
}

}  // namespace

std::string UpperText(double value) { return Directed(value, true); }
std::string LowerText(double value) { return Directed(value, false); }

}  // namespace sordino
