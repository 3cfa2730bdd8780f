// One value of the noise step, for the processor and for GPUs (gradient_noise.h has the mechanism).
#ifndef SORDINO_KERNELS_GRID_STEP_H_
#define SORDINO_KERNELS_GRID_STEP_H_

#include <cstdint>

#include "sordino/base/device_function.h"

namespace sordino::internal {

inline constexpr int kFinerBits = 10;          // draws are this much finer than the finest grid
inline constexpr double kSaturation = 0x1p50;  // of values, in steps

struct GridStep {
  double steps_per_unit;  // 1 / granularity
  double value_of_step;   // granularity / divisor
  int finer_bits;         // of the draws, at least kFinerBits
};

// A draw in steps of the grid, to the nearest.
SORDINO_DEVICE constexpr std::int64_t RoundedSteps(std::int64_t finer, int finer_bits) {
  return (finer + (std::int64_t{1} << (finer_bits - 1))) >> finer_bits;
}

// A value of the sum in steps of the grid: the nearest whole number, ties to even, saturated; NaN
// counts as 0.
SORDINO_DEVICE constexpr double StepsOf(double value, double steps_per_unit) {
  double steps = value * steps_per_unit;
  if (!(steps == steps)) steps = 0;
  if (steps > kSaturation) steps = kSaturation;
  if (steps < -kSaturation) steps = -kSaturation;
  // Doubles of this size have no digits after the point.
  constexpr double kRounding = 0x1.8p52;
  return (steps + kRounding) - kRounding;
}

// What is released of a value, given its noise in steps. All but the last product is whole numbers
// below 2^53: exact.
SORDINO_DEVICE constexpr double NoisedValueOf(double value, std::int64_t noise,
                                              const GridStep& step) {
  return (StepsOf(value, step.steps_per_unit) + static_cast<double>(noise)) * step.value_of_step;
}

}  // namespace sordino::internal

#endif  // SORDINO_KERNELS_GRID_STEP_H_
