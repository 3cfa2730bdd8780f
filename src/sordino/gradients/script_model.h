// TorchScript modules from a file.
//
// A script is code that somebody else may have written. It is turned into one graph of operations
// that depend on their inputs alone (internal/isolation/script_graph.h), once, and that graph is
// all that ever runs: the methods of the module are not called. What it reads of the module are
// inputs of the graph. In an isolated pass (isolation.h), and in evaluation mode, it gets copies of
// what it may write to, so it keeps nothing; an ordinary pass of a training may write to buffers
// (running statistics). A write to a parameter is an error in all of them.
//
// The graph runs in libtorch's interpreter without its optimizations, which would fuse operations
// that need gradients into one node of the autograd graph, whose inside the tape cannot read.
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
  // Throws Error for a script that is not made of such operations.
  explicit ScriptModel(const torch::jit::Module& module);

  // Names as in the module: "encoder.0.weight". Frozen parameters are listed too.
  std::vector<NamedParameter> Parameters() const;

  // What the forward method computes; throws Error unless it is one tensor.
  at::Tensor Forward(const std::vector<at::Tensor>& inputs) const;

  // Training mode (dropout on) or evaluation mode.
  void Train(bool on) const;

 private:
  class Form;
  std::shared_ptr<torch::jit::Module> module_;
  std::shared_ptr<const Form> form_;
};

// Throws Error when the file is missing or holds no TorchScript module.
ScriptModel LoadScriptModel(const std::filesystem::path& file, c10::Device device);

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_SCRIPT_MODEL_H_
