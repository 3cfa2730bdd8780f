#include "sordino/cli/interval_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "sordino/base/shown_text.h"

namespace sordino {
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
