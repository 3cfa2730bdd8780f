// A privacy loss as finitely many losses, from above or from below, at losses of any spacing.
//
// The noise coordinate is cut into cells. Losses rise along a cell, from l_a to l_b, and its masses
// p under P and q under Q give the loss log(p/q) of the cell as a whole.
//   kUpper  the cell's mass goes to l_a and l_b such that p and q are kept: connect the dots
//           (Doroshenko et al., arXiv 2207.04380), which dominates the pair at any spacing.
//   kLower  the cell becomes one outcome of loss log(p/q): post-processing, so dominated by it.
// Both err by the square of a cell's width. Cells are equal in the coordinate, so that under sparse
// sampling, where the loss grows like q e^x, they are fine where losses are small.
// Tails of P-mass e^log_lost are left out: kUpper keeps the low one at the lowest loss and counts
// the high one as an infinite loss, kLower drops both.
//
// Moments are summed without cancellation. With M(s) = sum of mass e^{s l}, what is absent from P
// and Q known, and phi(x) = e^x - 1 - x,
//   M(s) - 1 = -absent_p - s (absent_p - absent_q) + sum of mass (phi(s l) + s phi(-l)).
#ifndef SORDINO_ACCOUNTING_INTERNAL_ATOM_LIST_H_
#define SORDINO_ACCOUNTING_INTERNAL_ATOM_LIST_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "sordino/accounting/internal/grid/discretise.h"
#include "sordino/accounting/loss_pair.h"

namespace sordino {

struct AtomList {
  std::vector<double> loss;  // in rising order
  std::vector<double> mass;  // under P
  double absent_p = 0;       // 1 - sum of mass
  double absent_q = 0;       // 1 - sum of mass e^-loss
  double infinite = 0;       // P-mass at an infinite loss; part of absent_p
  double q_rounding = 0;     // error of absent_q
};

// About `cells` cells for a continuous pair. A list of atoms is kept as it is up to four times as
// many; of more, so many share a cell that there are about `cells`, or `atoms_of_cell` where that
// is given.
AtomList ListAtoms(const LossPair& pair, double log_lost, std::size_t cells, Bound bound,
                   std::size_t atoms_of_cell = 0);
// How many atoms of the pair would share a cell.
std::size_t AtomsOfCell(const LossPair& pair, double log_lost, std::size_t cells);

// One cell of the coordinate of a density: its P-mass, and the log of that over its Q-mass.
struct LossCell {
  double mass = 0;
  double loss = 0;
};
LossCell IntegrateCell(const LossDensity& density, double a, double b);

// A loss that is not below zero, but for rounding, where losses go from `lowest` to `highest`.
inline double ZeroLoss(double lowest, double highest) {
  return -1e-12 * std::max(std::abs(lowest), std::abs(highest));
}

// e^x - 1 - x without cancellation.
double ExpRest(double x);

}  // namespace sordino

#endif  // SORDINO_ACCOUNTING_INTERNAL_ATOM_LIST_H_
