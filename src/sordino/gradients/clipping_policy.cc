#include "sordino/gradients/clipping_policy.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/div.h>
#include <ATen/ops/zeros.h>

#include <cmath>

namespace sordino {

double ClippingPolicy::LargestFactor() const {
  if (ToBound() != nullptr) return 1;
  const auto groups = static_cast<std::int64_t>(Bounds().size());
  return Factors(at::zeros({groups, 1}, at::TensorOptions(at::kDouble))).max().item<double>();
}

double TransformCancellation(const CoordinateTransform& transform, double bound,
                             double largest_factor) {
  double squared = 0;
  for (std::size_t i = 0; i < transform.centre.size(); ++i) {
    const at::Tensor shift =
        at::div(transform.centre[i].to(at::kDouble), transform.scale[i].to(at::kDouble));
    squared += shift.square().sum().item<double>();
  }
  return 1 + 2 * largest_factor * std::sqrt(squared) / bound * (1 + 1e-6);
}

}  // namespace sordino
