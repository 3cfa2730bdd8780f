// A classifier by name, ready to be trained: its parameters and its forward pass.
//
// A model may begin with a part that has nothing to train (wavelet scattering, a frozen backbone).
// Where that part looks at one example at a time its output is a fixed function of the record, so
// it is computed once for each record and the rest is trained on that: `features` and `forward`.
#ifndef SORDINO_MODELS_MODEL_H_
#define SORDINO_MODELS_MODEL_H_

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sordino {

// What a model is made for.
struct ModelShape {
  std::vector<std::int64_t>
      input;            // of one example: {channels, height, width}, {features}, {length}
  bool tokens = false;  // input is {length} of token ids; 0 is padding
  std::int64_t vocabulary = 0;
  std::int64_t classes = 0;
  bool predicts_number = false;  // the model has one output, the number, and classes is 1
  // How the images were normalised: channel c of an input is (pixel - mean[c]) / deviation[c] with
  // pixels in [0, 1]. Empty: inputs are the pixels. Models with fixed features look at pixels
  // (scatternet-linear, mobilenet) and undo it; the others take inputs as they come.
  std::vector<double> mean = {};
  std::vector<double> deviation = {};
};

struct ModelOptions {
  // "relu", "tanh", "sigmoid", "gelu", "silu", "elu"; empty: the model's own
  std::string activation = {};
  std::int64_t width = 0;  // hidden width where the model has one; 0: the model's own
  // A safetensors file with a tensor for every parameter; empty: none. The last layer
  // (`classifier`) may be absent or have another number of classes and then starts fresh.
  std::string pretrained = {};
  std::vector<std::string> freeze = {};  // parameters whose name begins with one of these
  std::uint64_t seed = 0;                // of the initial weights
};

class Model {
 public:
  virtual ~Model() = default;
  virtual std::string_view name() const = 0;

  // All parameters, named as in the saved file; those that are frozen do not require a gradient.
  virtual std::vector<std::pair<std::string, at::Tensor>> Parameters() const = 0;

  // Whether Features() is more than the identity: computed once for each record, without autograd.
  virtual bool HasFeatures() const { return false; }
  // Inputs as data/batch_loader.h gives them to what Forward takes.
  virtual at::Tensor Features(const at::Tensor& inputs) const { return inputs; }

  // Features(inputs), [n, ...], to logits [n, classes], or to the predicted numbers [n, 1].
  virtual at::Tensor Forward(const at::Tensor& features) const = 0;

  // Training mode (dropout) or evaluation mode.
  virtual void Train(bool on) = 0;

  // A sentence for people: "cnn-mnist: 26,010 parameters, of which 26,010 are trained".
  virtual std::string Description() const = 0;
};

std::span<const std::string_view> ModelNames();

// Float32 on the device. The initial weights depend on the seed alone: libtorch draws them from its
// global CPU generator, which is seeded for this call and put back after it. Calls wait for each
// other; another thread that draws from that generator meanwhile would change them.
//
// Throws Error for a name that is not known (with the nearest one), a model that does not fit the
// shape (with what it needs), an option that the model does not have, a pretrained file that does
// not fit, or a prefix of `freeze` that names nothing.
std::unique_ptr<Model> MakeModel(std::string_view name, const ModelShape& shape,
                                 const ModelOptions& options, c10::Device device);

// For models that are made elsewhere, from their Parameters().
namespace internal {

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

// Throws Error unless the tensors of `file` are those of the parameters. A parameter whose name
// begins with `classifier` may be absent or of another shape, and is then left as it is. If
// `classifier` is empty, every tensor must match.
void LoadPretrained(const NamedTensors& parameters, const NamedTensors& tensors,
                    const std::string& file, std::string_view classifier);
// Throws Error for a prefix that no parameter begins with.
void Freeze(const NamedTensors& parameters, const std::vector<std::string>& prefixes);
// "name: 26,010 parameters, of which 25,680 are trained".
std::string Describe(std::string_view name, const NamedTensors& parameters);

}  // namespace internal

}  // namespace sordino

#endif  // SORDINO_MODELS_MODEL_H_
