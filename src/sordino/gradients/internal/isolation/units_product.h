// The product of every unit's rows with one matrix, x w + b or x w^T + b, as one node of the graph.
//
// libtorch writes it for wrapped tensors with two views, a transpose and a product: four nodes that
// every backward pass runs and every step reads. Linear layers are most of what small models do.
#ifndef SORDINO_GRADIENTS_INTERNAL_ISOLATION_UNITS_PRODUCT_H_
#define SORDINO_GRADIENTS_INTERNAL_ISOLATION_UNITS_PRODUCT_H_

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/saved_variable.h>

#include <string>

namespace sordino {

class UnitsProductBackward : public torch::autograd::Node {
 public:
  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override;
  void release_variables() override;
  std::string name() const override { return "LinearBackward"; }

  // The inputs, in the order of the edges; an undefined bias is none.
  torch::autograd::SavedVariable input_;   // [..., features]
  torch::autograd::SavedVariable matrix_;  // [features, outputs], or turned: [outputs, features]
  bool is_turned_ = false;
};

// Whether UnitsProduct does for these tensors what libtorch would: real numbers of one type, and no
// derivatives in forward mode.
bool HasUnitsProduct(const at::Tensor& input, const at::Tensor& matrix, const at::Tensor& bias);

// [..., outputs], plain tensors; recorded like any operation.
at::Tensor UnitsProduct(const at::Tensor& input, const at::Tensor& matrix, const at::Tensor& bias,
                        bool is_turned);

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_INTERNAL_ISOLATION_UNITS_PRODUCT_H_
