#include "sordino/base/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "sordino/base/adjacency_names.h"
#include "sordino/base/quantity.h"

namespace sordino {
namespace {

std::size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substitute = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substitute});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string NearestName(std::string_view given, std::span<const std::string_view> known) {
  std::string_view best;
  std::size_t best_distance = std::max<std::size_t>(2, given.size() / 3) + 1;
  for (const std::string_view name : known) {
    const std::size_t distance = EditDistance(given, name);
    if (distance < best_distance) {
      best_distance = distance;
      best = name;
    }
  }
  return std::string(best);
}

void CheckRange(std::string_view name, double value, double low, bool low_open, double high,
                bool high_open) {
  const bool above = low_open ? value > low : value >= low;
  const bool below = high_open ? value < high : value <= high;
  if (above && below) return;
  std::string allowed;
  if (std::isinf(high)) {
    allowed = fmt::format("{} {:g}", low_open ? "greater than" : "at least", low);
    if (high_open) allowed += " and finite";
  } else {
    allowed = fmt::format("{} {:g} and {} {:g}", low_open ? "greater than" : "at least", low,
                          high_open ? "less than" : "at most", high);
  }
  throw Error(fmt::format("{} is {:g}; it must be {}.", name, value, allowed));
}

std::string_view AdjacencyName(Adjacency adjacency) {
  return kAdjacencyNames.at(static_cast<std::size_t>(adjacency));
}

Adjacency ParseAdjacency(std::string_view name) {
  for (std::size_t i = 0; i < kAdjacencyNames.size(); ++i) {
    if (kAdjacencyNames[i] == name) return static_cast<Adjacency>(i);
  }
  throw Error(fmt::format(
      "the adjacency is '{}'; it must be 'add-remove', 'replace-one' or 'zero-out'.", name));
}

}  // namespace sordino
