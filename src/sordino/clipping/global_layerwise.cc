// Global clipping by layer: bound and threshold are shared out evenly, C / sqrt(L) and Z / sqrt(L)
// for each of L layers. A layer of an example beyond its threshold is dropped, and the others stay.
#include "sordino/clipping/internal/fixed_policy.h"
#include "sordino/clipping/internal/global_threshold.h"
#include "sordino/gradients/clipping_groups.h"
#include "sordino/gradients/global_clipping.h"
#include "sordino/gradients/layerwise_clipping.h"

namespace sordino {
namespace {

class GlobalLayerwise : public GlobalThreshold {
 public:
  GlobalLayerwise()
      : GlobalThreshold("global-layerwise",
                        "C/Z for each of L layers with n_l ≤ Z_l, else 0; Z_l = Z/√L") {}

  std::unique_ptr<ClippingState> Start(
      const ClippingTerms& terms, const OptionValues& options,
      const std::vector<NamedParameter>& parameters) const override {
    return MakeFixedPolicy<GlobalClipping>(
        [ratio = Ratio(terms, options), parameters,
         groups = ClippingGroups::ByLayer(parameters)](ClipNorm clip) {
          std::vector<GlobalBound> bounds;
          for (const ClipNorm bound : EqualBounds(groups, clip)) {
            bounds.push_back({bound, ClipNorm(bound.value() * ratio)});
          }
          return GlobalClipping(parameters, std::move(bounds));
        });
  }
};

}  // namespace

const ClippingComponent& GlobalLayerwiseClippingPolicy() {
  static const GlobalLayerwise component;
  return component;
}

}  // namespace sordino
