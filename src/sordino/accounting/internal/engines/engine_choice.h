// What decides which engine answers a composition; shared by the searches for epsilon and for
// delta.
#ifndef SORDINO_ACCOUNTING_INTERNAL_ENGINE_CHOICE_H_
#define SORDINO_ACCOUNTING_INTERNAL_ENGINE_CHOICE_H_

#include <cstddef>
#include <vector>

#include "sordino/accounting/internal/contour/contour.h"

namespace sordino {

// A contour interval that is narrower than this (relative) is not tried again on the grid.
inline constexpr double kNarrow = 1e-3;
// The grid is very exact for short questions, and slow for long ones: there it is asked only about
// what is left open, an epsilon far below the losses of a single step.
inline constexpr std::size_t kMaxGridPairs = 2;
inline constexpr double kShortNarrow = 1e-5;
// Releases that are looked at alone.
inline constexpr std::size_t kMaxParts = 8;
// Closed forms are exact to about 1e-13.
inline constexpr double kClosedFormError = 1e-12;

struct PairShape {
  bool only_gaussian = true;  // apart from mass at infinity
  bool single = false;        // one release, once
  double mu2 = 0;
  double log_survival = 0;
  double largest_loss = 0;  // of the composition
};
PairShape ShapeOf(const std::vector<CountedPair>& pairs);

// What is left of delta for the finite part of the loss.
double FinitePart(double log_delta, double log_survival);

bool IsShort(const std::vector<CountedPair>& pairs);
bool HasDensity(const std::vector<CountedPair>& pairs);
// Lattices that the grid keeps without rounding; among many other pairs that is of no use.
bool HasLattice(const std::vector<CountedPair>& pairs);
// Whether a lattice that the grid cannot keep would be rounded down often.
bool HasLongLattice(const std::vector<CountedPair>& pairs);
// The contour wants many steps that count: sparse schedules would only cost it time.
bool FitsContour(const std::vector<CountedPair>& pairs);

}  // namespace sordino

#endif  // SORDINO_ACCOUNTING_INTERNAL_ENGINE_CHOICE_H_
