#include "sordino/training/internal/trainer_state.h"

#include <ATen/ops/scalar_tensor.h>
#include <fmt/format.h>

#include "sordino/base/error.h"

namespace sordino::internal {
namespace {

constexpr const char* kParameterPrefix = "parameter.";

}  // namespace

void AppendParameters(const std::vector<NamedParameter>& parameters, std::int64_t updates,
                      NamedTensors& state) {
  for (const NamedParameter& parameter : parameters) {
    state.emplace_back(kParameterPrefix + parameter.name, CopyToCpu(parameter.value));
  }
  state.emplace_back(kUpdates, at::scalar_tensor(updates, at::kLong));
}

void CheckRestorable(bool has_begun, std::int64_t steps_done, const PrivacyPlan& plan) {
  if (has_begun) {
    throw Error(
        "a saved state was given to a trainer that has begun; give it to a new one, before its "
        "first step.");
  }
  if (steps_done < 0 || steps_done > plan.steps()) {
    throw Error(
        fmt::format("the saved state is that of step {} and the plan has {} steps; resume with the "
                    "plan of the run that was saved.",
                    steps_done, plan.steps()));
  }
}

StateParts SplitState(const NamedTensors& state) {
  StateParts parts;
  for (const auto& entry : state) {
    const bool is_optimizers =
        entry.first.starts_with("optimizer.") || entry.first.starts_with("average.");
    (is_optimizers ? parts.of_optimizer : parts.own).push_back(entry);
  }
  return parts;
}

std::vector<at::Tensor> TakeParameters(const std::vector<NamedParameter>& parameters,
                                       SavedTensors& saved) {
  std::vector<at::Tensor> values;
  values.reserve(parameters.size());
  for (const NamedParameter& parameter : parameters) {
    values.push_back(saved.Take(kParameterPrefix + parameter.name, parameter.value.sizes(),
                                parameter.value.scalar_type()));
  }
  return values;
}

}  // namespace sordino::internal
