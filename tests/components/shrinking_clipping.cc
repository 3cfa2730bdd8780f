// A clipping policy of a test: flat clipping whose bound shrinks by a factor in each step, which it
// keeps in checkpoints.
#include <ATen/ops/scalar_tensor.h>

#include <optional>

#include "sordino/clipping/clipping_component.h"
#include "sordino/gradients/norm_clipping.h"
#include "sordino/gradients/saved_tensors.h"

namespace sordino {
namespace {

constexpr OptionSpec kFactor{.key = "shrinking-factor",
                             .flag = "--shrinking-factor",
                             .value_name = "X",
                             .help = "Of the bound, in each step",
                             .what = "the factor of the bound",
                             .fallback = 0.9,
                             .low_open = true,
                             .high = 1,
                             .high_open = false};
constexpr const OptionSpec* kShrinkingOptions[] = {&kFactor};

class ShrinkingState : public ClippingState {
 public:
  explicit ShrinkingState(double factor) : factor_(factor) {}

  const ClippingPolicy& StepPolicy(ClipNorm clip) override {
    return policy_.emplace(ClipNorm(clip.value() * share_));
  }
  NoisedGradients AfterNoise(NoisedGradients mean, const BoundedSum& /*sum*/, std::int64_t /*step*/,
                             RandomSource& /*random*/) override {
    share_ *= factor_;
    return mean;
  }
  NamedTensors Save() const override {
    return {{"clip.share", at::scalar_tensor(share_, at::kDouble)}};
  }
  void Restore(SavedTensors& saved) override {
    share_ = saved.Take("clip.share", {}, at::kDouble).item<double>();
  }

 private:
  double factor_;
  double share_ = 1;
  std::optional<FlatClipping> policy_;
};

class Shrinking : public ClippingComponent {
 public:
  Shrinking()
      : ClippingComponent(
            {.name = "shrinking", .help = "of a test", .options = kShrinkingOptions}) {}

  std::unique_ptr<ClippingState> Start(
      const ClippingTerms& /*terms*/, const OptionValues& options,
      const std::vector<NamedParameter>& /*parameters*/) const override {
    return std::make_unique<ShrinkingState>(options.Number(kFactor));
  }
};

}  // namespace

const ClippingComponent& ShrinkingClipping() {
  static const Shrinking component;
  return component;
}

}  // namespace sordino
