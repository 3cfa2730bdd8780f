// Layerwise clipping: the bound is shared out evenly, C / sqrt(layers) each
// (gradients/layerwise_clipping.h).
#include "sordino/gradients/layerwise_clipping.h"

#include "sordino/clipping/internal/fixed_policy.h"

namespace sordino {
namespace {

class Layerwise : public ClippingComponent {
 public:
  Layerwise()
      : ClippingComponent(
            {.name = "layerwise", .help = "min(1, C_l/n_l) for each of L layers, C_l = C/√L"}) {}

  std::unique_ptr<ClippingState> Start(
      const ClippingTerms& /*terms*/, const OptionValues& /*options*/,
      const std::vector<NamedParameter>& parameters) const override {
    return MakeFixedPolicy<LayerwiseClipping>(
        [groups = ClippingGroups::ByLayer(parameters)](ClipNorm clip) {
          return LayerwiseClipping(groups, EqualBounds(groups, clip));
        });
  }
};

}  // namespace

const ClippingComponent& LayerwiseClippingPolicy() {
  static const Layerwise component;
  return component;
}

}  // namespace sordino
