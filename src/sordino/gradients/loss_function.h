// What the gradients module asks of a user: parameters with names, and a function that gives one
// loss for each example of a batch.
//
// Nothing is asked of the model: plain torch::nn modules, raw parameters, TorchScript modules. A
// parameter that does not require a gradient is frozen and left out.
#ifndef SORDINO_GRADIENTS_LOSS_FUNCTION_H_
#define SORDINO_GRADIENTS_LOSS_FUNCTION_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace sordino {

struct NamedParameter {
  std::string name;  // "conv1.weight": errors name the layer by it
  at::Tensor value;  // a leaf that requires a gradient
};

// The parameters of a torch::nn or TorchScript module under their own names.
template <typename Module>
std::vector<NamedParameter> NamedParameters(const Module& module) {
  std::vector<NamedParameter> parameters;
  for (const auto& entry : module.named_parameters()) {
    if constexpr (requires { entry.key(); }) {
      parameters.push_back({entry.key(), entry.value()});
    } else {
      parameters.push_back({entry.name, entry.value});
    }
  }
  return parameters;
}

// Inputs, labels, masks: the first dimension of each tensor runs over the examples.
using Batch = std::vector<at::Tensor>;

// One loss for each example, of shape [examples]: entry i may depend on example i only.
using LossFunction = std::function<at::Tensor(const Batch&)>;

// The number of examples; throws Error when the tensors disagree or one has no dimension.
std::int64_t Examples(const Batch& batch);

// Examples [begin, end) of every tensor, as views.
Batch Slice(const Batch& batch, std::int64_t begin, std::int64_t end);

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_LOSS_FUNCTION_H_
