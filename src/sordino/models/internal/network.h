// What the named models are made of: a torch::nn module with a forward pass in two parts.
//
// The last layer of every network is registered as `classifier`, so that pretrained weights of
// another number of classes can leave it out.
#ifndef SORDINO_MODELS_INTERNAL_NETWORK_H_
#define SORDINO_MODELS_INTERNAL_NETWORK_H_

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "sordino/models/model.h"

namespace sordino::internal {

class Network : public torch::nn::Module {
 public:
  virtual bool HasFeatures() const { return false; }
  virtual at::Tensor Features(const at::Tensor& inputs) { return inputs; }
  virtual at::Tensor Forward(const at::Tensor& features) = 0;
  // Tensors of a pretrained file under the names and in the layout of this network.
  virtual NamedTensors Adapt(NamedTensors tensors) const { return tensors; }
};

using NetworkPointer = std::shared_ptr<Network>;
using Activation = at::Tensor (*)(const at::Tensor&);

// `otherwise` when the options name none; throws Error for a name that is not known.
Activation ChooseActivation(const ModelOptions& options, std::string_view otherwise);

// What keeps the mean square of a signal from layer to layer: 1 over the root of the mean square
// that the activation makes of standard normal values.
double GainOf(Activation activation);

// The options' width or `otherwise`; throws Error unless it is in [1, 65536].
std::int64_t ChooseWidth(const ModelOptions& options, std::int64_t otherwise);

struct ImageSize {
  std::int64_t channels;
  std::int64_t height;
  std::int64_t width;
};

// Throws Error unless the shape is that of images with at least `smallest` pixels on a side.
ImageSize ImagesFor(std::string_view model, const ModelShape& shape, std::int64_t smallest);

// Throws Error unless the shape is that of token ids.
void CheckTokensFor(std::string_view model, const ModelShape& shape);

// Takes inputs that were normalised as the shape says back to pixels in [0, 1].
class ToPixels {
 public:
  explicit ToPixels(const ModelShape& shape);
  at::Tensor operator()(const at::Tensor& images) const;

 private:
  at::Tensor scale_;  // [channels, 1, 1], undefined when inputs are pixels
  at::Tensor shift_;
};

}  // namespace sordino::internal

#endif  // SORDINO_MODELS_INTERNAL_NETWORK_H_
