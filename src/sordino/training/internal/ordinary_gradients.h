// Gradients of training without privacy, for comparisons.
#ifndef SORDINO_TRAINING_INTERNAL_ORDINARY_GRADIENTS_H_
#define SORDINO_TRAINING_INTERNAL_ORDINARY_GRADIENTS_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "sordino/distributed/communicator.h"
#include "sordino/gradients/loss_function.h"

namespace sordino {

// Of the sum of the losses divided by `divisor`, of each parameter; zeros where the batch is empty.
// At most `part` examples are in memory at once; 0: all of them.
std::vector<at::Tensor> OrdinaryGradients(const LossFunction& losses, const Batch& batch,
                                          const std::vector<NamedParameter>& parameters,
                                          std::int64_t divisor, std::int64_t part);

// Collective: this rank's shard (gradients/fixed_point_sum.h) of the sum over all ranks, on the
// CPU. It is exact to 2^-61 of the largest gradient, and the order of the ranks does not show.
// Throws Error on all ranks where one has a gradient that is not finite.
at::Tensor ShardOfSum(const std::vector<at::Tensor>& gradients, Communicator& communicator);

}  // namespace sordino

#endif  // SORDINO_TRAINING_INTERNAL_ORDINARY_GRADIENTS_H_
