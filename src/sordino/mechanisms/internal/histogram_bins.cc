#include "sordino/mechanisms/internal/histogram_bins.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "sordino/base/error.h"

namespace sordino::internal {
namespace {

constexpr std::size_t kMaxBins = std::size_t{1} << 16;

}  // namespace

double EdgeBin(const std::vector<double>& edges, double value) {
  if (value < edges.front() || value > edges.back()) return -1;
  if (value == edges.back()) return static_cast<double>(edges.size() - 2);
  const auto above = std::upper_bound(edges.begin(), edges.end(), value);
  return static_cast<double>(above - edges.begin() - 1);
}

void CheckBins(const std::string& column, const HistogramBins& bins) {
  if (!bins.categories.empty()) {
    const std::set<std::string> distinct(bins.categories.begin(), bins.categories.end());
    if (distinct.size() != bins.categories.size()) {
      throw Error(fmt::format("a category of '{}' was declared twice; name each once.", column));
    }
  } else {
    for (std::size_t i = 0; i + 1 < bins.edges.size(); ++i) {
      if (!(bins.edges[i] < bins.edges[i + 1]) || !std::isfinite(bins.edges[i + 1])) {
        throw Error(
            fmt::format("the edges of the bins of '{}' must be finite and increase.", column));
      }
    }
  }
  const std::size_t count =
      bins.categories.empty() ? bins.edges.size() : bins.categories.size() + 1;
  if (count < 3 || count > kMaxBins) {
    throw Error(
        fmt::format("the histogram of '{}' needs between 2 and {} bins.", column, kMaxBins - 1));
  }
}

std::vector<std::string> BinNames(const HistogramBins& bins) {
  std::vector<std::string> names = bins.categories;
  const std::vector<double>& edges = bins.edges;
  for (std::size_t i = 0; names.size() + 1 < edges.size(); ++i) {
    const bool last = i + 2 == edges.size();
    names.push_back(fmt::format("[{},{}{}", edges[i], edges[i + 1], last ? "]" : ")"));
  }
  return names;
}

}  // namespace sordino::internal
