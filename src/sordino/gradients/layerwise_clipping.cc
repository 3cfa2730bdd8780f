#include "sordino/gradients/layerwise_clipping.h"

#include <cmath>
#include <numeric>
#include <utility>

namespace sordino {

std::vector<ClipNorm> EqualBounds(const ClippingGroups& groups, ClipNorm total) {
  const double share = 1 / std::sqrt(static_cast<double>(groups.size()));
  return std::vector<ClipNorm>(groups.size(), ClipNorm(total.value() * share));
}

std::vector<ClipNorm> BoundsBySize(const ClippingGroups& groups, ClipNorm total) {
  const std::vector<std::int64_t>& coordinates = groups.coordinates();
  const double all =
      static_cast<double>(std::accumulate(coordinates.begin(), coordinates.end(), std::int64_t{0}));
  std::vector<ClipNorm> bounds;
  bounds.reserve(coordinates.size());
  for (const std::int64_t layer : coordinates) {
    bounds.emplace_back(total.value() * std::sqrt(static_cast<double>(layer) / all));
  }
  return bounds;
}

LayerwiseClipping::LayerwiseClipping(ClippingGroups groups, std::vector<ClipNorm> bounds)
    : groups_(std::move(groups)), bounds_(std::move(bounds)), below_(ValuesBelow(bounds_)) {
  groups_.CheckOneForEach("clipping norms", bounds_.size());
}

LayerwiseClipping::LayerwiseClipping(const std::vector<NamedParameter>& parameters,
                                     std::vector<ClipNorm> bounds)
    : LayerwiseClipping(ClippingGroups::ByLayer(parameters), std::move(bounds)) {}

LayerwiseClipping LayerwiseClipping::Equal(const std::vector<NamedParameter>& parameters,
                                           ClipNorm total) {
  const ClippingGroups groups = ClippingGroups::ByLayer(parameters);
  return {groups, EqualBounds(groups, total)};
}

LayerwiseClipping LayerwiseClipping::BySize(const std::vector<NamedParameter>& parameters,
                                            ClipNorm total) {
  const ClippingGroups groups = ClippingGroups::ByLayer(parameters);
  return {groups, BoundsBySize(groups, total)};
}

std::vector<std::int64_t> LayerwiseClipping::Groups(
    const std::vector<NamedParameter>& parameters) const {
  return groups_.Assign(parameters);
}

at::Tensor LayerwiseClipping::Factors(const at::Tensor& norms) const {
  return FactorsToBound(below_, norms);
}

std::vector<double> LayerwiseClipping::Bounds() const { return Values(bounds_); }

std::vector<double> LayerwiseClipping::Numbers() const { return Bounds(); }

std::string LayerwiseClipping::Description() const {
  return "layerwise clipping at " + FormatNumbers(Bounds());
}

}  // namespace sordino
