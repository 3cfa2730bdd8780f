// Whether a model means the same for an example that is alone as for one in a batch.
//
// Isolation (isolation.h) makes every model one of single examples. A model that was written to mix
// the examples of a batch (batch statistics, a loss over pairs) would silently become another one.
// So the losses of the isolated pass are compared with those of an ordinary one, with the same
// random numbers, and where they differ the operation that makes the difference is named. This is a
// service for whoever wrote the model; no guarantee rests on it.
#ifndef SORDINO_GRADIENTS_INTERNAL_ISOLATION_OPERATION_COMPARISON_H_
#define SORDINO_GRADIENTS_INTERNAL_ISOLATION_OPERATION_COMPARISON_H_

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "sordino/gradients/internal/isolation/isolation.h"
#include "sordino/gradients/loss_function.h"

namespace sordino {

// Throws DifferentValues when the losses differ by more than rounding. A model whose random numbers
// fall in another order in a batch cannot be compared after them, and passes. The generators are
// left as `states` has them. `known` are the losses of an isolated pass of the batch that began
// with other random numbers, or undefined.
void CompareWithJoint(const LossFunction& loss, const Batch& batch, std::int64_t units,
                      const GeneratorStates& states, const at::Tensor& known = {});

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_INTERNAL_ISOLATION_OPERATION_COMPARISON_H_
