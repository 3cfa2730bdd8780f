// The losses of many similar pairs, cut at the same places.
//
// Lists of atoms (atom_list.h) of different pairs lie at different losses, so that a composition of
// ten thousand different steps has ten thousand transforms to compute. Where neighbouring pairs are
// cut at the same losses their lists differ in the masses alone, and list_family.h reduces them to
// a few transforms. A sampled Gaussian mechanism has most of its mass close to its lowest (or
// highest) loss log(1 - q), which differs from rate to rate. Losses are therefore measured from an
// offset of each pair: L = offset + t, and the places t are shared.
//
// What is known of a pair is the P-mass and the Q-mass of each cell between two places. Of them
// follow a list from above (connect the dots) and a list from below (merged cells), both valid for
// every choice of the places.
#ifndef SORDINO_ACCOUNTING_INTERNAL_LOSS_CELLS_H_
#define SORDINO_ACCOUNTING_INTERNAL_LOSS_CELLS_H_

#include <cstddef>
#include <span>
#include <vector>

#include "sordino/accounting/internal/contour/contour.h"
#include "sordino/accounting/loss_pair.h"

namespace sordino {

// One pair, cut at the places of its group.
struct LossCells {
  double count = 1;
  double offset = 0;
  std::vector<double> mass;  // P-mass of the cell between places k and k + 1
  std::vector<double> loss;  // log(P-mass / Q-mass) of it, less the offset
  // Mass below the first place, at losses of at most that, and beyond the last one.
  double low_p = 0;
  double low_q = 0;
  double high_p = 0;
  double high_q = 0;
  // Of the pair itself.
  double infinite = 0;
  double missing_p = 0;
  double absent_q = 0;
  double q_rounding = 0;
};

struct CellGroup {
  std::vector<double> places;  // t, in rising order
  std::vector<LossCells> pairs;
  // There are no places: cell k of each pair is the k-th atom of a list that is a bound already
  // (aligned_lists.h).
  bool aligned = false;
  double mass_error = 0;  // of every mass, relative
};

// Whether a pair can be cut: pieces of Gaussian mixtures, besides a few atoms.
bool CanBeCut(const LossPair& pair);

// Groups of neighbouring pairs, each with about `cells` cells between places that suit all of its
// pairs, all of which can be cut. Tails of P-mass e^log_lost are left out of the places.
// Losses up to `focus` are resolved best, where it is not 0.
std::vector<CellGroup> CutIntoCells(std::span<const CountedPair* const> pairs, double log_lost,
                                    std::size_t cells, double focus);

}  // namespace sordino

#endif  // SORDINO_ACCOUNTING_INTERNAL_LOSS_CELLS_H_
