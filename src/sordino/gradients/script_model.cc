#include "sordino/gradients/script_model.h"

#include <ATen/core/function_schema.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/frontend/error_report.h>
#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/jit/runtime/interpreter.h>
#include <torch/csrc/jit/serialization/import.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <utility>

#include "sordino/base/error.h"
#include "sordino/gradients/internal/crash_sentence.h"
#include "sordino/gradients/internal/isolation/isolation.h"
#include "sordino/gradients/internal/isolation/script_graph.h"

namespace sordino {
namespace {

c10::IValue CopyOf(const c10::IValue& value) {
  if (value.isTensor()) {
    return value.toTensor().defined() ? value.toTensor().clone() : value.toTensor();
  }
  const bool is_container = value.isList() || value.isGenericDict() || value.isTuple();
  return is_container ? value.deepcopy() : value;
}

}  // namespace

class ScriptModel::Form {
 public:
  explicit Form(const torch::jit::Module& module)
      : parts_(MakeScriptGraph(module)),
        code_(parts_.graph, "forward"),
        schema_(module.get_method("forward").function().getSchema()),
        self_(module._ivalue()) {}

  c10::IValue Run(const std::vector<at::Tensor>& inputs) const {
    const bool is_isolated = std::any_of(inputs.begin(), inputs.end(), IsWrapped);
    torch::jit::Stack stack = Arguments(inputs);
    // Tensors that the graph does not write to, with the number of writes to them so far.
    std::vector<std::pair<const CapturedValue*, std::uint32_t>> kept;
    kept.reserve(parts_.captured.size());
    for (const CapturedValue& captured : parts_.captured) {
      const c10::IValue& value = captured.Value();
      const bool may_be_written = captured.may_be_written && !captured.is_parameter;
      if (may_be_written && (is_isolated || !is_training_ || !value.isTensor())) {
        stack.push_back(CopyOf(value));
        continue;
      }
      stack.push_back(value);
      if (!may_be_written && value.isTensor() && value.toTensor().defined()) {
        kept.emplace_back(&captured, value.toTensor()._version());
      }
    }
    // A script may leave it off.
    const at::AutoGradMode gradients(at::GradMode::is_enabled());
    try {
      torch::jit::InterpreterState(code_).run(stack);
    } catch (...) {
      CheckKept(kept);
      throw;
    }
    CheckKept(kept);
    return stack.size() == 1 ? stack.front() : c10::IValue();
  }

  void Train(bool on) const { is_training_ = on; }

 private:
  using Kept = std::vector<std::pair<const CapturedValue*, std::uint32_t>>;

  // The inputs, with the default values of those that are not given.
  torch::jit::Stack Arguments(const std::vector<at::Tensor>& inputs) const {
    torch::jit::Stack stack;
    stack.reserve(parts_.graph->inputs().size() + 1);
    stack.emplace_back(self_);
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      const bool copied = k < parts_.may_write_input.size() && parts_.may_write_input[k];
      stack.push_back(copied ? CopyOf(inputs[k]) : c10::IValue(inputs[k]));
    }
    schema_.checkAndNormalizeInputs(stack);
    stack.erase(stack.begin());
    return stack;
  }

  static void CheckKept(const Kept& kept) {
    for (const auto& [captured, version] : kept) {
      if (captured->Value().toTensor()._version() == version) continue;
      throw NotPerExample("the script writes to its parameter '" + captured->name +
                          "'; leave the parameters to the optimizer.");
    }
  }

  const ScriptGraph parts_;
  const torch::jit::Code code_;
  const c10::FunctionSchema schema_;
  const c10::IValue self_;
  // Of all copies of the model. The module may have no such attribute.
  mutable bool is_training_ = true;
};

ScriptModel::ScriptModel(const torch::jit::Module& module)
    : module_(std::make_shared<torch::jit::Module>(module)),
      form_(std::make_shared<const Form>(module)) {}

std::vector<NamedParameter> ScriptModel::Parameters() const {
  std::vector<NamedParameter> parameters;
  for (const auto& parameter : module_->named_parameters()) {
    parameters.push_back({parameter.name, parameter.value});
  }
  return parameters;
}

at::Tensor ScriptModel::Forward(const std::vector<at::Tensor>& inputs) const {
  const c10::IValue output = form_->Run(inputs);
  if (!output.isTensor()) {
    throw Error("the script module returns a " + output.tagKind() +
                " and must return one tensor; return the tensor that the loss is computed from.");
  }
  return output.toTensor();
}

void ScriptModel::Train(bool on) const {
  module_->train(on);
  form_->Train(on);
}

ScriptModel LoadScriptModel(const std::filesystem::path& file, c10::Device device) {
  if (!std::filesystem::is_regular_file(file)) {
    throw Error("the model file '" + file.string() +
                "' does not exist; give a file that torch.jit.save wrote.");
  }
  const auto refusal = [&](std::string_view why) {
    while (why.starts_with('\n')) why.remove_prefix(1);
    return Error("the model file '" + file.string() + "' is no TorchScript module (" +
                 std::string(why.substr(0, why.find('\n'))) +
                 "); give a file that torch.jit.save wrote.");
  };
  const internal::CrashSentence guard("the model file '" + file.string() +
                                      "' cannot be loaded: it is damaged, or its code is nested "
                                      "too deeply; give a file that torch.jit.save wrote.");
  try {
    const torch::jit::Module module = torch::jit::load(file.string(), device);
    if (!module.find_method("forward")) throw refusal("it has no forward method");
    return ScriptModel(module);
  } catch (const Error&) {
    throw;
  } catch (const c10::Error& error) {
    throw refusal(error.what_without_backtrace());
  } catch (const torch::jit::ErrorReport& error) {
    throw refusal(error.what());
  } catch (const std::exception&) {
    // Of the standard library ("stoull"): its words say nothing of the file.
    throw refusal("it is damaged");
  }
}

}  // namespace sordino
