#include "sordino/gradients/flat_clipping.h"

namespace sordino {

FlatClipping::FlatClipping(ClipNorm bound) : bound_(bound), below_({BelowBound(bound.value())}) {}

std::vector<std::int64_t> FlatClipping::Groups(
    const std::vector<NamedParameter>& parameters) const {
  return ClippingGroups::Flat().Assign(parameters);
}

at::Tensor FlatClipping::Factors(const at::Tensor& norms) const {
  return FactorsToBound(below_, norms);
}

std::vector<double> FlatClipping::Bounds() const { return {bound_.value()}; }

std::vector<double> FlatClipping::Numbers() const { return Bounds(); }

std::string FlatClipping::Description() const {
  return "flat clipping at " + FormatNumbers(bound_.value());
}

}  // namespace sordino
