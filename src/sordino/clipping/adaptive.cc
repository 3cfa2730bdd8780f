// Adaptive clipping: one bound that follows a quantile of the norms and pays for it.
#include "sordino/clipping/internal/adaptive_quantile.h"

namespace sordino {
namespace {

class Adaptive : public AdaptiveQuantile {
 public:
  Adaptive() : AdaptiveQuantile("adaptive", "min(1, C/n), C follows a quantile of the norms") {}

  std::unique_ptr<ClippingState> Start(
      const ClippingTerms& terms, const OptionValues& options,
      const std::vector<NamedParameter>& parameters) const override {
    return StartWith(terms, options, parameters, ClippingGroups::Flat());
  }
};

}  // namespace

const ClippingComponent& AdaptiveClippingPolicy() {
  static const Adaptive component;
  return component;
}

}  // namespace sordino
