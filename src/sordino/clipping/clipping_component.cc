#include "sordino/clipping/clipping_component.h"

#include <fmt/format.h>

#include <utility>

namespace sordino {

NoisedGradients ClippingState::AfterNoise(NoisedGradients mean, const BoundedSum& /*sum*/,
                                          std::int64_t /*step*/, RandomSource& /*random*/) {
  return mean;
}

void ClippingComponent::CheckTerms(const ClippingTerms& /*terms*/,
                                   const OptionValues& /*options*/) const {}

NoiseMultiplier ClippingComponent::GradientNoise(NoiseMultiplier total,
                                                 const ClippingTerms& /*terms*/,
                                                 const OptionValues& /*options*/,
                                                 std::int64_t /*groups*/) const {
  return total;
}

std::string ClippingComponent::Description(const ClippingTerms& terms) const {
  return fmt::format("{} clipping at {:.6g}", name(), terms.clip.value());
}

#define SORDINO_COMPONENT(function, file) const ClippingComponent& function();
#include "sordino/clipping/clipping_list.inc"
#undef SORDINO_COMPONENT

const Registry<ClippingComponent>& ClippingPolicies() {
  static const Registry<ClippingComponent> list("clipping", {
#define SORDINO_COMPONENT(function, file) &function(),
#include "sordino/clipping/clipping_list.inc"
#undef SORDINO_COMPONENT
                                                            });
  return list;
}

}  // namespace sordino
