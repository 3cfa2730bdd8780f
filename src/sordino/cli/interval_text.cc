#include "sordino/cli/interval_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "sordino/base/shown_text.h"

namespace sordino {
namespace {

constexpr int kDigits = 7;

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
  std::string text = fmt::format("{:.{}g}", value, kDigits);
  if (holds(text)) return text;
  const double unit = std::pow(10, std::floor(std::log10(std::abs(value))) - kDigits + 1);
  text = fmt::format("{:.{}g}", ValueOf(text) + (up ? unit : -unit), kDigits);
  // Among the subnormal numbers a unit of the last digit may vanish: show all there is.
  return holds(text) ? text : fmt::format("{}", value);
}

}  // namespace

std::string UpperText(double value) { return Directed(value, true); }
std::string LowerText(double value) { return Directed(value, false); }

std::string AlignedTable(const std::vector<std::vector<std::string>>& given,
                         std::size_t words_from) {
  std::vector<std::vector<std::string>> rows = given;
  for (auto& row : rows) {
    for (std::string& cell : row) cell = ShownText(cell);
  }
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()), 0);
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string table;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i > 0) line += "  ";
      const bool words = i == 0 || i >= words_from;
      line += words ? fmt::format("{:<{}}", row[i], widths[i])
                    : fmt::format("{:>{}}", row[i], widths[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    table += line + '\n';
  }
  return table;
}

}  // namespace sordino
