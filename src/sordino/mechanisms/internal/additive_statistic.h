// The part that all additive statistics share: exact integer sums and the noise on them.
// Internal to the module; see streamed_statistic.h.
#ifndef SORDINO_MECHANISMS_INTERNAL_ADDITIVE_STATISTIC_H_
#define SORDINO_MECHANISMS_INTERNAL_ADDITIVE_STATISTIC_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sordino/mechanisms/integer_noise.h"
#include "sordino/mechanisms/streamed_statistic.h"

namespace sordino::internal {

__extension__ using Int128 = __int128;

// How many times the bound on one row's contribution a unit can move the sums of all groups.
struct UnitFactor {
  double l1;
  double l2;
};
// For contributions whose coordinates are not negative.
UnitFactor NonNegativeFactor(const PrivacyUnit& unit);

// The number of bits after the point with which a contribution in [0, 1] is written, so that the
// noise spans about 2^37 steps. 0 (whole rows) suffices for Laplace noise on counts.
int FractionBits(double noise_in_rows);

class AdditiveStatistic : public StreamedStatistic {
 public:
  Event event() const override;
  double failure() const override { return NoiseFailure(budget_.noise, totals_.size()); }

 protected:
  AdditiveStatistic(const PrivacyUnit& unit, const NoiseBudget& budget, std::size_t coordinates,
                    double multiplier, const IntegerSensitivity& sensitivity,
                    bool one_coordinate_changes);

  Int128* totals(std::size_t group) { return &totals_[group * coordinates_]; }
  // The group's totals in steps of the grid, noised.
  std::vector<double> Noised(std::size_t group, Generator& generator) const;
  // A release without its values.
  Release Blank(const Generator& generator) const;

  const PrivacyUnit& unit() const { return unit_; }
  const NoiseBudget& budget() const { return budget_; }
  const IntegerNoise& noise() const { return noise_; }

 private:
  PrivacyUnit unit_;
  NoiseBudget budget_;
  std::size_t coordinates_;
  double multiplier_;
  IntegerSensitivity sensitivity_;
  bool one_coordinate_changes_;
  IntegerNoise noise_;
  std::vector<Int128> totals_;
};

// Shared by the statistics that record u = (x - low) / w as steps of 2^-bits.
class UnitInterval {
 public:
  UnitInterval(const Bounds& bounds, int bits);
  // In [0, 2^bits] for every double.
  std::int64_t Steps(double value) const;
  double one() const { return one_; }

 private:
  Bounds bounds_;
  double one_;
};

// The interval of all means m for which noise of the given kind and scale explains the noised
// totals a of u and b of 1 - u with probability at least 1 - confidence: |(1 - m) a - m b| is then
// the size of the noise (1 - m) X - m Y (Fieller's argument). Ends in [0, 1].
Interval RatioInterval(NoiseKind kind, double scale, double a, double b, double confidence);

// The same for the ratios r = a / b in [-reach, reach] of noised totals: |a - r b| is then the size
// of the noise X - r Y.
Interval SignedRatioInterval(NoiseKind kind, double scale, double a, double b, double reach,
                             double confidence);

}  // namespace sordino::internal

#endif  // SORDINO_MECHANISMS_INTERNAL_ADDITIVE_STATISTIC_H_
