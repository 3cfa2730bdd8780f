// What the saved state of a trainer holds, beside what the clipping policy and others add: the
// optimizer, the parameters and the number of updates.
#ifndef SORDINO_TRAINING_INTERNAL_TRAINER_STATE_H_
#define SORDINO_TRAINING_INTERNAL_TRAINER_STATE_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "sordino/gradients/named_tensors.h"
#include "sordino/gradients/saved_tensors.h"
#include "sordino/training/privacy_plan.h"

namespace sordino::internal {

inline constexpr const char* kUpdates = "updates";

void AppendParameters(const std::vector<NamedParameter>& parameters, std::int64_t updates,
                      NamedTensors& state);

// Throws Error where a trainer cannot take the state of step `steps_done`.
void CheckRestorable(bool has_begun, std::int64_t steps_done, const PrivacyPlan& plan);

struct StateParts {
  NamedTensors of_optimizer;
  NamedTensors own;
};

StateParts SplitState(const NamedTensors& state);

// In the order of the parameters.
std::vector<at::Tensor> TakeParameters(const std::vector<NamedParameter>& parameters,
                                       SavedTensors& saved);

}  // namespace sordino::internal

#endif  // SORDINO_TRAINING_INTERNAL_TRAINER_STATE_H_
