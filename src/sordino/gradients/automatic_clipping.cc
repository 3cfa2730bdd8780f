#include "sordino/gradients/automatic_clipping.h"

#include <ATen/ops/add.h>
#include <ATen/ops/div.h>
#include <ATen/ops/threshold.h>

#include <limits>
#include <utility>

#include "sordino/base/quantity.h"

namespace sordino {

AutomaticClipping::AutomaticClipping(ClipNorm bound, double gamma)
    : AutomaticClipping(ClippingGroups::Flat(), {bound}, gamma) {}

AutomaticClipping::AutomaticClipping(const std::vector<NamedParameter>& parameters,
                                     std::vector<ClipNorm> bounds, double gamma)
    : AutomaticClipping(ClippingGroups::ByLayer(parameters), std::move(bounds), gamma) {}

AutomaticClipping::AutomaticClipping(ClippingGroups groups, std::vector<ClipNorm> bounds,
                                     double gamma)
    : groups_(std::move(groups)),
      bounds_(std::move(bounds)),
      below_(ValuesBelow(bounds_)),
      gamma_(gamma) {
  groups_.CheckOneForEach("clipping norms", bounds_.size());
  CheckRange("the stability constant of automatic clipping", gamma, 1e-12, false, 1e12, false);
}

std::vector<std::int64_t> AutomaticClipping::Groups(
    const std::vector<NamedParameter>& parameters) const {
  return groups_.Assign(parameters);
}

at::Tensor AutomaticClipping::Factors(const at::Tensor& norms) const {
  // Rounding is monotone, so the computed norm + gamma is at least the norm, and the quotient is
  // a quotient by something not smaller than the norm: BelowBound covers it.
  at::Tensor factors = at::div(below_.OnDeviceOf(norms), at::add(norms, gamma_));
  return at::threshold_(factors, std::numeric_limits<double>::min(), 0.0);
}

std::vector<double> AutomaticClipping::Bounds() const { return Values(bounds_); }

std::vector<double> AutomaticClipping::Numbers() const {
  std::vector<double> numbers = Bounds();
  numbers.push_back(gamma_);
  return numbers;
}

std::string AutomaticClipping::Description() const {
  return "automatic clipping to " + FormatNumbers(Bounds()) + " with stability constant " +
         FormatNumbers(gamma_);
}

}  // namespace sordino
