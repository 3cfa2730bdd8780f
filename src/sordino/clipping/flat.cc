// Flat clipping: one bound on the whole gradient. Layerwise clipping: the bound is shared out
// evenly, C / sqrt(layers) each (gradients/norm_clipping.h).
#include "sordino/clipping/internal/fixed_policy.h"
#include "sordino/gradients/norm_clipping.h"

namespace sordino {
namespace {

class NormBound : public ClippingComponent {
 public:
  NormBound(std::string_view name, std::string_view help, bool by_layer)
      : ClippingComponent({.name = name, .help = help}), by_layer_(by_layer) {}

  std::unique_ptr<ClippingState> Start(
      const ClippingTerms& /*terms*/, const OptionValues& /*options*/,
      const std::vector<NamedParameter>& parameters) const override {
    const ClippingGroups groups =
        by_layer_ ? ClippingGroups::ByLayer(parameters) : ClippingGroups::Flat();
    return MakeFixedPolicy<NormClipping>(
        [groups](ClipNorm clip) { return NormClipping(groups, EqualBounds(groups, clip)); });
  }

 private:
  bool by_layer_;
};

}  // namespace

const ClippingComponent& FlatClippingPolicy() {
  static const NormBound component("flat", "min(1, C/n) for a gradient of norm n",
                                   /*by_layer=*/false);
  return component;
}

const ClippingComponent& LayerwiseClippingPolicy() {
  static const NormBound component("layerwise", "min(1, C_l/n_l) for each of L layers, C_l = C/√L",
                                   /*by_layer=*/true);
  return component;
}

}  // namespace sordino
