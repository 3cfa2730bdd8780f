// TorchScript modules from a file.
//
// libtorch's script executor watches the first runs of a module and then fuses operations that
// need gradients into one node of the autograd graph, whose inside the tape cannot read. A
// ScriptModel runs its module without these optimizations, so that its graph is the one that the
// same operations make in C++. What it prints is dropped. What an isolated pass (isolation.h)
// does to its attributes is undone, and an attribute that holds a value of an example is an error.
#ifndef SORDINO_GRADIENTS_SCRIPT_MODEL_H_
#define SORDINO_GRADIENTS_SCRIPT_MODEL_H_

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "sordino/gradients/loss_function.h"

namespace torch::jit {
struct Module;
}  // namespace torch::jit

namespace sordino {

// Copies share the module.
class ScriptModel {
 public:
  // Changes the code of the module where it could not run isolated (script_rewriting.h).
  explicit ScriptModel(const torch::jit::Module& module);

  // Names as in the module: "encoder.0.weight". Frozen parameters are listed too.
  std::vector<NamedParameter> Parameters() const;

  // The forward method; throws Error unless it returns one tensor.
  at::Tensor Forward(const std::vector<at::Tensor>& inputs) const;

  // Training mode (dropout on) or evaluation mode.
  void Train(bool on) const;

 private:
  class Attributes;
  std::shared_ptr<torch::jit::Module> module_;
  std::shared_ptr<Attributes> attributes_;
};

// Throws Error when the file is missing or holds no TorchScript module.
ScriptModel LoadScriptModel(const std::filesystem::path& file, c10::Device device);

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_SCRIPT_MODEL_H_
