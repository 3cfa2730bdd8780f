#include "sordino/gradients/internal/isolation/units_group_norm.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/group_norm.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/functions/utils.h>

#include <memory>
#include <mutex>

#include "sordino/gradients/internal/isolation/isolated_units.h"

namespace sordino {
namespace {

namespace ag = torch::autograd;
using NormSlot = UnitsGroupNormBackward::Slot;
using isolated::HasForwardDerivative;

}  // namespace

GroupNormGradients UnitsGroupNormBackward::GradientsOfImages(const at::Tensor& gradient) {
  if (asked_.defined() && asked_.is_same(gradient)) return answer_;
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  asked_ = gradient;
  answer_ = DeviceGroupNormGradients(gradient, input_.unpack(), mean_, deviation_, scale_.unpack());
  return answer_;
}

ag::variable_list UnitsGroupNormBackward::apply(ag::variable_list&& gradients) {
  const std::lock_guard<std::mutex> lock(mutex_);
  ag::variable_list result(NormSlot::kSlots);
  if (!gradients[0].defined()) return result;
  if (at::GradMode::is_enabled()) return Differentiable(gradients[0]);
  GroupNormGradients found = GradientsOfImages(gradients[0]);
  asked_.reset();
  answer_ = {};
  if (task_should_compute_output(NormSlot::kInput)) result[NormSlot::kInput] = found.input;
  if (task_should_compute_output(NormSlot::kScale)) result[NormSlot::kScale] = found.scale.sum(0);
  if (task_should_compute_output(NormSlot::kShift)) result[NormSlot::kShift] = found.shift.sum(0);
  return result;
}

// For derivatives of gradients: by the operation of libtorch, which has them.
ag::variable_list UnitsGroupNormBackward::Differentiable(const at::Tensor& gradient) {
  const ag::variable_list inputs = {input_.unpack(), scale_.unpack(), shift_.unpack()};
  const at::Tensor output =
      at::group_norm(inputs[0], mean_.size(1), inputs[1], inputs[2], eps_, /*cudnn_enabled=*/true);
  ag::variable_list wanted;
  for (const at::Tensor& input : inputs) {
    if (input.requires_grad()) wanted.push_back(input);
  }
  const ag::variable_list found = ag::grad({output}, wanted, {gradient}, /*retain_graph=*/true,
                                           /*create_graph=*/true, /*allow_unused=*/true);
  ag::variable_list result(NormSlot::kSlots);
  std::size_t next = 0;
  for (std::size_t slot = 0; slot < result.size(); ++slot) {
    if (inputs[slot].requires_grad()) result[slot] = found[next++];
  }
  return result;
}

void UnitsGroupNormBackward::release_variables() {
  const std::lock_guard<std::mutex> lock(mutex_);
  input_.reset_data();
  scale_.reset_data();
  shift_.reset_data();
  mean_.reset();
  deviation_.reset();
  asked_.reset();
  answer_ = {};
}

bool HasUnitsGroupNorm(const at::Tensor& input, std::int64_t groups, const at::Tensor& scale,
                       const at::Tensor& shift) {
  return HasGroupNorm(input, groups, scale, shift) && !HasForwardDerivative(input) &&
         !HasForwardDerivative(scale) && !HasForwardDerivative(shift);
}

at::Tensor UnitsGroupNorm(const at::Tensor& input, std::int64_t groups, const at::Tensor& scale,
                          const at::Tensor& shift, double eps) {
  GroupNormResult found;
  {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    found = DeviceGroupNorm(input, groups, scale, shift, eps);
  }
  const bool records = at::GradMode::is_enabled() &&
                       (input.requires_grad() || scale.requires_grad() || shift.requires_grad());
  if (!records) return found.output;
  const std::shared_ptr<UnitsGroupNormBackward> node(new UnitsGroupNormBackward, ag::deleteNode);
  node->input_ = ag::SavedVariable(input, /*is_output=*/false);
  node->scale_ = ag::SavedVariable(scale, /*is_output=*/false);
  node->shift_ = ag::SavedVariable(shift, /*is_output=*/false);
  node->mean_ = found.mean;
  node->deviation_ = found.deviation;
  node->eps_ = eps;
  node->set_next_edges(ag::collect_next_edges(input, scale, shift));
  ag::set_history(found.output, node);
  return found.output;
}

}  // namespace sordino
