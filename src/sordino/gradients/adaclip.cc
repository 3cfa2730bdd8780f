#include "sordino/gradients/adaclip.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/addcmul.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "sordino/base/check.h"
#include "sordino/base/error.h"

namespace sordino {

AdaClip::AdaClip(const std::vector<NamedParameter>& parameters, AdaClipOptions options)
    : options_(options), below_({BelowBound(options.bound.value())}) {
  CheckRange("the decay of AdaCliP's mean", options.mean_decay, 0, false, 1, false);
  CheckRange("the decay of AdaCliP's variance", options.variance_decay, 0, false, 1, false);
  // Standard deviations and their sums must be normal float32 numbers.
  CheckRange("AdaCliP's smallest variance", options.smallest_variance, 1e-30, false, 1e30, false);
  CheckRange("AdaCliP's largest variance", options.largest_variance, options.smallest_variance,
             false, 1e30, false);
  CheckRange("AdaCliP's variance factor", options.variance_factor, 0, true, kInfinity, true);
  const double first = std::sqrt(options.smallest_variance * options.largest_variance);
  for (const NamedParameter& parameter : parameters) {
    if (!parameter.value.requires_grad()) {
      continue;
    }
    const at::ScalarType type =
        parameter.value.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
    const at::Tensor like = parameter.value.detach();
    transform_.centre.push_back(at::zeros_like(like, like.options().dtype(type)));
    variance_.push_back(at::full_like(like, first, like.options().dtype(type)));
  }
  if (variance_.empty()) {
    throw Error("AdaCliP was given " + std::to_string(parameters.size()) +
                " parameters of which none requires a gradient; pass the parameters that are "
                "trained.");
  }
  SetScale();
}

std::vector<std::int64_t> AdaClip::Groups(const std::vector<NamedParameter>& parameters) const {
  if (parameters.size() != variance_.size()) {
    throw Error("AdaCliP was made for " + std::to_string(variance_.size()) + " parameters and " +
                std::to_string(parameters.size()) +
                " are clipped; make it from the parameters that are clipped.");
  }
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i].value.sizes() != variance_[i].sizes()) {
      throw Error("parameter '" + parameters[i].name +
                  "' has another shape than the one that AdaCliP was made for; make it from the "
                  "parameters that are clipped, in their order.");
    }
  }
  return ClippingGroups::Flat().Assign(parameters);
}

at::Tensor AdaClip::Factors(const at::Tensor& norms) const { return FactorsToBound(below_, norms); }

std::vector<double> AdaClip::Bounds() const { return {options_.bound.value()}; }

std::string AdaClip::Description() const {
  return "AdaCliP at " + FormatNumbers(options_.bound.value()) + " of centred and scaled gradients";
}

void AdaClip::CheckShapes(const NoisedGradients& mean) const {
  SORDINO_CHECK(mean.value().size() == variance_.size(), "one tensor for each parameter");
  for (std::size_t i = 0; i < variance_.size(); ++i) {
    SORDINO_CHECK(mean.value()[i].sizes() == variance_[i].sizes(),
                  "a noised mean has the shape of its parameter");
  }
}

NoisedGradients AdaClip::ToGradients(const NoisedGradients& mean) const {
  CheckShapes(mean);
  std::vector<at::Tensor> gradients;
  gradients.reserve(variance_.size());
  double least = kInfinity;
  for (std::size_t i = 0; i < variance_.size(); ++i) {
    gradients.push_back(at::addcmul(transform_.centre[i], transform_.scale[i], mean.value()[i]));
    if (variance_[i].numel() == 0) continue;
    least = std::min(least, transform_.scale[i].min().item<double>());
  }
  return NoisedGradients(std::move(gradients),
                         mean.standard_deviation() * (least == kInfinity ? 1 : least));
}

void AdaClip::Update(const NoisedGradients& mean) {
  CheckShapes(mean);
  const double noise = mean.standard_deviation() * mean.standard_deviation();
  for (std::size_t i = 0; i < variance_.size(); ++i) {
    // g~ - m = b y, so that v = k b^2 (y^2 - sd^2) before it is kept within h_1 and h_2.
    const at::Tensor& y = mean.value()[i];
    const at::Tensor& scale = transform_.scale[i];
    at::Tensor v = at::mul(y, y).sub_(noise).mul_(scale).mul_(scale);
    v.mul_(options_.variance_factor).clamp_(options_.smallest_variance, options_.largest_variance);
    variance_[i].mul_(options_.variance_decay).add_(v, 1 - options_.variance_decay);
    transform_.centre[i].addcmul_(scale, y, 1 - options_.mean_decay);
  }
  SetScale();
}

void AdaClip::Restore(const std::vector<at::Tensor>& mean,
                      const std::vector<at::Tensor>& variance) {
  const auto fits = [&](const std::vector<at::Tensor>& saved) {
    if (saved.size() != variance_.size()) return false;
    for (std::size_t i = 0; i < saved.size(); ++i) {
      if (saved[i].sizes() != variance_[i].sizes() ||
          saved[i].scalar_type() != variance_[i].scalar_type()) {
        return false;
      }
    }
    return true;
  };
  if (!fits(mean) || !fits(variance)) {
    throw Error(
        "the saved mean and variance of AdaCliP are not those of these parameters; resume with the "
        "model of the run that was saved.");
  }
  // Averages of values in this range leave it by rounding only.
  const double low = options_.smallest_variance * (1 - 1e-3);
  const double high = options_.largest_variance * (1 + 1e-3);
  for (std::size_t i = 0; i < variance_.size(); ++i) {
    const at::Tensor in_range = (variance[i] >= low).logical_and(variance[i] <= high);
    if (!in_range.all().item<bool>() || !at::isfinite(mean[i]).all().item<bool>()) {
      throw Error(
          "the saved mean and variance of AdaCliP are out of the range of its options; resume with "
          "the options of the run that was saved.");
    }
  }
  for (std::size_t i = 0; i < variance_.size(); ++i) {
    variance_[i].copy_(variance[i]);
    transform_.centre[i].copy_(mean[i]);
  }
  SetScale();
}

void AdaClip::SetScale() {
  // In float64: a float32 sum over many coordinates would lose the small ones.
  at::Tensor total;
  std::vector<at::Tensor> deviations;
  for (const at::Tensor& variance : variance_) {
    deviations.push_back(variance.sqrt());
    const at::Tensor sum = deviations.back().sum(at::kDouble);
    total = total.defined() ? total.add(sum.to(total.device())) : sum;
  }
  transform_.scale.clear();
  for (const at::Tensor& deviation : deviations) {
    const at::Tensor root = total.sqrt().to(deviation.options());
    transform_.scale.push_back(deviation.sqrt().mul_(root));
  }
}

}  // namespace sordino
