// Automatic clipping: gradients are normalised (gradients/automatic_clipping.h).
#include "sordino/gradients/automatic_clipping.h"

#include "sordino/clipping/internal/fixed_policy.h"

namespace sordino {
namespace {

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
