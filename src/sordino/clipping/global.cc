// Global clipping: gradients within a threshold are scaled alike, others are dropped.
#include "sordino/clipping/internal/fixed_policy.h"
#include "sordino/clipping/internal/global_threshold.h"
#include "sordino/gradients/global_clipping.h"

namespace sordino {
namespace {

class Global : public GlobalThreshold {
 public:
  Global() : GlobalThreshold("global", "C/Z for n ≤ Z, else 0; Z is the threshold") {}

  std::unique_ptr<ClippingState> Start(
      const ClippingTerms& terms, const OptionValues& options,
      const std::vector<NamedParameter>& /*parameters*/) const override {
    return MakeFixedPolicy<GlobalClipping>([ratio = Ratio(terms, options)](ClipNorm clip) {
      return GlobalClipping(GlobalBound{clip, ClipNorm(clip.value() * ratio)});
    });
  }
};

}  // namespace

const ClippingComponent& GlobalClippingPolicy() {
  static const Global component;
  return component;
}

}  // namespace sordino
