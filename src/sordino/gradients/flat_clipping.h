// Flat clipping: one factor for the whole gradient of an example (Abadi et al. 2016, arXiv
// 1607.00133).
//
//     factor = min(1, C / ||g||),   bound C.
#ifndef SORDINO_GRADIENTS_FLAT_CLIPPING_H_
#define SORDINO_GRADIENTS_FLAT_CLIPPING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "sordino/base/quantity.h"
#include "sordino/gradients/clipping_groups.h"
#include "sordino/gradients/clipping_policy.h"

namespace sordino {

class FlatClipping : public ClippingPolicy {
 public:
  explicit FlatClipping(ClipNorm bound);

  std::vector<std::int64_t> Groups(const std::vector<NamedParameter>& parameters) const override;
  at::Tensor Factors(const at::Tensor& norms) const override;
  const GroupColumn* ToBound() const override { return &below_; }
  std::vector<double> Bounds() const override;
  std::vector<double> Numbers() const override;
  std::string Description() const override;

 private:
  ClipNorm bound_;
  GroupColumn below_;
};

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_FLAT_CLIPPING_H_
