// Which parameters are clipped together.
//
// Flat clipping has one group; layerwise clipping one for each layer. A layer is the set of
// parameters that share a module prefix: "conv1.weight" and "conv1.bias" are layer "conv1", and
// parameters without a prefix form the layer "". Groups are numbered in the order in which their
// layers first appear.
#ifndef SORDINO_GRADIENTS_CLIPPING_GROUPS_H_
#define SORDINO_GRADIENTS_CLIPPING_GROUPS_H_

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sordino/base/quantity.h"
#include "sordino/gradients/loss_function.h"

namespace sordino {

class ClippingGroups {
 public:
  static ClippingGroups Flat();
  // Parameters that do not require a gradient are frozen and make no layer. Throws Error when no
  // parameter is left.
  static ClippingGroups ByLayer(const std::vector<NamedParameter>& parameters);

  std::size_t size() const { return flat_ ? 1 : layers_.size(); }

  // The group of each parameter. Throws Error when the layers are not those that the groups were
  // made of: bounds would then belong to other layers than the ones they were chosen for.
  std::vector<std::int64_t> Assign(const std::vector<NamedParameter>& parameters) const;

  // Names of the layers; empty for flat groups.
  const std::vector<std::string>& layers() const { return layers_; }

  // Throws Error when `given` bounds (or thresholds) are not one for each group.
  void CheckOneForEach(std::string_view what, std::size_t given) const;

 private:
  bool flat_ = true;
  std::vector<std::string> layers_;
};

// One number for each group as a column [groups, 1] beside the norms [groups, examples].
//
// The column is copied to the device of the norms once and kept, so that a step copies nothing and
// waits for nothing. Not for use from several threads at once.
class GroupColumn {
 public:
  explicit GroupColumn(std::vector<double> values) : values_(std::move(values)) {}
  const std::vector<double>& values() const { return values_; }
  const at::Tensor& OnDeviceOf(const at::Tensor& norms) const;

 private:
  std::vector<double> values_;
  mutable at::Tensor column_;
};

// A factor is a rounded quotient bound / norm, so factor * norm may exceed the bound by an ulp.
// Dividing a bound that is smaller by 8 units of roundoff keeps factor * norm <= bound in exact
// arithmetic: (1 - 8u)(1 + u)^2 < 1, one u for this product and one for the quotient.
inline double BelowBound(double bound) { return bound * (1 - 0x1p-50); }

// min(1, below / norm), the factors of ordinary clipping. A subnormal quotient has no relative
// accuracy and becomes 0.
at::Tensor FactorsToBound(const GroupColumn& below, const at::Tensor& norms);

// One bound C_l for each group with sqrt(sum C_l^2) = total (to rounding: the sensitivity is
// computed from the bounds, not from the total).
std::vector<ClipNorm> EqualBounds(const ClippingGroups& groups, ClipNorm total);
std::vector<double> Values(const std::vector<ClipNorm>& bounds);
std::vector<double> ValuesBelow(const std::vector<ClipNorm>& bounds);

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_CLIPPING_GROUPS_H_
