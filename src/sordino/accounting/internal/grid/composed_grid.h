// The composed loss of a list of pairs on a window of a grid, tilted: what grid.h solves on.
#ifndef SORDINO_ACCOUNTING_INTERNAL_COMPOSED_GRID_H_
#define SORDINO_ACCOUNTING_INTERNAL_COMPOSED_GRID_H_

#include <cmath>
#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "sordino/accounting/effort.h"
#include "sordino/accounting/internal/contour/contour.h"
#include "sordino/accounting/internal/grid/circle_product.h"
#include "sordino/accounting/internal/grid/discretise.h"

namespace sordino {

class ComposedGrid {
 public:
  ComposedGrid(std::span<const CountedPair> pairs, Bound bound, Effort effort);

  bool empty() const { return groups_.empty(); }
  bool TooMany() const;

  // objective(log moment function, c) is minimised to choose the tilt; log_delta_guess decides how
  // much of each pair's tail is left out. False: nothing is certified.
  using Objective = std::function<double(double log_moment, double c)>;
  bool Compose(double log_delta_guess, const Objective& objective);

  // A bound on log delta(epsilon).
  double LogDelta(double epsilon) const { return Read(epsilon).log_delta; }
  // The same, and what share of delta the grid's own errors are: small around the epsilon that the
  // tilt was chosen for.
  struct Reading {
    double log_delta;
    double error_share;
  };
  Reading Read(double epsilon) const;

  double last_loss() const { return origin_ + spacing_ * static_cast<double>(mass_.size() - 1); }
  double spacing() const { return spacing_; }
  double window() const { return spacing_ * static_cast<double>(mass_.size()); }
  double log_survival() const { return log_survival_; }

 private:
  struct Resolution {
    double tolerance;  // relative error of epsilon that the spacing aims at
    double cells_per_deviation;
    double max_window;
    double max_cells;
  };
  static constexpr Resolution kFull = {3e-7, 256, 1 << 17, 4e5};
  static constexpr Resolution kQuick = {1e-3, 24, 1 << 11, 4e3};

  double LogMoment(double c) const { return LogMomentOf(groups_, c); }
  double Deviation(double c) const { return std::sqrt(VarianceOf(groups_, c)); }
  Reading ReadGrid(double epsilon) const;
  bool Build();
  // All losses are one value.
  bool BuildDegenerate(double mean);
  // Leaves out the lowest losses of a continuous pair, which the tilt has made negligible: kUpper
  // keeps their mass at the new low end, kLower drops it.
  void TrimLowEnd(GridStep& group) const;
  // How far from the tilted mean the window must reach on one side.
  double WindowReach(double base, double mean, double sd, int side) const;
  // Puts heavy atoms on grid points: their loss then costs nothing.
  void AlignSpacing(double window, double& h);
  bool Transform(std::size_t size, double window_start);
  // Chernoff on the discretised, tilted measure: what lies outside the window.
  void BoundWindow(double low, double high, double sd);

  Bound bound_;
  Resolution resolution_;
  double log_survival_ = 0;
  std::vector<GridStep> groups_;
  double tilt_ = 0;
  double log_delta_ = 0;
  double spread_ = 0;      // kSpread: what the errors of the grid add up to at most,
  double log_exceed_ = 0;  // except with this (log) probability
  double spacing_ = 0;
  double origin_ = 0;  // loss of mass_[0]
  std::vector<double> mass_;
  double log_moment_ = 0;
  double log_moment_error_ = 0;
  double transform_error_ = 0;
  double above_window_ = 0;
  double below_window_ = 0;
};

}  // namespace sordino

#endif  // SORDINO_ACCOUNTING_INTERNAL_COMPOSED_GRID_H_
