// Binary-tree aggregation (the counting sums of DP-FTRL, Kairouz et al. 2021, arXiv 2103.00039).
//
// Noise is added to the sum of every complete subtree of a growing binary tree over the steps. A
// record that takes part in one step is in one node of each level, so a tree over n steps is
// TreeHeight(n) Gaussian releases for it.
#ifndef SORDINO_ACCOUNTING_INTERNAL_TREE_H_
#define SORDINO_ACCOUNTING_INTERNAL_TREE_H_

#include <cstdint>

namespace sordino {

// The number of levels of complete subtrees over `steps` >= 1 leaves: ceil(log2(steps + 1)).
int TreeHeight(std::uint64_t steps);

// The largest sum over all nodes of (participations below the node)^2 for a record that takes
// part at most `max_participation` times, with at least `min_separation` other steps between two
// participations. It takes the place of the height when a record comes back: the tree is then one
// Gaussian release of squared sensitivity equal to the result. Exact, by dynamic programming over
// subtrees; refuses inputs (Error) that would need more than about 10^9 operations.
std::uint64_t TreeSensitivitySquared(std::uint64_t max_participation, std::uint64_t min_separation,
                                     std::uint64_t steps);

}  // namespace sordino

#endif  // SORDINO_ACCOUNTING_INTERNAL_TREE_H_
