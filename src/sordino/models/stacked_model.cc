#include "sordino/models/stacked_model.h"

#include <ATen/Functions.h>

#include "sordino/models/internal/network.h"
#include "sordino/models/internal/stacked_layers.h"

namespace sordino {
namespace {

using at::Tensor;
using StackedParameters = std::vector<Tensor>;

// The networks of internal/image_networks.cc, with parameters in the order of their registration.

Tensor StackedLogistic(const StackedParameters& p, const Tensor& x) {
  return internal::StackedLinear(x.flatten(2), p[0], p[1]);
}

Tensor StackedMlp(internal::Activation activation, const StackedParameters& p, const Tensor& x) {
  Tensor y = x.flatten(2);
  for (std::size_t layer = 0; layer < 2; ++layer) {
    y = activation(internal::StackedLinear(y, p[2 * layer], p[2 * layer + 1]));
  }
  return internal::StackedLinear(y, p[4], p[5]);
}

Tensor StackedCnnMnist(internal::Activation activation, const StackedParameters& p,
                       const Tensor& x) {
  const Tensor first = internal::StackedPool(activation(internal::StackedConvolve(
      x.permute({0, 1, 3, 4, 2}), p[0], p[1], {.stride = 2, .padding = 3})));
  const Tensor second = internal::StackedPool(
      activation(internal::StackedConvolve(first, p[2], p[3], {.stride = 2})));
  // The linear layer takes the channels first.
  const Tensor flat = second.permute({0, 1, 4, 2, 3}).flatten(2);
  return internal::StackedLinear(activation(internal::StackedLinear(flat, p[4], p[5])), p[6], p[7]);
}

}  // namespace

StackedForward FindStackedForward(std::string_view name, const ModelOptions& options) {
  if (name == "logistic") return StackedLogistic;
  const auto with_activation = [&](Tensor (*forward)(internal::Activation, const StackedParameters&,
                                                     const Tensor&)) -> StackedForward {
    return [forward, activation = internal::ChooseActivation(options, "relu")](
               const StackedParameters& parameters, const Tensor& inputs) {
      return forward(activation, parameters, inputs);
    };
  };
  if (name == "mlp") return with_activation(StackedMlp);
  if (name == "cnn-mnist") return with_activation(StackedCnnMnist);
  return {};
}

}  // namespace sordino
