// The law of S = X_1 + ... + X_t on knots, points whose losses log(S/t) are equally spaced, and
// what convexity allows to do with it (allocation.h).
//
// A law is as good as its potential, E[(S - k)_+] or E[(k - S)_+] as a function of k: it is convex,
// its kinks are the masses, and one pair dominates another where its potential is nowhere smaller.
// Splitting a mass between two knots, with its mean, raises the potential between them only.
#ifndef SORDINO_ACCOUNTING_INTERNAL_ALLOCATION_KNOTS_H_
#define SORDINO_ACCOUNTING_INTERNAL_ALLOCATION_KNOTS_H_

#include <cstddef>
#include <vector>

#include "sordino/accounting/effort.h"
#include "sordino/accounting/internal/allocation/allocation_band.h"
#include "sordino/accounting/loss_pair.h"

namespace sordino {

// Losses log(S/t) on a lattice through zero, and the values of S there.
struct Knots {
  double batches;
  double spacing;
  double first;
  std::vector<double> values;

  // Spaced for a loss of this standard deviation.
  Knots(double t, double low_loss, double high_loss, double deviation, Effort effort);
  std::size_t size() const { return values.size(); }
  double LossAt(std::size_t i) const { return (first + static_cast<double>(i)) * spacing; }
};

struct KnotLaw {
  std::vector<double> mass;  // under Q, at the knots
  double beyond = 0;         // P-mass above the last knot
  double below = 0;          // Q-mass below the first one, counted at S = 0
};

// Each value between its two neighbouring knots, mass and mean of S kept. Outside the knots a value
// is moved to a larger loss.
KnotLaw SplitBetween(const Knots& knots, const std::vector<ValueMass>& values,
                     AllocationDirection direction);

// E[(S - k)_+] at the knots, from the top; `constant` is added.
std::vector<double> CallPotential(const Knots& knots, const std::vector<double>& mass,
                                  double constant);
// E[(k - S)_+] at the knots, from the bottom.
std::vector<double> PutPotential(const Knots& knots, const KnotLaw& law);

struct PotentialPoint {
  double k;
  double value;
  std::size_t knot;
};

// A convex potential that is at most the value of each point is at most their lower convex hull,
// whose kinks are the masses that come back, rounded up. slope_after is its slope beyond the last
// point (0 for a call, 1 for a put); slope_before is set to that after the first one.
std::vector<double> MassesOfHull(const Knots& knots, const std::vector<PotentialPoint>& points,
                                 double slope_after, double* slope_before);

// A pair of losses from Q-masses at the knots; all losses are moved by `shift`.
LossPair PairOf(const Knots& knots, const std::vector<double>& mass, AllocationDirection direction,
                double shift);

struct Spread {
  double low_loss;
  double high_loss;
  double deviation;
};
// Of log(S/t) under the first law, ends without the given masses.
Spread SpreadOf(const std::vector<ValueMass>& values, double t, AllocationDirection direction,
                double low_mass, double high_mass);

}  // namespace sordino

#endif  // SORDINO_ACCOUNTING_INTERNAL_ALLOCATION_KNOTS_H_
