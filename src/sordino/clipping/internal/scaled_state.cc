#include "sordino/clipping/internal/scaled_state.h"

#include <fmt/format.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "sordino/gradients/saved_tensors.h"

namespace sordino {
namespace {

// In a checkpoint: "clip.mean.fc.weight".
std::string TrackedKey(std::string_view tracked, const NamedParameter& parameter) {
  return fmt::format("clip.{}.{}", tracked, parameter.name);
}

}  // namespace

ScaledClippingState::ScaledClippingState(std::vector<NamedParameter> parameters,
                                         std::unique_ptr<ScaledClipping> policy)
    : parameters_(std::move(parameters)), policy_(std::move(policy)) {}

const ClippingPolicy& ScaledClippingState::StepPolicy(ClipNorm clip) {
  policy_->SetBound(clip);
  return *policy_;
}

NoisedGradients ScaledClippingState::AfterNoise(NoisedGradients mean, const BoundedSum& /*sum*/,
                                                std::int64_t /*step*/, RandomSource& /*random*/) {
  NoisedGradients gradients = policy_->ToGradients(mean);
  policy_->Update(mean);
  return gradients;
}

NamedTensors ScaledClippingState::Save() const {
  NamedTensors state;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    for (const ScaledClipping::Tracked& tracked : policy_->tracked()) {
      state.emplace_back(TrackedKey(tracked.name, parameters_[i]), CopyToCpu((*tracked.values)[i]));
    }
  }
  return state;
}

void ScaledClippingState::Restore(SavedTensors& saved) {
  const std::vector<ScaledClipping::Tracked> tracked = policy_->tracked();
  std::vector<std::vector<at::Tensor>> values(tracked.size());
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    for (std::size_t k = 0; k < tracked.size(); ++k) {
      const at::Tensor& like = (*tracked[k].values)[i];
      values[k].push_back(saved.Take(TrackedKey(tracked[k].name, parameters_[i]), like.sizes(),
                                     like.scalar_type()));
    }
  }
  policy_->Restore(values);
}

}  // namespace sordino
