#include "sordino/runs/internal/script_network.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/gradients/script_model.h"
#include "sordino/models/safetensors.h"

namespace sordino {
namespace {

class ScriptNetwork : public Model {
 public:
  ScriptNetwork(std::string name, ScriptModel script)
      : name_(std::move(name)), script_(std::move(script)) {}

  std::string_view name() const override { return name_; }
  internal::NamedTensors Parameters() const override {
    internal::NamedTensors parameters;
    for (const NamedParameter& parameter : script_.Parameters()) {
      parameters.emplace_back(parameter.name, parameter.value);
    }
    return parameters;
  }
  at::Tensor Forward(const at::Tensor& features) const override {
    return script_.Forward({features});
  }
  void Train(bool on) override { script_.Train(on); }
  std::string Description() const override { return internal::Describe(name_, Parameters()); }

 private:
  std::string name_;
  ScriptModel script_;
};

// Errors of the interpreter come with a trace of the script: its last line says what went wrong.
std::string LastLine(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  const std::size_t line = text.rfind('\n');
  return std::string(line == std::string_view::npos ? text : text.substr(line + 1));
}

// The weights of a run are saved at its end, when everything is paid for.
void CheckCanBeSaved(const Model& model, const std::string& file) {
  for (const auto& [name, value] : model.Parameters()) {
    if (HasSafetensorsType(value.scalar_type())) continue;
    throw Error(
        fmt::format("the script '{}' has the parameter '{}' of {}, which a run cannot save; give "
                    "the real and imaginary parts of complex numbers in a last dimension of two "
                    "and make them with view_as_complex, or make a buffer of what is not trained.",
                    file, name, c10::toString(value.scalar_type())));
  }
}

void CheckFits(const Model& model, const ModelShape& shape, const std::string& file,
               c10::Device device) {
  constexpr std::int64_t kExamples = 2;
  std::vector<std::int64_t> sizes = shape.input;
  sizes.insert(sizes.begin(), kExamples);
  const at::Tensor inputs = at::zeros(
      sizes, at::TensorOptions().dtype(shape.tokens ? at::kLong : at::kFloat).device(device));
  const std::vector<std::int64_t> expected = {kExamples, shape.classes};
  at::Tensor logits;
  try {
    const at::NoGradGuard no_grad;
    logits = model.Forward(inputs);
  } catch (const Error&) {
    throw;
  } catch (const c10::Error& error) {
    throw Error(
        fmt::format("the script '{}' does not take a batch of shape [{}] ({}); give a model "
                    "for these data.",
                    file, fmt::join(sizes, ", "), LastLine(error.what_without_backtrace())));
  } catch (const std::exception& error) {
    throw Error(
        fmt::format("the script '{}' does not take a batch of shape [{}] ({}); give a model "
                    "for these data.",
                    file, fmt::join(sizes, ", "), LastLine(error.what())));
  }
  if (logits.sizes() != at::IntArrayRef(expected) || logits.scalar_type() != at::kFloat) {
    throw Error(
        fmt::format("the script '{}' gives {} numbers of shape [{}] for 2 examples and must "
                    "give Float numbers of shape [{}]: one logit for each class.",
                    file, c10::toString(logits.scalar_type()), fmt::join(logits.sizes(), ", "),
                    fmt::join(expected, ", ")));
  }
}

}  // namespace

std::unique_ptr<Model> OpenScriptNetwork(const std::filesystem::path& file, const ModelShape& shape,
                                         const ModelOptions& options, c10::Device device) {
  if (!options.activation.empty() || options.width != 0 || options.seed != 0) {
    throw Error(
        fmt::format("the script '{}' has its own activation, width and weights, and one of "
                    "these was given; leave activation, width and seed out.",
                    file.string()));
  }
  auto model =
      std::make_unique<ScriptNetwork>(file.filename().string(), LoadScriptModel(file, device));
  if (model->Parameters().empty()) {
    throw Error(fmt::format("the script '{}' has no parameters, so there is nothing to train.",
                            file.string()));
  }
  CheckCanBeSaved(*model, file.string());
  if (!options.pretrained.empty()) {
    internal::LoadPretrained(model->Parameters(), ReadSafetensors(options.pretrained).tensors,
                             options.pretrained, "");
  }
  internal::Freeze(model->Parameters(), options.freeze);
  // Evaluation mode, so that running statistics of the script do not see the made-up batch.
  model->Train(false);
  CheckFits(*model, shape, file.string(), device);
  model->Train(true);
  return model;
}

}  // namespace sordino
