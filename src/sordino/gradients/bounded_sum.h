// The sum of clipped gradients together with the bound on what one record can change in it.
//
// The noise step of training takes a BoundedSum and nothing else. Its constructor is private, and
// those that clip are its only friends; no field can be changed afterwards. So a sum cannot be
// noised for a sensitivity that is not its own (tests/compile_fail/forged_bounded_sum.cc,
// changed_sensitivity.cc).
#ifndef SORDINO_GRADIENTS_BOUNDED_SUM_H_
#define SORDINO_GRADIENTS_BOUNDED_SUM_H_

#include <ATen/core/Tensor.h>

#include <utility>
#include <vector>

#include "sordino/base/quantity.h"
#include "sordino/gradients/loss_function.h"
#include "sordino/gradients/private_value.h"

namespace sordino {

class ClippingPolicy;
class JlDirections;
struct JlOptions;
struct JlResult;

// The fields of a BoundedSum while they are computed.
struct SumParts {
  std::vector<at::Tensor> gradients;
  std::vector<at::ScalarType> noised_types = {};  // none: those of the gradients
  L2Sensitivity sensitivity{0};
  Adjacency adjacency = Adjacency::kAddRemove;
  PrivateValue<at::Tensor> clipped{};
  PrivateValue<at::Tensor> counts{};
  L2Sensitivity count_sensitivity{0};
};

class BoundedSum {
 public:
  // One tensor for each parameter, in the order and shape of the parameters; float32 at least, and
  // float64 for large batches.
  const std::vector<at::Tensor> gradients;
  // What each is rounded to once it has noise: the type of its parameter, float32 at least.
  const std::vector<at::ScalarType> noised_types;
  // L2 distance between the sums of two neighbouring batches over all gradients, rounding
  // included.
  const L2Sensitivity sensitivity;
  const Adjacency adjacency;
  // How many examples of the batch had a norm above the bound of the clipping group, or none that
  // is finite; [groups], never printed.
  const PrivateValue<at::Tensor> clipped;
  // ClippingPolicy::Counts of the batch, for the noise step of an adaptive policy; an undefined
  // tensor and 0 for every other policy. The counts and the gradients are released together and
  // share one noise multiplier (clipping/adaptive.h, GradientNoiseMultiplier).
  const PrivateValue<at::Tensor> counts;
  const L2Sensitivity count_sensitivity;

 private:
  friend class Clipper;
  friend class FixedPointSum;
  friend JlResult JlClippedSum(const LossFunction& loss, const Batch& batch,
                               const std::vector<NamedParameter>& parameters,
                               const ClippingPolicy& policy, const JlOptions& options,
                               const JlDirections& directions);
  friend class TestForgery;  // testing/forged_values.h, which is not installed

  explicit BoundedSum(SumParts parts)
      : gradients(std::move(parts.gradients)),
        noised_types(parts.noised_types.empty() ? TypesOf(gradients)
                                                : std::move(parts.noised_types)),
        sensitivity(parts.sensitivity),
        adjacency(parts.adjacency),
        clipped(std::move(parts.clipped)),
        counts(std::move(parts.counts)),
        count_sensitivity(parts.count_sensitivity) {}

  static std::vector<at::ScalarType> TypesOf(const std::vector<at::Tensor>& tensors) {
    std::vector<at::ScalarType> types;
    types.reserve(tensors.size());
    for (const at::Tensor& tensor : tensors) types.push_back(tensor.scalar_type());
    return types;
  }
};

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_BOUNDED_SUM_H_
