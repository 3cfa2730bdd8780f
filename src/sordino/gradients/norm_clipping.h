// Clipping to a norm: the gradient of an example, or of each of its layers, is made no longer than
// a bound (Abadi et al. 2016, arXiv 1607.00133).
//
//     factor_l = min(1, C_l / ||g_l||),   bound of group l: C_l,   of the gradient: sqrt(sum
//     C_l^2).
//
// The second bound is Pythagoras: groups are disjoint coordinates. Flat clipping has one group and
// one factor for the whole gradient, layerwise clipping one for each layer (clipping_groups.h).
#ifndef SORDINO_GRADIENTS_NORM_CLIPPING_H_
#define SORDINO_GRADIENTS_NORM_CLIPPING_H_

#include <cstdint>
#include <vector>

#include "sordino/base/quantity.h"
#include "sordino/gradients/clipping_groups.h"
#include "sordino/gradients/clipping_policy.h"

namespace sordino {

class NormClipping : public ClippingPolicy {
 public:
  // One bound for each group; throws Error otherwise.
  NormClipping(ClippingGroups groups, const std::vector<ClipNorm>& bounds);
  // For each layer, with bounds C_l = C / sqrt(layers).
  static NormClipping Layerwise(const std::vector<NamedParameter>& parameters, ClipNorm total);

  std::vector<std::int64_t> Groups(const std::vector<NamedParameter>& parameters) const override;
  at::Tensor Factors(const at::Tensor& norms) const override;
  const GroupColumn* ToBound() const override { return &below_; }
  std::vector<double> Bounds() const override { return bounds_; }
  std::vector<double> Numbers() const override { return bounds_; }

 private:
  ClippingGroups groups_;
  std::vector<double> bounds_;
  GroupColumn below_;
};

class FlatClipping : public NormClipping {
 public:
  explicit FlatClipping(ClipNorm bound) : NormClipping(ClippingGroups::Flat(), {bound}) {}
};

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_NORM_CLIPPING_H_
