// The discrete Laplace (two-sided geometric): P(x) proportional to exp(-|x| / scale) on the
// integers.
//
// Added to an integer query of L1 sensitivity D it gives pure (D / scale)-DP (Ghosh, Roughgarden,
// Sundararajan, "Universally Utility-Maximizing Privacy Mechanisms", 2009).
//
// scale is in [1/64, 2^40]. The variance is 1 / (2 sinh^2(1 / (2 scale))), nearly 2 scale^2.
//
// Draws are exact, the tail included, so TotalVariationBound() is zero and a pure guarantee stays
// pure. The magnitude is U + T V with T at least 26 scales: U in [0, T) comes from an envelope
// (internal/envelope.h) and V, the number of whole periods, from independent exact coins of
// probability exp(-T / scale); the product exp(-U / scale) exp(-T / scale)^V is exp(-|x| / scale).
//
// Timing: as discrete_gaussian.h says, with 5 to 10% of the candidates needing an exponential. A
// magnitude above T (probability at most exp(-26) < 2^-37) takes visibly longer.
#ifndef SORDINO_RANDOM_DISCRETE_LAPLACE_H_
#define SORDINO_RANDOM_DISCRETE_LAPLACE_H_

#include <cstdint>
#include <memory>
#include <span>

#include "sordino/random/generator.h"

namespace sordino {

namespace internal {
class EnvelopeSampler;
}

// Immutable once built: copies share the table and any number of threads may draw, each with its
// own generator.
class DiscreteLaplace {
 public:
  static constexpr double kMinScale = 0x1p-6;
  static constexpr double kMaxScale = 0x1p40;

  // Throws Error when scale is outside [1/64, 2^40].
  explicit DiscreteLaplace(double scale);

  double scale() const { return scale_; }

  std::int64_t operator()(Generator& generator) const;
  void Fill(Generator& generator, std::span<std::int64_t> out) const;

  // Distance in total variation between one draw and the discrete Laplace.
  static constexpr double TotalVariationBound() { return 0; }

 private:
  double scale_;
  std::shared_ptr<const internal::EnvelopeSampler> sampler_;
};

}  // namespace sordino

#endif  // SORDINO_RANDOM_DISCRETE_LAPLACE_H_
