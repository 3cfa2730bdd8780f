#include "sordino/gradients/script_model.h"

#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/csrc/jit/serialization/import.h>

#include "sordino/base/error.h"

namespace sordino {

ScriptModel::ScriptModel(const torch::jit::Module& module)
    : module_(std::make_shared<torch::jit::Module>(module)) {}

std::vector<NamedParameter> ScriptModel::Parameters() const {
  std::vector<NamedParameter> parameters;
  for (const auto& parameter : module_->named_parameters()) {
    parameters.push_back({parameter.name, parameter.value});
  }
  return parameters;
}

at::Tensor ScriptModel::Forward(const std::vector<at::Tensor>& inputs) const {
  // The setting belongs to the thread, so it is made for every run.
  const torch::jit::GraphOptimizerEnabledGuard plain_graph(false);
  const c10::IValue output =
      module_->forward(std::vector<c10::IValue>(inputs.begin(), inputs.end()));
  if (!output.isTensor()) {
    throw Error("The script module returns a " + output.tagKind() +
                " and must return one tensor; return the tensor that the loss is computed from.");
  }
  return output.toTensor();
}

void ScriptModel::Train(bool on) const { module_->train(on); }

ScriptModel LoadScriptModel(const std::filesystem::path& file, c10::Device device) {
  if (!std::filesystem::is_regular_file(file)) {
    throw Error("The model file '" + file.string() +
                "' does not exist; give a file that torch.jit.save wrote.");
  }
  try {
    return ScriptModel(torch::jit::load(file.string(), device));
  } catch (const c10::Error& error) {
    throw Error("The model file '" + file.string() + "' is no TorchScript module (" +
                error.what_without_backtrace() + "); give a file that torch.jit.save wrote.");
  }
}

}  // namespace sordino
