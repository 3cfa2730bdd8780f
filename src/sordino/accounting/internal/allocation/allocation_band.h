// The law of S = X_1 + ... + X_t (allocation.h) on one lattice, for one direction of the adjacency.
//
// The likelihood ratios of the steps are kept up to a cap; the lattice resolves sums of about that
// size. A heavy tail needs several bands: wide ones for the tail, narrow ones for the bulk.
#ifndef SORDINO_ACCOUNTING_INTERNAL_ALLOCATION_BAND_H_
#define SORDINO_ACCOUNTING_INTERNAL_ALLOCATION_BAND_H_

#include <cstdint>
#include <vector>

#include "sordino/accounting/internal/allocation/lattice_sum.h"
#include "sordino/accounting/internal/allocation/lognormal_lattice.h"

namespace sordino {

// kRemove: the first law is P, the loss log(S/t). kAdd: the first law is Q, the loss -log(S/t).
enum class AllocationDirection : std::uint8_t { kRemove, kAdd };

struct BandOptions {
  double batches = 2;  // t
  double s = 1;        // 1 / sigma
  AllocationDirection direction = AllocationDirection::kRemove;
  double low_u = -8;  // the range of a step's ratio, in standard deviations of its logarithm
  double cap_u = 8;
  // Digits are spent on the tail: about log E[e^{tilt (S - t)}] of the tilted law.
  double tilt_exponent = 4;
  std::size_t size = std::size_t{1} << 16;  // points of the lattice of the sum
};

class AllocationBand {
 public:
  explicit AllocationBand(const BandOptions& options);

  // Q-masses of values of S, in increasing order. Upper(): for every convex f that increases
  // (kRemove) or decreases (kAdd) with S, E[f(S)] on the event that all ratios are in the range is
  // at most the sum of mass * f. Lower(): at least.
  struct UpperLaw {
    std::vector<ValueMass> values;
    // Under the first law, the mass with a loss beyond the window; an upper bound.
    double beyond = 0;
  };
  UpperLaw Upper() const;
  std::vector<ValueMass> Lower() const;

  // The mass, under the first law, of what the range leaves out; an upper bound.
  double LostMass() const;
  double spacing() const { return spacing_; }
  double cap() const { return ratio_.cap(); }

 private:
  struct End {
    double value;
    double exponent;  // of the Chernoff bound
  };
  struct Masses {
    double s;
    double lower;  // under the first law
    double upper;
    double noise;
  };
  void ChooseTilt();
  End WindowEnd(int side) const;
  void ChooseWindow();
  bool remove() const { return options_.direction == AllocationDirection::kRemove; }
  // Q-mass of a mass at S = s under the first law.
  double QMass(double s, double mass) const {
    return remove() ? mass * (options_.batches / s) : mass;
  }
  Masses Untilted(const LatticeSum& sum, std::size_t i) const;

  BandOptions options_;
  LogNormalRatio ratio_;
  double tilt_ = 0;
  double log_scale_ = 0;
  double spacing_ = 0;
  SumWindow window_;
};

}  // namespace sordino

#endif  // SORDINO_ACCOUNTING_INTERNAL_ALLOCATION_BAND_H_
