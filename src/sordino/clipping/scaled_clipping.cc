#include "sordino/clipping/scaled_clipping.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/addcmul.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/zeros_like.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "sordino/base/check.h"
#include "sordino/base/error.h"
#include "sordino/gradients/saved_tensors.h"

namespace sordino {
namespace {

// In a checkpoint: "clip.mean.fc.weight".
std::string TrackedKey(std::string_view tracked, const NamedParameter& parameter) {
  return fmt::format("clip.{}.{}", tracked, parameter.name);
}

}  // namespace

ScaledClipping::ScaledClipping(std::string name, const std::vector<NamedParameter>& parameters,
                               ClipNorm bound)
    : name_(std::move(name)), bound_(bound.value()), below_({BelowBound(bound_)}) {
  for (const NamedParameter& parameter : parameters) {
    if (!parameter.value.requires_grad()) continue;
    const at::ScalarType type =
        parameter.value.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
    const at::Tensor like = parameter.value.detach();
    transform_.centre.push_back(at::zeros_like(like, like.options().dtype(type)));
    transform_.scale.push_back(at::ones_like(like, like.options().dtype(type)));
  }
  if (transform_.scale.empty()) {
    throw Error(name_ + " was given " + std::to_string(parameters.size()) +
                " parameters of which none requires a gradient; pass the parameters that are "
                "trained.");
  }
}

void ScaledClipping::SetBound(ClipNorm bound) {
  if (bound.value() == bound_) return;
  bound_ = bound.value();
  below_ = GroupColumn({BelowBound(bound_)});
}

std::vector<std::int64_t> ScaledClipping::Groups(
    const std::vector<NamedParameter>& parameters) const {
  if (parameters.size() != transform_.scale.size()) {
    throw Error(name_ + " was made for " + std::to_string(transform_.scale.size()) +
                " parameters and " + std::to_string(parameters.size()) +
                " are clipped; make it from the parameters that are clipped.");
  }
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i].value.sizes() != transform_.scale[i].sizes()) {
      throw Error("parameter '" + parameters[i].name + "' has another shape than the one that " +
                  name_ +
                  " was made for; make it from the parameters that are clipped, in their order.");
    }
  }
  return ClippingGroups::Flat().Assign(parameters);
}

at::Tensor ScaledClipping::Factors(const at::Tensor& norms) const {
  return FactorsToBound(below_, norms);
}

std::vector<double> ScaledClipping::Bounds() const { return {bound_}; }

void ScaledClipping::CheckShapes(const NoisedGradients& mean) const {
  SORDINO_CHECK(mean.value().size() == transform_.scale.size(), "one tensor for each parameter");
  for (std::size_t i = 0; i < transform_.scale.size(); ++i) {
    SORDINO_CHECK(mean.value()[i].sizes() == transform_.scale[i].sizes(),
                  "a noised mean has the shape of its parameter");
  }
}

NoisedGradients ScaledClipping::ToGradients(const NoisedGradients& mean) const {
  CheckShapes(mean);
  std::vector<at::Tensor> gradients;
  gradients.reserve(transform_.scale.size());
  double least = kInfinity;
  for (std::size_t i = 0; i < transform_.scale.size(); ++i) {
    const at::Tensor& scale = transform_.scale[i];
    gradients.push_back(at::addcmul(transform_.centre[i], scale, mean.value()[i]));
    if (scale.numel() == 0) continue;
    least = std::min(least, scale.min().item<double>());
  }
  return NoisedGradients(std::move(gradients),
                         mean.standard_deviation() * (least == kInfinity ? 1 : least));
}

void ScaledClipping::CheckSaved(const std::vector<std::vector<at::Tensor>>& saved) const {
  const std::vector<Tracked> own = tracked();
  bool fits = saved.size() == own.size();
  for (std::size_t k = 0; fits && k < own.size(); ++k) {
    fits = saved[k].size() == own[k].values->size();
    for (std::size_t i = 0; fits && i < saved[k].size(); ++i) {
      const at::Tensor& like = (*own[k].values)[i];
      fits = saved[k][i].sizes() == like.sizes() && saved[k][i].scalar_type() == like.scalar_type();
    }
  }
  if (fits) return;
  throw Error(
      "what " + name_ +
      " saved is not of these parameters; resume with the model of the run that was saved.");
}

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
