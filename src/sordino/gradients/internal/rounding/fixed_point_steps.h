// Values as whole steps of a grid (fixed_point_sum.h).
#ifndef SORDINO_GRADIENTS_INTERNAL_ROUNDING_FIXED_POINT_STEPS_H_
#define SORDINO_GRADIENTS_INTERNAL_ROUNDING_FIXED_POINT_STEPS_H_

#include <ATen/core/Tensor.h>

namespace sordino {

// Adds the values, flat, to `steps` (int64, on the same device) as whole numbers of `granularity`,
// a power of two: to the nearest, halves to even, cut off at `most` steps; what is not a number
// is 0.
void AddSteps(const at::Tensor& values, double granularity, double most, const at::Tensor& steps);
// The same numbers by operations of libtorch, for values that a loop of the CPU cannot read: on
// another device, or of another type than float32 and float64.
void AddStepsByTensors(const at::Tensor& values, double granularity, double most,
                       const at::Tensor& steps);

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_INTERNAL_ROUNDING_FIXED_POINT_STEPS_H_
