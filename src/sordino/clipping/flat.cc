// Flat clipping: one bound on the whole gradient (gradients/flat_clipping.h).
#include "sordino/gradients/flat_clipping.h"

#include "sordino/clipping/internal/fixed_policy.h"

namespace sordino {
namespace {

class Flat : public ClippingComponent {
 public:
  Flat() : ClippingComponent({.name = "flat", .help = "min(1, C/n) for a gradient of norm n"}) {}

  std::unique_ptr<ClippingState> Start(
      const ClippingTerms& /*terms*/, const OptionValues& /*options*/,
      const std::vector<NamedParameter>& /*parameters*/) const override {
    return MakeFixedPolicy<FlatClipping>([](ClipNorm clip) { return FlatClipping(clip); });
  }
};

}  // namespace

const ClippingComponent& FlatClippingPolicy() {
  static const Flat component;
  return component;
}

}  // namespace sordino
