// Layerwise clipping: every layer of an example's gradient is clipped by its own norm.
//
//     factor_l = min(1, C_l / ||g_l||),   bound of layer l: C_l,   of the gradient: sqrt(sum
//     C_l^2).
//
// The second bound is Pythagoras: layers are disjoint coordinates. What a layer is, see
// clipping_groups.h.
#ifndef SORDINO_GRADIENTS_LAYERWISE_CLIPPING_H_
#define SORDINO_GRADIENTS_LAYERWISE_CLIPPING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "sordino/base/quantity.h"
#include "sordino/gradients/clipping_groups.h"
#include "sordino/gradients/clipping_policy.h"

namespace sordino {

// Bounds C_l with sqrt(sum C_l^2) = total (to rounding: the sensitivity is computed from the
// bounds, not from the total).
std::vector<ClipNorm> EqualBounds(const ClippingGroups& groups, ClipNorm total);
// C_l proportional to the square root of the layer's number of coordinates: every coordinate gets
// the same share of the squared total.
std::vector<ClipNorm> BoundsBySize(const ClippingGroups& groups, ClipNorm total);

class LayerwiseClipping : public ClippingPolicy {
 public:
  // One bound for each layer, in the order in which the layers appear; throws Error otherwise.
  LayerwiseClipping(ClippingGroups groups, std::vector<ClipNorm> bounds);
  LayerwiseClipping(const std::vector<NamedParameter>& parameters, std::vector<ClipNorm> bounds);
  static LayerwiseClipping Equal(const std::vector<NamedParameter>& parameters, ClipNorm total);
  static LayerwiseClipping BySize(const std::vector<NamedParameter>& parameters, ClipNorm total);

  std::vector<std::int64_t> Groups(const std::vector<NamedParameter>& parameters) const override;
  at::Tensor Factors(const at::Tensor& norms) const override;
  const GroupColumn* ToBound() const override { return &below_; }
  std::vector<double> Bounds() const override;
  std::vector<double> Numbers() const override;
  std::string Description() const override;

 private:
  ClippingGroups groups_;
  std::vector<ClipNorm> bounds_;
  GroupColumn below_;
};

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_LAYERWISE_CLIPPING_H_
