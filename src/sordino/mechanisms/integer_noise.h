// Noise on the integers, calibrated for a query that takes integer values.
//
// Every release of this module ends here: what is released is an integer (a count, or a sum of
// records rounded to a power-of-two grid) plus an integer drawn from an exact sampler, scaled by a
// power of two. Nothing that depends on the data is added in floating point, so the low bits of
// a released number say nothing about it (threat 1).
//
//   Laplace   discrete Laplace of scale s = L1 / epsilon; exactly epsilon-DP.
//   Gaussian  discrete Gaussian of parameter sigma = L2 / mu on a grid so fine that it is the
//             rounded continuous one up to a factor 1 +- 2^-63 a coordinate, pointwise within
//             13 sigma; the sampler never goes beyond. The cost of this is charged: the curve is
//             solved for epsilon - 2^-40 and delta (1 - 2^-30), and mu is kept so small that the
//             values which one neighbour can produce and the other cannot have a probability
//             below 2^-31 delta.
// The event of a Gaussian release is the continuous mechanism; NoiseFailure is what the discrete
// one differs from it, so that a ledger that composes many releases counts that too.
#ifndef SORDINO_MECHANISMS_INTEGER_NOISE_H_
#define SORDINO_MECHANISMS_INTEGER_NOISE_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "sordino/base/noise_kind.h"
#include "sordino/base/quantity.h"
#include "sordino/mechanisms/calibration.h"
#include "sordino/random/discrete_gaussian.h"
#include "sordino/random/discrete_laplace.h"
#include "sordino/random/generator.h"

namespace sordino {

// What one neighbour can change in a vector of integers; whole numbers (L1) or an upper bound (L2),
// below 2^62.
struct IntegerSensitivity {
  double l1 = 0;
  double l2 = 0;
};

// The scale of the noise divided by the sensitivity that a mechanism on the grid really uses.
// `dimension` coordinates are released together. delta is ignored by Laplace.
double GridNoiseMultiplier(NoiseKind kind, Epsilon epsilon, Delta delta, std::size_t dimension,
                           GaussianCalibration calibration = GaussianCalibration::kAnalytic);

// The distance in total variation of that many draws from the noise that the event names: 0 for
// Laplace, whose events are exact.
double NoiseFailure(NoiseKind kind, std::size_t draws);

// A grid 2^exponent for noise of that scale (in the units of the query) and records of magnitude
// `magnitude` at most: the noise spans about 2^37 steps, or fewer where a record would overflow.
int GridExponent(double noise_scale, double magnitude);

class IntegerNoise {
 public:
  // Sensitivities above 0. Throws Error when the noise would leave the range of the samplers.
  IntegerNoise(NoiseKind kind, const IntegerSensitivity& sensitivity, double multiplier);

  std::int64_t operator()(Generator& generator) const;

  NoiseKind kind() const { return kind_; }
  // The parameter of the distribution in steps of the grid: scale or sigma.
  double scale() const { return scale_; }
  // The exact variance for Laplace, sigma^2 (an upper bound) for Gaussian.
  double Variance() const;
  // The smallest t (for Gaussian: up to rounding) with P(|noise| > t) <= 1 - confidence.
  double HalfWidth(double confidence) const;

 private:
  NoiseKind kind_;
  double scale_;
  std::optional<DiscreteLaplace> laplace_;
  std::optional<DiscreteGaussian> gaussian_;
};

// Two-sided normal quantile: P(|N(0,1)| <= z) = confidence.
double NormalHalfWidth(double confidence);

}  // namespace sordino

#endif  // SORDINO_MECHANISMS_INTEGER_NOISE_H_
