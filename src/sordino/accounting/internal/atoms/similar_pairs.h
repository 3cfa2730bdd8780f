// Groups of pairs that are nearly alike, of a composition of many.
#ifndef SORDINO_ACCOUNTING_INTERNAL_SIMILAR_PAIRS_H_
#define SORDINO_ACCOUNTING_INTERNAL_SIMILAR_PAIRS_H_

#include <array>
#include <cstddef>
#include <vector>

#include "sordino/accounting/internal/contour/contour.h"

namespace sordino {

struct SimilarPair {
  std::vector<double> form;   // the same for all pairs of a group
  std::array<double, 2> key;  // numbers that the pairs of a group share nearly
  const CountedPair* pair;
};

struct GroupLimits {
  std::array<double, 2> widest;  // how far the numbers of a group may be apart
  std::size_t least;             // a group of less than twice as many is not cut
  std::size_t large;             // one of more is cut to half the width
};

// Cuts the number that is spread most at its median until a group is narrow or small.
std::vector<std::vector<SimilarPair>> GroupSimilarPairs(std::vector<SimilarPair> pairs,
                                                        const GroupLimits& limits);

}  // namespace sordino

#endif  // SORDINO_ACCOUNTING_INTERNAL_SIMILAR_PAIRS_H_
