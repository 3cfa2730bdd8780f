// The noise step: from a bounded sum to gradients that an optimizer may see.
//
// Noise is drawn and added on an integer grid and the result is scaled by a power of two, so its
// low bits tell nothing about the value under it (threats: arXiv 2112.05307). With the unit U of
// the noise multiplier z (privacy_plan.h), d coordinates and granularity g = 2^k:
//
//   scale  s = z (u U + r g),  2^29 <= s / g < 2^30
//
// u and r are the units of the noise (noise_component.h): 1 and sqrt(d) for Gaussian noise, whose
// scale is its standard deviation, sqrt(d) and d for Laplace noise. The term with g is what
// rounding to the grid may move two neighbouring sums apart: g / 2 each in every coordinate. Values
// are saturated at 2^50 steps, which moves no two of them apart. Where the noise is so small that
// this would cut a sum of the largest batch, the grid is coarser by the bits that it takes, and s /
// g smaller.
//
// Canaries (training/canaries.h) are records whose gradient is one coordinate. They are added in
// whole steps of the grid, cut off towards 0: exact, so that they move no two sums of neighbouring
// data apart, and one canary moves a sum by no more than its value.
//
// Draws are 2^10 times finer than the grid, or by the bits more that it is coarser, and rounded to
// it, which is post-processing: their scale is from 2^39 to 2^40 of their own steps on any grid.
// The scales, the draws and their distance from what is accounted are those of a NoiseComponent:
// its file has the argument. For a sum on a CUDA device they are drawn there, from a stream of its
// own (device_noise.h), where the build and the kind of noise can.
#ifndef SORDINO_NOISE_GRADIENT_NOISE_H_
#define SORDINO_NOISE_GRADIENT_NOISE_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <span>

#include "sordino/base/quantity.h"
#include "sordino/gradients/bounded_sum.h"
#include "sordino/gradients/fixed_point_sum.h"
#include "sordino/gradients/noised_value.h"
#include "sordino/noise/noise_component.h"
#include "sordino/random/random_source.h"

namespace sordino {

// The stream of noise is that of the block of so many coordinates, counted over all parameters.
inline constexpr std::int64_t kNoiseBlock = std::int64_t{1} << 16;

// The grid that noise of multiplier z is added on, for a unit U and d coordinates.
struct NoiseGrid {
  double scale = 0;        // s, in the unit of the sum
  double granularity = 0;  // g
  int finer_bits = 0;      // draws are 2^finer_bits times finer
};
// `rounding` is what moves two neighbouring sums apart, in units of r g; `largest` the size of a
// coordinate of a sum that is not to be cut off. Throws Error when z r is so large that rounding
// takes over, and when the noise is less than a step of a grid for the largest sum.
NoiseGrid ChooseNoiseGrid(const NoiseComponent& kind, NoiseMultiplier noise, L2Sensitivity unit,
                          std::int64_t coordinates, double rounding = 1, double largest = 0);

// A gradient that is 0 but for one coordinate, counted over all parameters.
struct Dirac {
  std::int64_t coordinate = 0;
  double value = 0;
};

// The draws of a step before they are rounded to its grid.
struct StepDraws {
  at::Tensor draws;  // int64, in 2^-10 steps of the grid; of the coordinates of this process
  double scale = 0;  // of a draw
  std::int64_t step = 0;
  // Those of an earlier step, of this scale. Stops the program for a source that is private.
  std::function<at::Tensor(std::int64_t step, double scale)> draw_again;
};

struct StepNoise {
  const NoiseComponent* kind = &GaussianNoise();
  NoiseMultiplier multiplier{1};
  // The unit of the multiplier over the sensitivity of the sum: 1, or 1/2 where the event's unit is
  // half the distance of neighbours (Poisson sampling under replace-one).
  double unit_share = 1;
  double divisor = 1;  // the declared batch size
  // No sum of a declared batch is larger than so many times its sensitivity; 0: not known.
  double largest_batch = 0;
  std::int64_t step = 0;
  // Canaries of the batch; none of them is larger than the sensitivity of the sum.
  std::span<const Dirac> canaries = {};
  // What remembering earlier steps adds to the rounding of a sum, as a norm over the steps, in
  // units of the last digit of draws (noise_process.h); 0: nothing is remembered.
  double remembered = 0;
  // Where somebody else makes the noise, in steps of the grid, whole numbers in doubles.
  std::function<at::Tensor(const NoiseGrid& grid, std::int64_t coordinates)> steps = {};
  // Adds to the draws, in place, what earlier steps leave to this one; empty: nothing.
  std::function<void(const StepDraws& now)> earlier = {};
};

// The scale of draws, in units of their last digit.
double ScaleOfDraws(const NoiseGrid& grid);

// The grid of the noise of a step on sums of this sensitivity.
NoiseGrid StepGrid(const StepNoise& noise, L2Sensitivity sensitivity, std::int64_t coordinates);

// The sum with noise, divided: the gradients for the optimizer, in the shapes of the sum and of the
// types that it names, on its device. standard_deviation() of the result is that of one
// coordinate after the division.
NoisedGradients AddNoise(const BoundedSum& sum, const StepNoise& noise, RandomSource& source);

// The same for a part of a sum of several processes, each of which has another part. The result is
// one tensor, the part, in the type of the gradients. Its steps are rounded to the grid of the
// noise as integers. Noise of a coordinate depends on its place in the whole sum: parts of any size
// from equal streams are those of one vector. The source of each process is its own, and what it
// gives for other coordinates is not used. Of the canaries those of this part are added.
NoisedGradients AddNoise(const FixedPointShard& shard, const StepNoise& noise,
                         RandomSource& source);

// The counts of an adaptive policy with noise of standard deviation count_noise (not divided).
NoisedCounts AddCountNoise(const BoundedSum& sum, double count_noise, std::int64_t step,
                           RandomSource& source);

}  // namespace sordino

#endif  // SORDINO_NOISE_GRADIENT_NOISE_H_
