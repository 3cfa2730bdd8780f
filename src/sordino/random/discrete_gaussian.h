// The discrete Gaussian: P(x) proportional to exp(-x^2 / (2 sigma^2)) on the integers.
//
// Added to an integer query of L2 sensitivity D it gives (D^2 / (2 sigma^2))-zCDP, like the
// continuous Gaussian (Canonne, Kamath, Steinke, "The Discrete Gaussian for Differential
// Privacy", arXiv 2004.00010, Theorem 4), and it has no low bits of floating-point noise to leak.
//
// sigma is the parameter of the density, in [0.5, 2^40]. The standard deviation is below sigma by a
// relative 4 pi^2 sigma^2 exp(-2 pi^2 sigma^2) at most: 7.3% at sigma 0.5, 1e-7 at 1, nothing
// above.
//
// How far from the distribution. Draws are exact (internal/envelope.h) except for the tail: values
// of magnitude 13 sigma or more may be missing. Its probability is at most 2 exp(-13^2 / 2) <
// 2^-120: the moment generating function is at most exp(s^2 sigma^2 / 2), because the sum of
// exp(-(x - c)^2 / (2 sigma^2)) over the integers is largest at c = 0 (Poisson summation), and
// Chernoff's bound follows. Leaving the tail out moves the distribution by its probability in total
// variation. TotalVariationBound() is this figure for one draw; n draws move a release by at most n
// times as much.
//
// Timing. How many candidates a rejection sampler needs is independent of the values that it
// accepts, so the number of rounds tells nothing. One value is the first accepted of seventeen
// candidates that are all examined alike; Fill examines up to 1024 at a time. Not constant: 2 to
// 4% of the candidates, more of them near sigma than near 0, need an exponential, and one in 2^30
// arithmetic of many digits. An observer who can time a call to nanoseconds learns the number of
// exponentials over all its candidates, those thrown away included: little about one value, but
// not nothing. Where that matters, draw in bulk before the data is touched.
#ifndef SORDINO_RANDOM_DISCRETE_GAUSSIAN_H_
#define SORDINO_RANDOM_DISCRETE_GAUSSIAN_H_

#include <cstdint>
#include <memory>
#include <span>

#include "sordino/random/generator.h"

namespace sordino {

namespace internal {
class EnvelopeSampler;
}

// Immutable once built (about 10 microseconds, 8 KiB): copies share the table and any number of
// threads may draw, each with its own generator.
class DiscreteGaussian {
 public:
  static constexpr double kMinSigma = 0.5;
  static constexpr double kMaxSigma = 0x1p40;

  // Throws Error when sigma is outside [0.5, 2^40].
  explicit DiscreteGaussian(double sigma);

  double sigma() const { return sigma_; }

  std::int64_t operator()(Generator& generator) const;
  void Fill(Generator& generator, std::span<std::int64_t> out) const;

  // No draw exceeds this in magnitude.
  std::int64_t LargestMagnitude() const;

  // Distance in total variation between one draw and the discrete Gaussian.
  static constexpr double TotalVariationBound() { return 0x1p-120; }

 private:
  double sigma_;
  std::shared_ptr<const internal::EnvelopeSampler> sampler_;
};

}  // namespace sordino

#endif  // SORDINO_RANDOM_DISCRETE_GAUSSIAN_H_
