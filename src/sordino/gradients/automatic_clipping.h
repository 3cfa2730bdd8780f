// Automatic clipping, AUTO-S (Bu, Wang, Zha, Karypis, arXiv 2206.07136): every gradient is
// normalised, with a stability constant gamma that keeps small gradients small.
//
//     factor = C / (||g|| + gamma),   bound C,   gamma > 0 in the units of the gradient.
//
// ||factor * g|| = C ||g|| / (||g|| + gamma) < C for every g. C only scales the step: with C = 1
// there is no clipping norm to tune. A factor may exceed 1, up to C / gamma for a gradient of
// zero.
#ifndef SORDINO_GRADIENTS_AUTOMATIC_CLIPPING_H_
#define SORDINO_GRADIENTS_AUTOMATIC_CLIPPING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "sordino/base/quantity.h"
#include "sordino/gradients/clipping_groups.h"
#include "sordino/gradients/clipping_policy.h"

namespace sordino {

class AutomaticClipping : public ClippingPolicy {
 public:
  // The stability constant of the paper.
  static constexpr double kGamma = 0.01;

  // Throws Error unless gamma is in [1e-12, 1e12]: below, the factor of a gradient that is zero
  // but for rounding has no use and leaves the range of float32.
  explicit AutomaticClipping(ClipNorm bound, double gamma = kGamma);
  // One bound for each layer, in the order in which the layers appear.
  AutomaticClipping(const std::vector<NamedParameter>& parameters, std::vector<ClipNorm> bounds,
                    double gamma = kGamma);

  std::vector<std::int64_t> Groups(const std::vector<NamedParameter>& parameters) const override;
  at::Tensor Factors(const at::Tensor& norms) const override;
  std::vector<double> Bounds() const override;
  std::vector<double> Numbers() const override;
  std::string Description() const override;

 private:
  AutomaticClipping(ClippingGroups groups, std::vector<ClipNorm> bounds, double gamma);

  ClippingGroups groups_;
  std::vector<ClipNorm> bounds_;
  GroupColumn below_;
  double gamma_;
};

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_AUTOMATIC_CLIPPING_H_
