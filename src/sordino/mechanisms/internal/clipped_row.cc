#include "sordino/mechanisms/internal/clipped_row.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace sordino::internal {

double LongestRow(double tau, double step, std::size_t dimension) {
  return tau / step * (1 + (static_cast<double>(dimension) + 4) * 0x1p-52);
}

void AddClippedRow(std::span<const double> record, double tau, double step, Int128* sums) {
  double largest = 0;
  bool finite = true;
  for (const double x : record) {
    finite = finite && std::isfinite(x);
    largest = std::max(largest, std::abs(x));
  }
  if (!finite || largest == 0) return;
  // Scaled by the largest coordinate, so that squares neither overflow nor vanish.
  double squares = 0;
  for (const double x : record) squares += (x / largest) * (x / largest);
  const double relative = std::sqrt(squares);  // the norm over the largest coordinate
  const double length = std::min(tau / relative, largest);
  for (std::size_t i = 0; i < record.size(); ++i) {
    sums[i] += static_cast<std::int64_t>(record[i] / largest * length / step);
  }
}

}  // namespace sordino::internal
