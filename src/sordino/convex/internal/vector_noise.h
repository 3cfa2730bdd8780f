// Noise on a vector that was computed in floating point: rounded to a grid, integer noise added
// (random/grid_noise.h).
//
// The grid moves two neighbouring vectors of d entries apart by at most g sqrt(d) in L2 and g d in
// L1; the noise is of scale multiplier (sensitivity + that), rounded up, so the multiplier of the
// event is never less than what is named.
#ifndef SORDINO_CONVEX_INTERNAL_VECTOR_NOISE_H_
#define SORDINO_CONVEX_INTERNAL_VECTOR_NOISE_H_

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "sordino/random/generator.h"

namespace sordino::internal {

struct NoisedVector {
  at::Tensor value;      // in the shape of what was given
  double scale = 0;      // standard deviation, or the scale of Laplace noise
  double deviation = 0;  // standard deviation of either
};

// sensitivity: L2.
NoisedVector AddGaussianNoise(const at::Tensor& value, double sensitivity, double multiplier,
                              Generator& generator);
// sensitivity: L1.
NoisedVector AddLaplaceNoise(const at::Tensor& value, double sensitivity, double multiplier,
                             Generator& generator);

// How far in total variation so many draws are from Gaussian noise; Laplace noise is exact.
double GaussianFailure(double draws);

}  // namespace sordino::internal

#endif  // SORDINO_CONVEX_INTERNAL_VECTOR_NOISE_H_
