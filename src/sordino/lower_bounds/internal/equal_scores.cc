#include "sordino/lower_bounds/internal/equal_scores.h"

#include <numeric>
#include <vector>

namespace sordino::internal {
namespace {

// Masses that are left out add up to less than 10^9 of these for the largest number of scores, and
// that is less than kOrderRounding of all.
constexpr double kLeastWeight = 1e-25;
// The orders that are counted are fewer by this share, so that rounding never adds one.
constexpr double kOrderRounding = 1e-9;

}  // namespace

std::int64_t AboveInMostOrders(std::int64_t members, std::int64_t others, std::int64_t place,
                               double share) {
  // The mass of k + 1 over that of k; it falls with k, because both parameters are at least 1.
  const auto ratio = [&](std::int64_t k) {
    return static_cast<double>(members - k) * static_cast<double>(place + k) /
           (static_cast<double>(k + 1) * static_cast<double>(members - k + others - place));
  };
  std::int64_t mode = 0;
  for (std::int64_t low = 0, high = members; low < high; mode = low) {
    const std::int64_t middle = low + (high - low) / 2;
    if (ratio(middle) > 1) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  // Masses over that of the mode.
  std::vector<double> down;  // of mode - 1, mode - 2, ...
  double weight = 1;
  for (std::int64_t k = mode; k > 0 && weight > kLeastWeight; --k) {
    down.push_back(weight /= ratio(k - 1));
  }
  double up = 1;  // of the mode and above
  weight = 1;
  for (std::int64_t k = mode; k < members && weight > kLeastWeight; ++k) up += weight *= ratio(k);
  const double all = std::accumulate(down.rbegin(), down.rend(), up);
  const double left_out = (1 - share - kOrderRounding) * all;
  double below = 0;
  std::int64_t k = mode - static_cast<std::int64_t>(down.size());
  for (auto mass = down.rbegin(); mass != down.rend(); ++mass, ++k) {
    below += *mass;
    if (below > left_out) return k;
  }
  weight = 1;
  for (;; ++k) {
    below += weight;
    if (below > left_out || k == members) return k;
    weight *= ratio(k);
  }
}

}  // namespace sordino::internal
