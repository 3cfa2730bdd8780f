// The sum of clipped gradients together with the bound on what one record can change in it.
//
// The noise step of training takes a BoundedSum and nothing else, and only a ClippingPolicy and
// the Clipper make one: a sum cannot be noised for a sensitivity that is not its own.
#ifndef SORDINO_GRADIENTS_BOUNDED_SUM_H_
#define SORDINO_GRADIENTS_BOUNDED_SUM_H_

#include <ATen/core/Tensor.h>

#include <vector>

#include "sordino/base/quantity.h"
#include "sordino/gradients/private_value.h"

namespace sordino {

struct BoundedSum {
  // One tensor for each parameter, in the order and shape of the parameters; float32 at least.
  std::vector<at::Tensor> gradients;
  // L2 distance between the sums of two neighbouring batches over all gradients, rounding
  // included.
  L2Sensitivity sensitivity{0};
  Adjacency adjacency = Adjacency::kAddRemove;
  // How many examples of the batch had a norm above the bound of the clipping group, or none that
  // is finite; [groups], never printed.
  PrivateValue<at::Tensor> clipped;
  // ClippingPolicy::Counts of the batch, for the noise step of an adaptive policy; an undefined
  // tensor and 0 for every other policy. The counts and the gradients are released together and
  // share one noise multiplier (adaptive_clipping.h, GradientNoiseMultiplier).
  PrivateValue<at::Tensor> counts;
  L2Sensitivity count_sensitivity{0};
};

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_BOUNDED_SUM_H_
