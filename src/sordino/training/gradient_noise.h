// The noise step: from a bounded sum to gradients that an optimizer may see.
//
// Noise is drawn and added on an integer grid and the result is scaled by a power of two, so its
// low bits tell nothing about the value under it (threats: arXiv 2112.05307). With the unit U of
// the noise multiplier z (privacy_plan.h), d coordinates and granularity g = 2^k:
//
//   Gaussian  standard deviation  s = z (U + g sqrt(d)),        2^29 <= s / g < 2^30
//   Laplace   scale               b = z (sqrt(d) U + g d),      2^29 <= b / g < 2^30
//
// The terms with g are what rounding to the grid may move two neighbouring sums apart: g / 2 each
// in every coordinate. Values are saturated at 2^50 steps, which moves no two of them apart.
//
// How near to the Gaussian that is accounted. A draw is a discrete Gaussian of sigma = 2^10 s / g
// >= 2^39 steps (random/discrete_gaussian.h), rounded to the grid. A continuous Gaussian rounded to
// these finer steps is post-processing of the Gaussian mechanism, and the two are close: the ratio
// of their probabilities at x is, up to a constant, E exp(-(2 x u + u^2) / (2 sigma^2)) for u
// uniform in [-1/2, 1/2], which lies in [1 - 1 / (8 sigma^2), exp(x^2 / (24 sigma^4))]. For |x| <=
// 13 sigma its logarithm varies by less than e = 7.2 / sigma^2. So n draws have a Kullback-Leibler
// divergence of at most n e^2 / 2 and by Pinsker's inequality a distance in total variation of at
// most e sqrt(n) / 2 < 2^-76 sqrt(n); the tails beyond 13 sigma add 2^-119 n.
// NoiseDistance(n) is the sum. The discrete Laplace is exact (its own epsilon is 1 / z whatever the
// grid) but for values above 2^52 steps, which are rounded: exp(-2^22) is not counted.
#ifndef SORDINO_TRAINING_GRADIENT_NOISE_H_
#define SORDINO_TRAINING_GRADIENT_NOISE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "sordino/base/noise_kind.h"
#include "sordino/base/quantity.h"
#include "sordino/gradients/bounded_sum.h"
#include "sordino/gradients/noised_value.h"
#include "sordino/random/generator.h"

namespace sordino {

// Where noise and batches come from: one stream for each purpose of each step.
class RandomSource {
 public:
  RandomSource();                                      // of the operating system
  explicit RandomSource(std::uint64_t insecure_seed);  // reproducible, not private

  std::unique_ptr<Generator> Stream(const StreamKey& key);
  bool IsPrivate() const;

 private:
  std::variant<SecureGenerator, InsecureSeededGenerator> generator_;
};

// What the tensor of a StreamKey means in training.
inline constexpr std::uint32_t kSamplingStream = std::uint32_t{1} << 31;
inline constexpr std::uint32_t kCountStream = kSamplingStream + 1;
inline constexpr std::uint32_t kModelStream = kSamplingStream + 2;
inline constexpr std::uint32_t kAllocationStream = kSamplingStream + 3;  // its step is an epoch
// Noise: the number of the block of kNoiseBlock coordinates, counted over all parameters.
inline constexpr std::int64_t kNoiseBlock = std::int64_t{1} << 16;

// Bound on the distance in total variation of n draws from the Gaussians that are accounted.
double NoiseDistance(double draws);

// The grid that noise of multiplier z is added on, for a unit U and d coordinates.
struct NoiseGrid {
  double scale = 0;        // standard deviation (Gaussian) or b (Laplace), in the unit of the sum
  double granularity = 0;  // g
};
// Throws Error when z sqrt(d) (Gaussian) or z d (Laplace) is so large that rounding takes over.
NoiseGrid ChooseNoiseGrid(NoiseKind kind, NoiseMultiplier noise, L2Sensitivity unit,
                          std::int64_t coordinates);

struct StepNoise {
  NoiseKind kind = NoiseKind::kGaussian;
  NoiseMultiplier multiplier{1};
  // The unit of the multiplier over the sensitivity of the sum: 1, or 1/2 where the event's unit is
  // half the distance of neighbours (Poisson sampling under replace-one).
  double unit_share = 1;
  double divisor = 1;  // the declared batch size
  std::int64_t step = 0;
};

// The sum with noise, divided: the gradients for the optimizer, in the shapes of the sum, float32
// or float64 as the sum, on its device. standard_deviation() of the result is that of one
// coordinate after the division.
NoisedGradients AddNoise(const BoundedSum& sum, const StepNoise& noise, RandomSource& source);

// The counts of an adaptive policy with noise of standard deviation count_noise (not divided).
NoisedCounts AddCountNoise(const BoundedSum& sum, double count_noise, std::int64_t step,
                           RandomSource& source);

}  // namespace sordino

#endif  // SORDINO_TRAINING_GRADIENT_NOISE_H_
