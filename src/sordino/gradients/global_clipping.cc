#include "sordino/gradients/global_clipping.h"

#include <ATen/ops/le.h>
#include <ATen/ops/mul.h>

#include <limits>
#include <utility>

#include "sordino/base/error.h"

namespace sordino {
namespace {

std::vector<double> Thresholds(const std::vector<GlobalBound>& bounds) {
  std::vector<double> values;
  values.reserve(bounds.size());
  for (const GlobalBound& bound : bounds) {
    values.push_back(bound.threshold.value());
  }
  return values;
}

std::vector<double> CommonFactors(const std::vector<GlobalBound>& bounds) {
  std::vector<double> values;
  for (const GlobalBound& bound : bounds) {
    const double factor = BelowBound(bound.bound.value()) / bound.threshold.value();
    if (!(factor >= std::numeric_limits<double>::min() && factor < kInfinity)) {
      throw Error("the clipping norm " + FormatNumbers(bound.bound.value()) +
                  " over the threshold " + FormatNumbers(bound.threshold.value()) +
                  " is not a normal number; bring the two nearer to each other.");
    }
    values.push_back(factor);
  }
  return values;
}

}  // namespace

GlobalClipping::GlobalClipping(GlobalBound bound)
    : GlobalClipping(ClippingGroups::Flat(), {bound}) {}

GlobalClipping::GlobalClipping(const std::vector<NamedParameter>& parameters,
                               std::vector<GlobalBound> bounds)
    : GlobalClipping(ClippingGroups::ByLayer(parameters), std::move(bounds)) {}

GlobalClipping::GlobalClipping(ClippingGroups groups, std::vector<GlobalBound> bounds)
    : groups_(std::move(groups)),
      bounds_(std::move(bounds)),
      thresholds_(Thresholds(bounds_)),
      factors_(CommonFactors(bounds_)) {
  groups_.CheckOneForEach("clipping norms with thresholds", bounds_.size());
}

std::vector<std::int64_t> GlobalClipping::Groups(
    const std::vector<NamedParameter>& parameters) const {
  return groups_.Assign(parameters);
}

at::Tensor GlobalClipping::Factors(const at::Tensor& norms) const {
  return at::mul(factors_.OnDeviceOf(norms), at::le(norms, thresholds_.OnDeviceOf(norms)));
}

std::vector<double> GlobalClipping::Bounds() const {
  std::vector<double> values;
  for (const GlobalBound& bound : bounds_) {
    values.push_back(bound.bound.value());
  }
  return values;
}

std::vector<double> GlobalClipping::Numbers() const {
  std::vector<double> numbers = factors_.values();
  const std::vector<double>& thresholds = thresholds_.values();
  numbers.insert(numbers.end(), thresholds.begin(), thresholds.end());
  return numbers;
}

std::string GlobalClipping::Description() const {
  return "global clipping at " + FormatNumbers(Bounds()) + " of gradients up to " +
         FormatNumbers(thresholds_.values());
}

}  // namespace sordino
