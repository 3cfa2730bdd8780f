// AdaCliP: clipping of gradients that are centred and scaled coordinate by coordinate
// (gradients/adaclip.h). What it tracks are functions of noised means; it is saved with the run.
#include "sordino/gradients/adaclip.h"

#include <fmt/format.h>

#include <memory>
#include <string>

#include "sordino/base/error.h"
#include "sordino/clipping/internal/scaled_state.h"

namespace sordino {
namespace {

constexpr AdaClipOptions kDefaults;
// Standard deviations and their sums must be normal float32 numbers.
constexpr double kMinVariance = 1e-30;
constexpr double kMaxVariance = 1e30;

constexpr OptionSpec kMeanDecay{.key = "clip-mean-decay",
                                .flag = "--clip-mean-decay",
                                .value_name = "X",
                                .help = "Decay of the tracked mean of the gradients",
                                .what = "the decay of AdaCliP's mean",
                                .fallback = kDefaults.mean_decay,
                                .high = 1,
                                .high_open = false};
constexpr OptionSpec kVarianceDecay{.key = "clip-variance-decay",
                                    .flag = "--clip-variance-decay",
                                    .value_name = "X",
                                    .help = "Decay of the tracked variance",
                                    .what = "the decay of AdaCliP's variance",
                                    .fallback = kDefaults.variance_decay,
                                    .high = 1,
                                    .high_open = false};
constexpr OptionSpec kVarianceMin{.key = "clip-variance-min",
                                  .flag = "--clip-variance-min",
                                  .value_name = "X",
                                  .help = "The least variance of a coordinate",
                                  .what = "AdaCliP's smallest variance",
                                  .fallback = kDefaults.smallest_variance,
                                  .low = kMinVariance,
                                  .high = kMaxVariance,
                                  .high_open = false};
constexpr OptionSpec kVarianceMax{.key = "clip-variance-max",
                                  .flag = "--clip-variance-max",
                                  .value_name = "X",
                                  .help = "The largest variance of a coordinate",
                                  .what = "AdaCliP's largest variance",
                                  .fallback = kDefaults.largest_variance,
                                  .low = kMinVariance,
                                  .high = kMaxVariance,
                                  .high_open = false};
constexpr OptionSpec kVarianceFactor{
    .key = "clip-variance-factor",
    .flag = "--clip-variance-factor",
    .value_name = "X",
    .help = "Factor of the variance of a mean; the batch size tracks that of an example",
    .what = "AdaCliP's variance factor",
    .fallback = kDefaults.variance_factor,
    .low_open = true};
constexpr const OptionSpec* kAdaClipOptions[] = {&kMeanDecay, &kVarianceDecay, &kVarianceMin,
                                                 &kVarianceMax, &kVarianceFactor};

class AdaClipComponent : public ClippingComponent {
 public:
  AdaClipComponent()
      : ClippingComponent({.name = "adaclip",
                           .help = "min(1, C/n) of (g − m)/b, m and b tracked by coordinate",
                           .options = kAdaClipOptions}) {}

  void Check(const OptionValues& options) const override {
    if (options.Number(kVarianceMin) <= options.Number(kVarianceMax)) return;
    throw Error(fmt::format(
        "AdaCliP's smallest variance is {} and its largest {}; give a largest that is not smaller.",
        options.Number(kVarianceMin), options.Number(kVarianceMax)));
  }

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
        parameters,
        std::make_unique<AdaClip>(
            parameters, AdaClipOptions{.bound = terms.clip,
                                       .mean_decay = options.Number(kMeanDecay),
                                       .variance_decay = options.Number(kVarianceDecay),
                                       .smallest_variance = options.Number(kVarianceMin),
                                       .largest_variance = options.Number(kVarianceMax),
                                       .variance_factor = options.Number(kVarianceFactor)}));
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
