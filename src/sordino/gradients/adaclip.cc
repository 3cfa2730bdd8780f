#include "sordino/gradients/adaclip.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/mul.h>

#include <cmath>
#include <string>

#include "sordino/base/error.h"

namespace sordino {

AdaClip::AdaClip(const std::vector<NamedParameter>& parameters, AdaClipOptions options)
    : ScaledClipping("AdaCliP", parameters, options.bound), options_(options) {
  CheckRange("the decay of AdaCliP's mean", options.mean_decay, 0, false, 1, false);
  CheckRange("the decay of AdaCliP's variance", options.variance_decay, 0, false, 1, false);
  // Standard deviations and their sums must be normal float32 numbers.
  CheckRange("AdaCliP's smallest variance", options.smallest_variance, 1e-30, false, 1e30, false);
  CheckRange("AdaCliP's largest variance", options.largest_variance, options.smallest_variance,
             false, 1e30, false);
  CheckRange("AdaCliP's variance factor", options.variance_factor, 0, true, kInfinity, true);
  const double first = std::sqrt(options.smallest_variance * options.largest_variance);
  for (const at::Tensor& like : transform_.centre) {
    variance_.push_back(at::full_like(like, first));
  }
  SetScale();
}

std::string AdaClip::Description() const {
  return "AdaCliP at " + FormatNumbers(Bounds()) + " of centred and scaled gradients";
}

std::vector<ScaledClipping::Tracked> AdaClip::tracked() const {
  return {{"mean", &transform_.centre}, {"variance", &variance_}};
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

void AdaClip::Restore(const std::vector<std::vector<at::Tensor>>& saved) {
  CheckSaved(saved);
  const std::vector<at::Tensor>& mean = saved[0];
  const std::vector<at::Tensor>& variance = saved[1];
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
