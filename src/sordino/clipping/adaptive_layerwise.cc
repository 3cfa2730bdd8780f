// Adaptive clipping by layer: each of L layers has a bound of its own that follows a quantile of
// its norms, from C / sqrt(L) on. A step releases L counts beside the gradients.
#include "sordino/clipping/internal/adaptive_quantile.h"

namespace sordino {
namespace {

class AdaptiveLayerwise : public AdaptiveQuantile {
 public:
  AdaptiveLayerwise()
      : AdaptiveQuantile("adaptive-layerwise",
                         "min(1, C_l/n_l) for each layer, each C_l follows a quantile") {}

  std::unique_ptr<ClippingState> Start(
      const ClippingTerms& terms, const OptionValues& options,
      const std::vector<NamedParameter>& parameters) const override {
    return StartWith(terms, options, parameters, ClippingGroups::ByLayer(parameters));
  }
};

}  // namespace

const ClippingComponent& AdaptiveLayerwiseClippingPolicy() {
  static const AdaptiveLayerwise component;
  return component;
}

}  // namespace sordino
