#include "sordino/gradients/script_model.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/frontend/error_report.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/csrc/jit/runtime/print_handler.h>
#include <torch/csrc/jit/serialization/import.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <string_view>

#include "sordino/base/error.h"
#include "sordino/gradients/internal/crash_sentence.h"
#include "sordino/gradients/internal/isolation/isolation.h"
#include "sordino/gradients/internal/isolation/script_rewriting.h"

namespace sordino {
namespace {

// A script may print its tensors, and they are private.
class NoPrinting {
 public:
  NoPrinting() {
    torch::jit::setPrintHandler([](const std::string& /*text*/) {});
  }
  ~NoPrinting() { torch::jit::setPrintHandler(before_); }
  NoPrinting(const NoPrinting&) = delete;
  NoPrinting& operator=(const NoPrinting&) = delete;

 private:
  torch::jit::PrintHandler before_ = torch::jit::getPrintHandler();
};

}  // namespace

// The attributes of a module and of all modules in it. What an isolated pass does to them is
// undone: also a counter of calls would tell how many parts a batch had.
class ScriptModel::Attributes {
 public:
  explicit Attributes(const torch::jit::Module& module) {
    for (const auto& part : module.named_modules()) {
      const std::string prefix = part.name.empty() ? "" : part.name + ".";
      const auto object = part.value._ivalue();
      for (std::size_t slot = 0; slot < object->type()->numAttributes(); ++slot) {
        if (object->getSlot(slot).isModule()) continue;
        slots_.push_back({object, slot, prefix + object->type()->getAttributeName(slot),
                          object->type()->is_parameter(slot)});
      }
    }
  }

  // Before an isolated pass.
  void Save() {
    for (Slot& slot : slots_) {
      const c10::IValue& value = slot.object->getSlot(slot.index);
      slot.value = ShallowCopy(value);
      if (!value.isTensor() || !value.toTensor().defined()) continue;
      const at::Tensor& tensor = value.toTensor();
      const bool is_known = slot.version == tensor._version() && slot.tensor.is_same(tensor);
      slot.tensor = tensor;
      slot.version = tensor._version();
      if (!slot.is_parameter && !is_known) slot.copy = tensor.detach().clone();
    }
  }

  // After it. Throws NotPerExample when an attribute holds a tensor of an example, or a parameter
  // was written to.
  void Restore() {
    std::string wrapped;
    for (Slot& slot : slots_) {
      const c10::IValue value = slot.object->getSlot(slot.index);
      if (HoldsWrapped(value)) wrapped = slot.name;
      if (!value.isTensor() || !value.is(slot.value)) {
        slot.object->setSlot(slot.index, slot.value);
      }
      if (!slot.value.isTensor() || !slot.tensor.defined()) continue;
      if (slot.tensor._version() == slot.version) continue;
      if (slot.is_parameter) {
        throw NotPerExample("the script writes to its parameter '" + slot.name +
                            "'; leave the parameters to the optimizer.");
      }
      const at::NoGradGuard no_grad;
      slot.tensor.detach().copy_(slot.copy);
      slot.version = slot.tensor._version();
    }
    if (wrapped.empty()) return;
    throw NotPerExample("the script assigns a value that depends on an example to its attribute '" +
                        wrapped + "'; keep no state between calls.");
  }

 private:
  struct Slot {
    c10::intrusive_ptr<c10::ivalue::Object> object;
    std::size_t index = 0;
    std::string name;
    bool is_parameter = false;
    c10::IValue value = {};
    at::Tensor tensor = {};
    at::Tensor copy = {};
    std::uint32_t version = 0;
  };

  // Of lists and dictionaries, which a script can change; what they hold stays the same.
  static c10::IValue ShallowCopy(const c10::IValue& value) {
    if (value.isList()) return value.toList().copy();
    if (value.isGenericDict()) return value.toGenericDict().copy();
    return value;
  }

  static bool HoldsWrapped(const c10::IValue& value) {
    if (value.isTensor()) return IsWrapped(value.toTensor());
    if (!value.isList() && !value.isTuple() && !value.isGenericDict() && !value.isObject()) {
      return false;
    }
    c10::IValue::HashAliasedIValues parts;
    value.getSubValues(parts);
    return std::any_of(parts.begin(), parts.end(), [](const c10::IValue& part) {
      return part.isTensor() && IsWrapped(part.toTensor());
    });
  }

  std::vector<Slot> slots_;
};

ScriptModel::ScriptModel(const torch::jit::Module& module)
    : module_(std::make_shared<torch::jit::Module>(module)),
      attributes_(std::make_shared<Attributes>(module)) {
  RewriteForIsolation(module);
}

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
  const NoPrinting no_printing;
  const bool is_isolated = std::any_of(inputs.begin(), inputs.end(), IsWrapped);
  if (is_isolated) attributes_->Save();
  c10::IValue output;
  try {
    output = module_->forward(std::vector<c10::IValue>(inputs.begin(), inputs.end()));
  } catch (...) {
    if (is_isolated) attributes_->Restore();
    throw;
  }
  if (is_isolated) attributes_->Restore();
  if (!output.isTensor()) {
    throw Error("the script module returns a " + output.tagKind() +
                " and must return one tensor; return the tensor that the loss is computed from.");
  }
  return output.toTensor();
}

void ScriptModel::Train(bool on) const { module_->train(on); }

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
    return ScriptModel(torch::jit::load(file.string(), device));
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
