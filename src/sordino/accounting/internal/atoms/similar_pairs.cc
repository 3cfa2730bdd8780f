#include "sordino/accounting/internal/atoms/similar_pairs.h"

#include <algorithm>
#include <span>

namespace sordino {
namespace {

double Spread(std::span<const SimilarPair> pairs, std::size_t number) {
  const auto [low, high] = std::minmax_element(
      pairs.begin(), pairs.end(),
      [&](const SimilarPair& a, const SimilarPair& b) { return a.key[number] < b.key[number]; });
  return high->key[number] - low->key[number];
}

void SplitGroup(std::span<SimilarPair> pairs, const GroupLimits& limits,
                std::vector<std::vector<SimilarPair>>& out) {
  const std::array<double, 2> share = {Spread(pairs, 0) / limits.widest[0],
                                       Spread(pairs, 1) / limits.widest[1]};
  const std::size_t number = share[0] >= share[1] ? 0 : 1;
  const double narrow = pairs.size() > limits.large ? 0.5 : 1;
  if (pairs.size() < 2 * limits.least || share[number] <= narrow) {
    out.emplace_back(pairs.begin(), pairs.end());
    return;
  }
  const std::size_t middle = pairs.size() / 2;
  std::nth_element(
      pairs.begin(), pairs.begin() + static_cast<std::ptrdiff_t>(middle), pairs.end(),
      [&](const SimilarPair& a, const SimilarPair& b) { return a.key[number] < b.key[number]; });
  SplitGroup(pairs.first(middle), limits, out);
  SplitGroup(pairs.subspan(middle), limits, out);
}

}  // namespace

std::vector<std::vector<SimilarPair>> GroupSimilarPairs(std::vector<SimilarPair> pairs,
                                                        const GroupLimits& limits) {
  std::stable_sort(pairs.begin(), pairs.end(),
                   [](const SimilarPair& a, const SimilarPair& b) { return a.form < b.form; });
  std::vector<std::vector<SimilarPair>> groups;
  for (auto from = pairs.begin(); from != pairs.end();) {
    const auto to = std::find_if(from, pairs.end(),
                                 [&](const SimilarPair& one) { return one.form != from->form; });
    SplitGroup(std::span<SimilarPair>(from, to), limits, groups);
    from = to;
  }
  return groups;
}

}  // namespace sordino
