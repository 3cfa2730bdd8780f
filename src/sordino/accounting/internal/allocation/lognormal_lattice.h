// The likelihood ratio of one Gaussian step on a lattice, from above and from below.
//
// X = e^{s u - s^2 / 2} with u standard normal is the ratio of N(s, 1) to N(0, 1) under N(0, 1),
// s = 1 / sigma; its mean is 1. What is needed are bounds on E[f(X_1 + ... + X_t)] for convex f.
// Convex order is kept by sums of independent variables, so each X is replaced by itself
//   above: split between its two neighbouring lattice points, mass and mean kept (X grows in
//          convex order);
//   below: merged with its neighbours into runs whose mean is a lattice point (balanced_runs.h).
// Both errors are of second order in the spacing.
//
// The range. X is kept on [low, cap]. What lies below low is left out (the caller charges its
// probability). What lies above cap is left out too, or set to cap (`keep_top`: X shrinks, which is
// an upper bound for decreasing f).
#ifndef SORDINO_ACCOUNTING_INTERNAL_LOGNORMAL_LATTICE_H_
#define SORDINO_ACCOUNTING_INTERNAL_LOGNORMAL_LATTICE_H_

#include <cstdint>
#include <vector>

#include "sordino/accounting/internal/allocation/lattice_sum.h"
#include "sordino/accounting/internal/atoms/balanced_runs.h"

namespace sordino {

// Relative error of a mass and of a mean of the two functions below: six-point quadrature on panels
// of a quarter of the smooth length, as in discretise.h.
inline constexpr double kLognormalRounding = 1e-13;

class LogNormalRatio {
 public:
  // s in (0, inf); low_u and cap_u are the ends of the range in the coordinate u.
  LogNormalRatio(double s, double low_u, double cap_u, bool keep_top);

  double Value(double u) const;
  double Coordinate(double x) const;
  double cap() const { return cap_; }
  // Of the law on the range tilted by theta, good to some digits: what windows and tilts are chosen
  // by.
  struct Moments {
    double log_moment;  // log E[e^{theta X}]
    double mean;
    double variance;
  };
  Moments TiltedMoments(double theta) const;
  double LogMoment(double theta) const { return TiltedMoments(theta).log_moment; }

  LatticeLaw Above(double spacing, double tilt, double log_scale) const;
  LatticeLaw Below(double spacing, double tilt, double log_scale, Rounding rounding) const;

 private:
  template <typename Visit>
  void Integrate(double from_u, double to_u, Visit visit) const;

  double s_;
  double low_u_;
  double cap_u_;
  double cap_;
  double top_mass_;  // at cap
  std::vector<ValueMass> nodes_;
};

}  // namespace sordino

#endif  // SORDINO_ACCOUNTING_INTERNAL_LOGNORMAL_LATTICE_H_
