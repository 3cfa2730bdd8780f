#include "sordino/gradients/norm_clipping.h"

#include <utility>

namespace sordino {

NormClipping::NormClipping(ClippingGroups groups, const std::vector<ClipNorm>& bounds)
    : groups_(std::move(groups)), bounds_(Values(bounds)), below_(ValuesBelow(bounds)) {
  groups_.CheckOneForEach("clipping norms", bounds_.size());
}

NormClipping NormClipping::Layerwise(const std::vector<NamedParameter>& parameters,
                                     ClipNorm total) {
  const ClippingGroups groups = ClippingGroups::ByLayer(parameters);
  return {groups, EqualBounds(groups, total)};
}

std::vector<std::int64_t> NormClipping::Groups(
    const std::vector<NamedParameter>& parameters) const {
  return groups_.Assign(parameters);
}

at::Tensor NormClipping::Factors(const at::Tensor& norms) const {
  return FactorsToBound(below_, norms);
}

}  // namespace sordino
