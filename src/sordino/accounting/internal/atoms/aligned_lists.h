// Lists of atoms of many similar pairs, atom by atom.
//
// Of Laplace noise, discrete noise and randomised response the losses themselves move from pair to
// pair, with atoms at the ends or everywhere, so that cells at shared losses (loss_cells.h) would
// not make the lists of neighbours alike. But the k-th atom of a list (atom_list.h), counted from a
// loss of zero, is close to the k-th atom of its neighbour. With a and b the lowest and the highest
// loss of atom k in a group, list_family.h puts the mass of every list's atom k at a and b such
// that P-mass and Q-mass are kept. Lists from above stay bounds from above; what that adds to
// lists from below is charged there. Both err by (b - a)^2, whatever the pairs are, and nothing
// depends on how they were grouped or counted.
#ifndef SORDINO_ACCOUNTING_INTERNAL_ALIGNED_LISTS_H_
#define SORDINO_ACCOUNTING_INTERNAL_ALIGNED_LISTS_H_

#include <cstddef>
#include <span>
#include <vector>

#include "sordino/accounting/internal/atoms/loss_cells.h"
#include "sordino/accounting/internal/atoms/similar_pairs.h"
#include "sordino/accounting/internal/grid/discretise.h"

namespace sordino {

// Any pairs with losses, in groups of neighbours.
std::vector<std::vector<SimilarPair>> GroupLists(std::span<const CountedPair* const> pairs);

// The lists of a group, with about `cells` cells each; tails of P-mass e^log_lost are left out.
CellGroup AlignLists(std::span<const SimilarPair> pairs, double log_lost, std::size_t cells,
                     Bound bound);

}  // namespace sordino

#endif  // SORDINO_ACCOUNTING_INTERNAL_ALIGNED_LISTS_H_
