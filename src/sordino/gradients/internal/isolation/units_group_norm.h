// Group norm of every unit's images on a GPU, as one node of the graph whose gradients of scale and
// shift are there for each image (device/group_norm.h).
#ifndef SORDINO_GRADIENTS_INTERNAL_ISOLATION_UNITS_GROUP_NORM_H_
#define SORDINO_GRADIENTS_INTERNAL_ISOLATION_UNITS_GROUP_NORM_H_

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/saved_variable.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "sordino/kernels/group_norm.h"

namespace sordino {

class UnitsGroupNormBackward : public torch::autograd::Node {
 public:
  // Inputs, in the order of the edges.
  enum Slot : std::size_t { kInput = 0, kScale = 1, kShift = 2, kSlots = 3 };

  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override;
  void release_variables() override;
  std::string name() const override { return "NativeGroupNormBackward"; }

  // Of each image, for the gradient that arrives at the output. The last answer is kept until the
  // node runs: the uses of the node and the node itself ask for the same one after another.
  GroupNormGradients GradientsOfImages(const at::Tensor& gradient);

  torch::autograd::SavedVariable input_;  // [images, channels, ...]
  torch::autograd::SavedVariable scale_;
  torch::autograd::SavedVariable shift_;
  at::Tensor mean_;  // [images, groups]
  at::Tensor deviation_;
  double eps_ = 0;

 private:
  torch::autograd::variable_list Differentiable(const at::Tensor& gradient);

  at::Tensor asked_;
  GroupNormGradients answer_;
};

// Whether UnitsGroupNorm does for these tensors what libtorch would.
bool HasUnitsGroupNorm(const at::Tensor& input, std::int64_t groups, const at::Tensor& scale,
                       const at::Tensor& shift);

// Plain tensors; recorded like any operation.
at::Tensor UnitsGroupNorm(const at::Tensor& input, std::int64_t groups, const at::Tensor& scale,
                          const at::Tensor& shift, double eps);

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_INTERNAL_ISOLATION_UNITS_GROUP_NORM_H_
