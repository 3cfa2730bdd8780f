// Automatic clipping, AUTO-S (Bu, Wang, Zha, Karypis, arXiv 2206.07136): every gradient is
// normalised, with a stability constant gamma that keeps small gradients small.
//
//     factor = C / (||g|| + gamma),   bound C,   gamma in the units of the gradient.
//
// ||factor * g|| = C ||g|| / (||g|| + gamma) < C for every g. C only scales the step: with C = 1
// there is no clipping norm to tune. A factor may exceed 1, up to C / gamma for a gradient of
// zero.
#include <ATen/ops/add.h>
#include <ATen/ops/div.h>
#include <ATen/ops/threshold.h>

#include <limits>

#include "sordino/clipping/internal/fixed_policy.h"
#include "sordino/gradients/clipping_groups.h"

namespace sordino {
namespace {

constexpr double kGamma = 0.01;  // of the paper

class AutomaticClipping : public ClippingPolicy {
 public:
  explicit AutomaticClipping(ClipNorm bound)
      : bound_(bound.value()), below_({BelowBound(bound_)}) {}

  std::vector<std::int64_t> Groups(const std::vector<NamedParameter>& parameters) const override {
    return ClippingGroups::Flat().Assign(parameters);
  }

  at::Tensor Factors(const at::Tensor& norms) const override {
    // Rounding is monotone, so the computed norm + gamma is at least the norm, and the quotient is
    // a quotient by something not smaller than the norm: BelowBound covers it.
    at::Tensor factors = at::div(below_.OnDeviceOf(norms), at::add(norms, kGamma));
    return at::threshold_(factors, std::numeric_limits<double>::min(), 0.0);
  }

  std::vector<double> Bounds() const override { return {bound_}; }
  std::vector<double> Numbers() const override { return Bounds(); }

 private:
  double bound_;
  GroupColumn below_;
};

class Automatic : public ClippingComponent {
 public:
  Automatic()
      : ClippingComponent({.name = "automatic", .help = "C/(n + 0.01): no norm has to be tuned"}) {}

  std::unique_ptr<ClippingState> Start(
      const ClippingTerms& /*terms*/, const OptionValues& /*options*/,
      const std::vector<NamedParameter>& /*parameters*/) const override {
    return MakeFixedPolicy<AutomaticClipping>(
        [](ClipNorm clip) { return AutomaticClipping(clip); });
  }
};

}  // namespace

const ClippingComponent& AutomaticClippingPolicy() {
  static const Automatic component;
  return component;
}

}  // namespace sordino
