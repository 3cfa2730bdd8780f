// The Laplace and the Gaussian mechanism for real-valued queries.
//
// M(D) = f(D) + noise, with noise scaled to the declared global sensitivity of f: L1 for Laplace
// (pure epsilon-DP), L2 for Gaussian ((epsilon, delta)-DP). A real value is rounded to a grid of
// step g = 2^e, about 2^-37 of the noise, and an integer number of steps is added. Rounding moves
// two neighbours apart by less than one step a coordinate, so the sensitivity in steps is
//   L1 / g + d   and   L2 / g + sqrt(d)
// for d coordinates, and that is what the noise is calibrated to. The sensitivity that the caller
// declares must hold for the value as computed, its own floating-point error included; the
// streamed statistics (streamed_statistic.h) have none.
//
// A value that is not a number is taken as 0, and one beyond 2^62 steps as the last step. The
// second moves no two values apart. The first may: a sensitivity is declared for queries that are
// numbers.
#ifndef SORDINO_MECHANISMS_ADDITIVE_MECHANISM_H_
#define SORDINO_MECHANISMS_ADDITIVE_MECHANISM_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "sordino/base/quantity.h"
#include "sordino/mechanisms/calibration.h"
#include "sordino/mechanisms/integer_noise.h"
#include "sordino/mechanisms/release.h"
#include "sordino/random/generator.h"
#include "sordino/random/grid_noise.h"

namespace sordino {

namespace internal {

// What the two mechanisms share: rounding, noise, interval.
class GridMechanism {
 public:
  GridMechanism(NoiseKind kind, double sensitivity, double multiplier, std::size_t dimension);
  Release Apply(std::span<const double> values, double confidence, Generator& generator) const;
  double noise_scale() const { return noise_.scale() * grid_.Granularity(); }
  double granularity() const { return grid_.Granularity(); }
  // Noise scale over the sensitivity that the neighbours can really show, rounding included.
  double multiplier() const { return multiplier_; }

 private:
  std::size_t dimension_;
  double multiplier_;
  Grid grid_;
  IntegerNoise noise_;
};

}  // namespace internal

class LaplaceMechanism {
 public:
  // Sensitivity in (0, inf), epsilon in (0, inf), dimension at least 1; else Error.
  LaplaceMechanism(L1Sensitivity sensitivity, Epsilon epsilon, std::size_t dimension = 1,
                   Adjacency adjacency = Adjacency::kAddRemove);

  Release operator()(double value, Generator& generator,
                     double confidence = kDefaultConfidence) const;
  // As many values as the dimension says.
  Release operator()(std::span<const double> values, Generator& generator,
                     double confidence = kDefaultConfidence) const;

  double noise_scale() const { return grid_.noise_scale(); }
  double granularity() const { return grid_.granularity(); }

 private:
  Epsilon epsilon_;
  Event event_;
  internal::GridMechanism grid_;
};

class GaussianMechanism {
 public:
  // Sensitivity in (0, inf), epsilon at least 1e-9 (at most 1 for the classic calibration), delta
  // in (0, 1) and above about 1e-25; else Error.
  GaussianMechanism(L2Sensitivity sensitivity, Epsilon epsilon, Delta delta,
                    std::size_t dimension = 1, Adjacency adjacency = Adjacency::kAddRemove,
                    GaussianCalibration calibration = GaussianCalibration::kAnalytic);

  Release operator()(double value, Generator& generator,
                     double confidence = kDefaultConfidence) const;
  Release operator()(std::span<const double> values, Generator& generator,
                     double confidence = kDefaultConfidence) const;

  double noise_scale() const { return grid_.noise_scale(); }
  double granularity() const { return grid_.granularity(); }

 private:
  Epsilon epsilon_;
  Delta delta_;
  Event event_;
  internal::GridMechanism grid_;
};

}  // namespace sordino

#endif  // SORDINO_MECHANISMS_ADDITIVE_MECHANISM_H_
