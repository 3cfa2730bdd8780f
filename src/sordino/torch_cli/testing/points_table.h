// A table that every model can learn: points of the unit square, labelled by the diagonal.
#ifndef SORDINO_TORCH_CLI_TESTING_POINTS_TABLE_H_
#define SORDINO_TORCH_CLI_TESTING_POINTS_TABLE_H_

#include <cmath>
#include <string>

namespace sordino {

// Columns x, y and, unless `below` is empty, above: "yes" above the diagonal, else `below`.
inline std::string PointsTable(int count, const std::string& below = "no") {
  std::string csv = below.empty() ? "x,y\n" : "x,y,above\n";
  double x = 0.1;
  double y = 0.7;
  for (int i = 0; i < count; ++i) {
    x = std::fmod(x + 0.6180339887, 1);
    y = std::fmod(y + 0.7548776662, 1);
    csv += std::to_string(x) + ',' + std::to_string(y);
    if (!below.empty()) csv += ',' + (y > x ? "yes" : below);
    csv += '\n';
  }
  return csv;
}

}  // namespace sordino

#endif  // SORDINO_TORCH_CLI_TESTING_POINTS_TABLE_H_
