// Certified (epsilon, delta) of a composition by a grid of privacy losses and the FFT.
//
// Each pair is discretised from above or from below (discretise.h), tilted by e^{cL}, folded onto
// a window of N grid points, transformed, raised to its count, multiplied and transformed back.
// What the window loses or folds back is bounded by Chernoff on the discretised moments, and the
// rounding of the transforms by the usual bound C u log2 N on their relative error in the 2-norm;
// both are charged to delta (added for kUpper, subtracted for kLower).
//
// This is the engine for few steps, for discrete mechanisms and for losses that are almost
// discrete; contour.h serves the rest.
#ifndef SORDINO_ACCOUNTING_INTERNAL_GRID_H_
#define SORDINO_ACCOUNTING_INTERNAL_GRID_H_

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "sordino/accounting/effort.h"
#include "sordino/accounting/internal/contour/contour.h"
#include "sordino/accounting/internal/grid/composed_grid.h"
#include "sordino/accounting/internal/grid/discretise.h"
#include "sordino/accounting/internal/grid/tail_split.h"

namespace sordino {

// A bound on the smallest epsilon >= 0 with delta(epsilon) <= e^log_delta; infinity when none is
// found (kUpper), 0 (kLower, kSpread).
double GridEpsilon(std::span<const CountedPair> pairs, double log_delta, Bound bound,
                   Effort effort = Effort::kFull);
// The same where rare large losses are set apart; epsilon up to the reach of the split.
double GridEpsilon(const TailSplit& split, double log_delta, Bound bound, Effort effort);

// A bound on log delta(epsilon).
double GridLogDelta(std::span<const CountedPair> pairs, double epsilon, Bound bound,
                    Effort effort = Effort::kFull);

// A grid that was tilted for an epsilon, its guess and its bound of log delta there; no grid where
// none was composed.
struct TiltedGrid {
  double epsilon;
  double guess;
  double log_delta;
  std::optional<ComposedGrid> grid;
};

// Bounds on log delta at many epsilons of one composition. A grid resolves the epsilons around the
// one that it was tilted for, over some orders of magnitude of delta; another is composed where
// none is near.
class GridProfile {
 public:
  GridProfile(std::vector<CountedPair> pairs, Bound bound, Effort effort);

  double LogDelta(double epsilon);
  std::size_t grids() const { return grids_.size(); }

 private:
  const TiltedGrid* Nearest(double epsilon) const;

  std::vector<CountedPair> pairs_;
  Bound bound_;
  Effort effort_;
  std::vector<TiltedGrid> grids_;
};

}  // namespace sordino

#endif  // SORDINO_ACCOUNTING_INTERNAL_GRID_H_
