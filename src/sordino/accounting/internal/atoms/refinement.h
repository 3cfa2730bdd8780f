// How fine the lists and the smoothing of smoothed_contour.h are, and how they are refined.
#ifndef SORDINO_ACCOUNTING_INTERNAL_REFINEMENT_H_
#define SORDINO_ACCOUNTING_INTERNAL_REFINEMENT_H_

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "sordino/base/quantity.h"

namespace sordino {

struct SmoothedResolution {
  // Relative width (of epsilon) or width (of log delta) at which refining ends, and what it aims at
  // while that is cheap.
  double narrow;
  double goal;
  int attempts;
  double max_work;           // multiplications of one inversion
  double first_atoms;        // of all pairs together, in the first attempt
  double first_cells;        // of a pair, at most
  std::size_t shared_cells;  // of a pair among many
};
inline constexpr SmoothedResolution kFullSmoothed = {4e-4, 1e-5, 7, 3e8, 4e4, 400, 300};
// Of many different pairs, and of more than kVeryMany, where everything takes long.
inline constexpr SmoothedResolution kManySmoothedPairs = {7e-4, 7e-4, 1, 4e8, 4e4, 400, 480};
inline constexpr SmoothedResolution kVeryManyPairs = {7e-4, 7e-4, 1, 4e8, 4e4, 400, 300};
inline constexpr std::size_t kVeryMany = 3000;
inline constexpr SmoothedResolution kQuickSmoothed = {0.02, 0.02, 1, 2e7, 3e3, 64, 96};

// The attempts at one question: cells of a pair, and the smoothing h.
struct Refinement {
  const SmoothedResolution& resolution;
  std::size_t cells = 0;
  double smoothing = 0;
  // The width that the smoothing leaves where the loss is smooth, over h^2.
  double smoothing_unit = 0;
  double last_width = kInfinity;
  std::size_t last_cells = 0;
  double last_smoothing = 0;
  bool by_cells = true;         // cells alone were refined
  double expected = kInfinity;  // the width that they should have left

  // Finer ones after an interval of this width; false where that is narrow enough or no use.
  bool Next(double width, double work) {
    // Multiplications that take some milliseconds.
    constexpr double kCheapWork = 3e6;
    // Both errors fall with the square, so the next work is known; where it is not cheap, narrow is
    // what is aimed at.
    const double least = resolution.goal < resolution.narrow ? 0.5 : 0.75;
    double aim = resolution.goal;
    double finer = std::clamp(std::sqrt(aim / width), 0.1, least);
    const double next = work / (finer * finer);
    if (next > kCheapWork) {
      aim = 0.6 * resolution.narrow;
      finer = std::clamp(std::sqrt(aim / width), 0.1, 0.75);
    }
    const bool enough =
        width <= resolution.goal || (width <= resolution.narrow && next > kCheapWork);
    if (enough) return false;
    if (width > 0.8 * last_width && !by_cells) return false;
    // A smooth loss leaves little to the smoothing. Where finer cells alone narrowed the interval
    // much less than they should have, it is not smooth, and they are fine enough, or were of no
    // use.
    const bool rough = by_cells && width > 3 * expected;
    if (rough && width > 0.8 * last_width) cells = last_cells;
    last_cells = cells;
    last_smoothing = smoothing;
    last_width = width;
    const double by_smoothing = smoothing_unit * smoothing * smoothing;
    by_cells = by_cells && !rough && width > 4 * by_smoothing;
    // Lists that many pairs share are costly to make.
    const bool few = resolution.goal < resolution.narrow;
    const double share = std::max(finer, by_cells && few ? 0.2 : 0.4);
    expected = share * share * width;
    if (!rough) cells = static_cast<std::size_t>(static_cast<double>(cells) / share);
    if (by_cells) {
      smoothing *= std::sqrt(std::min(1.0, 0.4 * aim / by_smoothing));
    } else {
      smoothing *= width > 8 * resolution.narrow ? 0.2 : std::max(finer, 0.25);
    }
    return true;
  }
};

}  // namespace sordino

#endif  // SORDINO_ACCOUNTING_INTERNAL_REFINEMENT_H_
