// The pairs of a composition on a circle of grid points, and the product of their transforms: what
// composed_grid.h and choice_option.h (pairs/) compose.
#ifndef SORDINO_ACCOUNTING_INTERNAL_CIRCLE_PRODUCT_H_
#define SORDINO_ACCOUNTING_INTERNAL_CIRCLE_PRODUCT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sordino/accounting/internal/contour/contour.h"
#include "sordino/accounting/internal/grid/discretise.h"
#include "sordino/accounting/loss_pair.h"

namespace sordino {

struct GridCircle {
  double spacing = 0;
  double tilt = 0;
  std::size_t points = 0;
  Bound bound = Bound::kUpper;

  std::size_t Place(std::int64_t index) const {
    const auto n = static_cast<std::int64_t>(points);
    return static_cast<std::size_t>(((index % n) + n) % n);
  }
};

// One pair, `count` times.
struct GridStep {
  LossPair pair;
  double count;
  GridSpec spec = {};
  LossNodes nodes = {};
  GridMass grid = {};
};
// The pairs that have losses, all Gaussians together as one density; adds to log_survival what the
// others leave.
std::vector<GridStep> GridStepsOf(std::span<const CountedPair> pairs, double& log_survival);

// Before all that follows; false where nothing is left.
bool ChooseRanges(std::span<GridStep> steps, double log_lost);
// Of the sum of all losses: about log E[e^{cL}], and the variance under the tilted measure.
double LogMomentOf(std::span<const GridStep> steps, double c);
double VarianceOf(std::span<const GridStep> steps, double c);

// Puts the heaviest atom on a grid point, or the low end of a density: under sparse sampling it is
// almost an atom. The distance of the two heaviest atoms, if there are two.
std::optional<double> ChooseOffset(GridStep& step);

struct CircleProduct {
  // Sums over all pairs at each frequency.
  std::vector<double> log_modulus;
  std::vector<double> log_largest;  // with its error
  std::vector<double> phase;        // of losses less their offsets
  double offset = 0;
  double log_mass = 0;  // of the tilted masses, by which each transform is divided
  double log_mass_error = 0;
  double log_survival = 0;
};
// Discretises the pairs and multiplies their transforms; nothing where one is left without mass.
std::optional<CircleProduct> ProductOnCircle(std::span<GridStep> steps, const GridCircle& circle);

}  // namespace sordino

#endif  // SORDINO_ACCOUNTING_INTERNAL_CIRCLE_PRODUCT_H_
