// What an operation of ours is compared by with one of libtorch.
#ifndef SORDINO_GRADIENTS_TESTING_DERIVATIVES_H_
#define SORDINO_GRADIENTS_TESTING_DERIVATIVES_H_

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include <vector>

namespace sordino {

// The value, its first derivatives by the inputs, and second ones.
inline std::vector<at::Tensor> WithDerivatives(const at::Tensor& value,
                                               const std::vector<at::Tensor>& inputs) {
  std::vector<at::Tensor> all = {value};
  const auto first = torch::autograd::grad({value.pow(3).sum()}, inputs, {}, true, true);
  at::Tensor sum = first[0].sum();
  for (const at::Tensor& gradient : first) {
    all.push_back(gradient);
    sum = sum + gradient.square().sum();
  }
  for (const at::Tensor& gradient : torch::autograd::grad({sum}, inputs)) all.push_back(gradient);
  return all;
}

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_TESTING_DERIVATIVES_H_
