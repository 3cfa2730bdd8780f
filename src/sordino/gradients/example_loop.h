// The reference: gradients by one forward and one backward pass for each example.
//
// Nothing is read off a graph and no formula of any layer is used: every example (or micro-batch)
// goes through the loss function alone (isolation.h), ordinary autograd gives its gradient, and
// norms and sums are taken of that gradient in float64. Slow, exact, and right for every model
// whose loss of one example can be computed alone; what the tape computes is compared with it.
#ifndef SORDINO_GRADIENTS_EXAMPLE_LOOP_H_
#define SORDINO_GRADIENTS_EXAMPLE_LOOP_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "sordino/gradients/clipping_policy.h"
#include "sordino/gradients/loss_function.h"

namespace sordino {

// Throws Error unless `losses` holds one floating-point value for each example: shape [examples].
void CheckLosses(const at::Tensor& losses, std::int64_t examples);

// The gradient of the mean of the losses of `slice` (one example, or one micro-batch) with respect
// to each parameter: dense, in its shape, float64 for float64 parameters and else float32. Zeros
// for a parameter that the losses do not reach, and for all when the slice is empty.
std::vector<at::Tensor> GradientOfExamples(const LossFunction& loss, const Batch& slice,
                                           const std::vector<NamedParameter>& parameters);

// A unit is what is clipped together: micro_batch consecutive examples, the last one fewer when
// the batch is no multiple. Its gradient is the sum over its examples divided by micro_batch (also
// in the last one, whose examples would else weigh more than others).
struct LoopResult {
  // sum_u factors[group(p), u] * g_u for each parameter p, where g_u is (g_u - centre) / scale
  // when the policy has a transform. Accumulated in float64; dtype as of GradientOfExamples, or
  // float64 where it was to be `wide`.
  std::vector<at::Tensor> sum;
  at::Tensor norms;    // [groups, units], float64
  at::Tensor factors;  // [groups, units], float64: those applied
};

// A unit with a norm that is not finite in any group contributes zero in all groups: its factors
// are 0. The policy is asked unit by unit, so that no factor can depend on another unit.
LoopResult LoopClippedSum(const LossFunction& loss, const Batch& batch,
                          const std::vector<NamedParameter>& parameters,
                          const ClippingPolicy& policy, std::int64_t micro_batch = 1,
                          bool wide = false);

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_EXAMPLE_LOOP_H_
