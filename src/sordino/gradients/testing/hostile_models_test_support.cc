#include "sordino/gradients/testing/hostile_models_test_support.h"

#include <ATen/ATen.h>
#include <torch/csrc/jit/api/module.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <fstream>
#include <string_view>
#include <utility>

namespace sordino {
namespace {

using Json = nlohmann::json;

at::Tensor Filled(const Json& sizes, const Json& value) {
  const auto shape = sizes.get<std::vector<std::int64_t>>();
  if (value.is_string()) return at::randn(shape) * 0.5;
  return at::full(shape, value.get<double>());
}

void AddAttribute(torch::jit::Module& module, const std::string& name, const Json& attribute) {
  const std::string type = attribute[0].get<std::string>();
  const auto add = [&](const c10::TypePtr& of, c10::IValue value) {
    module.register_attribute(name, of, std::move(value));
  };
  if (type == "int") add(c10::IntType::get(), std::int64_t{0});
  if (type == "float") add(c10::FloatType::get(), 0.0);
  if (type == "bool") add(c10::BoolType::get(), attribute[1].get<bool>());
  if (type == "List[float]") add(c10::ListType::ofFloats(), c10::List<double>());
  if (type == "List[Tensor]") add(c10::ListType::ofTensors(), c10::List<at::Tensor>());
  if (type == "Optional[Tensor]") add(c10::OptionalType::ofTensor(), c10::IValue());
  if (type == "Dict[str,Tensor]") {
    add(c10::DictType::create(c10::StringType::get(), c10::TensorType::get()),
        c10::Dict<std::string, at::Tensor>());
  }
}

}  // namespace

const std::vector<Json>& HostileModels() {
  static const auto models =
      Json::parse(std::ifstream(SORDINO_TESTDATA "/hostile_models.json")).get<std::vector<Json>>();
  return models;
}

torch::jit::Module MakeHostileScript(const Json& model, c10::Device device) {
  at::manual_seed(11);
  torch::jit::Module module("Script");
  const Json init = model.value("parameter_init", Json::object());
  for (const auto& [name, sizes] : model["parameters"].items()) {
    const at::Tensor value = Filled(sizes, init.contains(name) ? init[name] : Json("randn"));
    module.register_parameter(name, value.clone().set_requires_grad(true), false);
  }
  if (model.contains("buffers")) {
    for (const auto& [name, buffer] : model["buffers"].items()) {
      const at::Tensor value = Filled(buffer[0], buffer[1]);
      module.register_buffer(name, buffer.size() > 2 ? value.to(at::kLong) : value.clone());
    }
  }
  if (model.contains("attributes")) {
    for (const auto& [name, attribute] : model["attributes"].items()) {
      AddAttribute(module, name, attribute);
    }
  }
  const std::string source = model["source"].get<std::string>();
  module.define(device.is_cpu() ? source : SourceOnDeviceOfInput(source));
  module.train();
  if (!device.is_cpu()) module.to(device);
  return module;
}

std::string SourceOnDeviceOfInput(const std::string& source) {
  constexpr std::array<std::string_view, 11> kMakers = {"zeros", "ones",   "eye",     "arange",
                                                        "rand",  "randn",  "randint", "randperm",
                                                        "full",  "tensor", "empty"};
  std::string result = source;
  for (const std::string_view maker : kMakers) {
    const std::string call = "torch." + std::string(maker) + "(";
    for (std::size_t at = result.find(call); at != std::string::npos;
         at = result.find(call, at + 1)) {
      std::size_t end = at + call.size();
      for (int depth = 1; end < result.size(); ++end) {
        if (result[end] == '(') ++depth;
        if (result[end] == ')' && --depth == 0) break;
      }
      result.insert(end, ", device=x.device");
    }
  }
  return result;
}

bool MayDraw(const Json& model) {
  constexpr std::array<const char*, 6> kWords = {"rand",        "drop",    "bernoulli",
                                                 "multinomial", "normal(", "normal_("};
  const std::string source = model["source"].get<std::string>();
  return std::any_of(kWords.begin(), kWords.end(),
                     [&](const char* word) { return source.find(word) != std::string::npos; });
}

HostileTrigger TriggerOf(const nlohmann::json& model) {
  constexpr std::int64_t kMaxWarmUp = 20;
  HostileTrigger result;
  const nlohmann::json trigger = model.value("trigger", nlohmann::json::object());
  if (trigger.contains("calls")) {
    result.warm_up = std::min(trigger["calls"].get<std::int64_t>(), kMaxWarmUp);
  }
  if (trigger.contains("batch")) result.examples = trigger["batch"].get<std::int64_t>();
  return result;
}

bool HasNumber(const std::string& refusal) {
  bool quoted = false;
  for (const char c : refusal) {
    if (c == '\'') quoted = !quoted;
    if (!quoted && std::isdigit(static_cast<unsigned char>(c)) != 0) return true;
  }
  return false;
}

}  // namespace sordino
