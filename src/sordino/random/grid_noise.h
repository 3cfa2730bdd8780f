// Gaussian and Laplace noise of a real scale on a power-of-two grid.
//
// Continuous noise does not exist in floating point: its low bits tell the value under it
// (Mironov, "On significance of the least significant bits for differential privacy", 2012;
// arXiv 2112.05307). Here the value is rounded to a multiple of the granularity g = 2^k, integer
// noise of exactly scale / g is added in integers, and the sum is multiplied by g. The result is
// a function of an integer release, so the guarantee of the discrete mechanism
// (discrete_gaussian.h, discrete_laplace.h) carries over word for word.
//
// What rounding costs. A value moves by at most RoundingError() = g / 2, so the values of two
// neighbouring datasets move apart by at most g in each coordinate. Enlarged(sensitivity, d)
// gives the sensitivity of the rounded query in d dimensions, rounded upwards:
//   L2: sensitivity + g sqrt(d)        L1: sensitivity + g d
// and it is this that noise is calibrated to and that is accounted.
//
// Granularity. kDouble: the scale is between 2^39 and 2^40 steps, so the enlargement is below
// 2^-39 sqrt(d) scales; for releases. kFloat: between 2^19 and 2^20 steps (Gaussian) or 2^17 and
// 2^18 (Laplace), so that every noise value is a float without rounding; for training. A float
// addition of a gridded value and a gridded noise is the exact sum, rounded: a function of the
// integer release too, so it may be done anywhere (also on a device) once the value was rounded
// to the grid.
//
// scale: (standard deviation or Laplace scale, in the unit of the values) in [2^-900, 2^900] for
// kDouble and [2^-100, 2^100] for kFloat. The timing of the samplers is told in their headers;
// rounding, adding and scaling take constant time.
#ifndef SORDINO_RANDOM_GRID_NOISE_H_
#define SORDINO_RANDOM_GRID_NOISE_H_

#include <cstdint>
#include <span>

#include "sordino/base/quantity.h"
#include "sordino/random/discrete_gaussian.h"
#include "sordino/random/discrete_laplace.h"
#include "sordino/random/generator.h"

namespace sordino {

enum class GridPrecision : std::uint8_t { kFloat, kDouble };

// The multiples of 2^exponent.
class Grid {
 public:
  explicit Grid(int exponent);

  double Granularity() const { return step_; }
  double RoundingError() const { return step_ / 2; }

  // The nearest multiple, in steps. Saturates at 2^62 steps, which moves no two values apart; NaN
  // counts as 0, because refusing it would tell that it was there.
  std::int64_t Round(double value) const;
  double Value(std::int64_t steps) const { return static_cast<double>(steps) * step_; }

  L1Sensitivity Enlarged(L1Sensitivity sensitivity, std::uint64_t dimension) const;
  L2Sensitivity Enlarged(L2Sensitivity sensitivity, std::uint64_t dimension) const;

 private:
  double step_;
  double steps_per_unit_;
};

// Sampler is DiscreteGaussian or DiscreteLaplace; see the two names below.
template <typename Sampler>
class GridNoise {
 public:
  // Throws Error when the scale is out of range.
  explicit GridNoise(double scale, GridPrecision precision = GridPrecision::kDouble);

  double scale() const { return scale_; }
  const Grid& grid() const { return grid_; }
  const Sampler& sampler() const { return sampler_; }
  double Granularity() const { return grid_.Granularity(); }
  double RoundingError() const { return grid_.RoundingError(); }

  // The value, rounded to the grid, with noise.
  double AddTo(Generator& generator, double value) const;
  void AddTo(Generator& generator, std::span<double> values) const;
  void AddTo(Generator& generator, std::span<float> values) const;

  // Noise alone. Floats need kFloat (Error otherwise): a finer grid would be rounded away.
  void Fill(Generator& generator, std::span<double> out) const;
  void Fill(Generator& generator, std::span<float> out) const;

  // Distance in total variation from the exact discrete distribution, for one value. A Laplace
  // float above 2^24 steps (probability below 2^-92) is rounded and not counted here.
  static constexpr double TotalVariationBound() { return Sampler::TotalVariationBound(); }

 private:
  double scale_;
  GridPrecision precision_;
  Grid grid_;
  Sampler sampler_;
};

using GridGaussian = GridNoise<DiscreteGaussian>;  // scale: standard deviation
using GridLaplace = GridNoise<DiscreteLaplace>;    // scale: b of exp(-|x| / b) / (2 b)

extern template class GridNoise<DiscreteGaussian>;
extern template class GridNoise<DiscreteLaplace>;

}  // namespace sordino

#endif  // SORDINO_RANDOM_GRID_NOISE_H_
