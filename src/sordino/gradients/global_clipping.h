// Global clipping (Bu, Wang, Dai, Su, arXiv 2106.07830): examples within a threshold Z are all
// scaled by the same factor, examples beyond it are dropped.
//
//     factor = C / Z if ||g|| <= Z, else 0,   bound C.
//
// The direction of the summed gradient is then not bent towards small gradients as by local
// clipping. Layerwise: the same for each layer with its own C_l and Z_l. Choose Z large enough
// that few examples are beyond it; the factor makes up for it, so a larger C with the same C / Z
// changes nothing but the noise.
#ifndef SORDINO_GRADIENTS_GLOBAL_CLIPPING_H_
#define SORDINO_GRADIENTS_GLOBAL_CLIPPING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "sordino/base/quantity.h"
#include "sordino/gradients/clipping_groups.h"
#include "sordino/gradients/clipping_policy.h"

namespace sordino {

struct GlobalBound {
  ClipNorm bound;      // C: the norm of a scaled gradient is at most this
  ClipNorm threshold;  // Z: gradients of a larger norm are dropped
};

class GlobalClipping : public ClippingPolicy {
 public:
  explicit GlobalClipping(GlobalBound bound);
  // One bound for each layer, in the order in which the layers appear; throws Error otherwise.
  GlobalClipping(const std::vector<NamedParameter>& parameters, std::vector<GlobalBound> bounds);

  std::vector<std::int64_t> Groups(const std::vector<NamedParameter>& parameters) const override;
  at::Tensor Factors(const at::Tensor& norms) const override;
  std::vector<double> Bounds() const override;
  std::vector<double> Numbers() const override;
  std::string Description() const override;

 private:
  GlobalClipping(ClippingGroups groups, std::vector<GlobalBound> bounds);

  ClippingGroups groups_;
  std::vector<GlobalBound> bounds_;
  GroupColumn thresholds_;
  GroupColumn factors_;
};

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_GLOBAL_CLIPPING_H_
