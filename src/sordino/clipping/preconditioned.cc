// Preconditioned clipping: gradients are scaled as an adaptive optimizer scales them, then clipped
// (gradients/preconditioned_clipping.h). The scale follows noised gradients; it is saved with the
// run.
#include "sordino/gradients/preconditioned_clipping.h"

#include <fmt/format.h>

#include <memory>
#include <string>

#include "sordino/base/error.h"
#include "sordino/clipping/internal/scaled_state.h"

namespace sordino {
namespace {

constexpr PreconditionedClippingOptions kPreconditionedDefaults;

constexpr OptionSpec kMomentDecay{.key = "clip-moment-decay",
                                  .flag = "--clip-moment-decay",
                                  .value_name = "X",
                                  .help = "Decay of the squares that the scale follows",
                                  .what = "the decay of the second moment",
                                  .fallback = kPreconditionedDefaults.moment_decay,
                                  .high = 1,
                                  .high_open = false};
constexpr OptionSpec kScaleFloor{
    .key = "clip-scale-floor",
    .flag = "--clip-scale-floor",
    .value_name = "X",
    .help = "Added to the scale of a coordinate, as a share of the mean scale",
    .what = "the floor of the preconditioner",
    .fallback = kPreconditionedDefaults.floor,
    .low = 1e-3,
    .high = 1e3,
    .high_open = false};
constexpr const OptionSpec* kPreconditionedOptions[] = {&kMomentDecay, &kScaleFloor};

class PreconditionedComponent : public ClippingComponent {
 public:
  PreconditionedComponent()
      : ClippingComponent({.name = "preconditioned",
                           .help = "min(1, C/n) of g/b, b follows the squares of noised gradients",
                           .options = kPreconditionedOptions}) {}

  void CheckTerms(const ClippingTerms& terms, const OptionValues& /*options*/) const override {
    if (terms.norms_are_exact) return;
    throw Error(
        "preconditioned clipping scales the gradient of each example before its norm is taken, and "
        "estimated norms are of gradients that are not written out; use exact norms (--norms "
        "automatic) or another clipping.");
  }

  std::unique_ptr<ClippingState> Start(
      const ClippingTerms& terms, const OptionValues& options,
      const std::vector<NamedParameter>& parameters) const override {
    return std::make_unique<ScaledClippingState>(
        parameters, std::make_unique<PreconditionedClipping>(
                        parameters, terms.clip,
                        PreconditionedClippingOptions{.moment_decay = options.Number(kMomentDecay),
                                                      .floor = options.Number(kScaleFloor)}));
  }

  std::string Description(const ClippingTerms& terms) const override {
    return fmt::format("preconditioned clipping at {:.6g} of scaled gradients", terms.clip.value());
  }
};

}  // namespace

const ClippingComponent& PreconditionedClippingPolicy() {
  static const PreconditionedComponent component;
  return component;
}

}  // namespace sordino
