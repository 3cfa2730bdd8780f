#include "sordino/clipping/adaclip.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/mul.h>
#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <string>

#include "sordino/base/error.h"

namespace sordino {
namespace {

// Standard deviations and their sums must be normal float32 numbers.
constexpr double kMinVariance = 1e-30;
constexpr double kMaxVariance = 1e30;

constexpr OptionSpec kMeanDecay{.key = "clip-mean-decay",
                                .flag = "--clip-mean-decay",
                                .value_name = "X",
                                .help = "Decay of the tracked mean of the gradients",
                                .what = "the decay of AdaCliP's mean",
                                .fallback = 0.99,
                                .high = 1,
                                .high_open = false};
constexpr OptionSpec kVarianceDecay{.key = "clip-variance-decay",
                                    .flag = "--clip-variance-decay",
                                    .value_name = "X",
                                    .help = "Decay of the tracked variance",
                                    .what = "the decay of AdaCliP's variance",
                                    .fallback = 0.9,
                                    .high = 1,
                                    .high_open = false};
constexpr OptionSpec kVarianceMin{.key = "clip-variance-min",
                                  .flag = "--clip-variance-min",
                                  .value_name = "X",
                                  .help = "The least variance of a coordinate",
                                  .what = "AdaCliP's smallest variance",
                                  .fallback = 1e-12,
                                  .low = kMinVariance,
                                  .high = kMaxVariance,
                                  .high_open = false};
constexpr OptionSpec kVarianceMax{.key = "clip-variance-max",
                                  .flag = "--clip-variance-max",
                                  .value_name = "X",
                                  .help = "The largest variance of a coordinate",
                                  .what = "AdaCliP's largest variance",
                                  .fallback = 1.0,
                                  .low = kMinVariance,
                                  .high = kMaxVariance,
                                  .high_open = false};
constexpr OptionSpec kVarianceFactor{
    .key = "clip-variance-factor",
    .flag = "--clip-variance-factor",
    .value_name = "X",
    .help = "Factor of the variance of a mean; the batch size tracks that of an example",
    .what = "AdaCliP's variance factor",
    .fallback = 1.0,
    .low_open = true};
constexpr const OptionSpec* kAdaClipOptions[] = {&kMeanDecay, &kVarianceDecay, &kVarianceMin,
                                                 &kVarianceMax, &kVarianceFactor};

void CheckVariances(const OptionValues& options) {
  if (options.Number(kVarianceMin) <= options.Number(kVarianceMax)) return;
  throw Error(fmt::format(
      "AdaCliP's smallest variance is {} and its largest {}; give a largest that is not smaller.",
      options.Number(kVarianceMin), options.Number(kVarianceMax)));
}

}  // namespace

AdaClip::AdaClip(const std::vector<NamedParameter>& parameters, ClipNorm bound,
                 const OptionValues& options)
    : ScaledClipping("AdaCliP", parameters, bound),
      mean_decay_(options.Number(kMeanDecay)),
      variance_decay_(options.Number(kVarianceDecay)),
      smallest_variance_(options.Number(kVarianceMin)),
      largest_variance_(options.Number(kVarianceMax)),
      variance_factor_(options.Number(kVarianceFactor)) {
  for (const OptionSpec* option : kAdaClipOptions) options.Check(*option);
  CheckVariances(options);
  const double first = std::sqrt(smallest_variance_ * largest_variance_);
  for (const at::Tensor& like : transform_.centre) {
    variance_.push_back(at::full_like(like, first));
  }
  SetScale();
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
    v.mul_(variance_factor_).clamp_(smallest_variance_, largest_variance_);
    variance_[i].mul_(variance_decay_).add_(v, 1 - variance_decay_);
    transform_.centre[i].addcmul_(scale, y, 1 - mean_decay_);
  }
  SetScale();
}

void AdaClip::Restore(const std::vector<std::vector<at::Tensor>>& saved) {
  CheckSaved(saved);
  const std::vector<at::Tensor>& mean = saved[0];
  const std::vector<at::Tensor>& variance = saved[1];
  // Averages of values in this range leave it by rounding only.
  const double low = smallest_variance_ * (1 - 1e-3);
  const double high = largest_variance_ * (1 + 1e-3);
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

namespace {

class AdaClipComponent : public ClippingComponent {
 public:
  AdaClipComponent()
      : ClippingComponent({.name = "adaclip",
                           .help = "min(1, C/n) of (g − m)/b, m and b tracked by coordinate",
                           .options = kAdaClipOptions}) {}

  void Check(const OptionValues& options) const override { CheckVariances(options); }

  void CheckTerms(const ClippingTerms& terms, const OptionValues& /*options*/) const override {
    if (terms.clip_is_scheduled) {
      throw Error(
          "AdaCliP scales gradients by what it tracks; leave out the schedule of the clipping "
          "norm.");
    }
    if (!terms.norms_are_exact) {
      throw Error(
          "AdaCliP centres gradients, which lets the rounding of estimated norms grow without a "
          "bound; use exact norms (--norms automatic) or another clipping.");
    }
  }

  std::unique_ptr<ClippingState> Start(
      const ClippingTerms& terms, const OptionValues& options,
      const std::vector<NamedParameter>& parameters) const override {
    return std::make_unique<ScaledClippingState>(
        parameters, std::make_unique<AdaClip>(parameters, terms.clip, options));
  }

  std::string Description(const ClippingTerms& terms) const override {
    return fmt::format("AdaCliP clipping at {:.6g} of centred and scaled gradients",
                       terms.clip.value());
  }
};

}  // namespace

const ClippingComponent& AdaClipClippingPolicy() {
  static const AdaClipComponent component;
  return component;
}

}  // namespace sordino
