#include "sordino/models/model.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <set>

#include "sordino/base/error.h"
#include "sordino/base/known_name.h"
#include "sordino/models/internal/image_networks.h"
#include "sordino/models/internal/mobilenet.h"
#include "sordino/models/internal/network.h"
#include "sordino/models/internal/scattering.h"
#include "sordino/models/internal/token_networks.h"
#include "sordino/models/safetensors.h"

namespace sordino {
namespace {

using internal::NamedTensors;
using internal::NetworkPointer;

constexpr std::string_view kClassifier = "classifier";
constexpr std::int64_t kMaxSide = 1 << 16;  // of an input: what a shape may ask for is bounded
constexpr std::int64_t kMaxInput = std::int64_t{1} << 28;
constexpr std::int64_t kMaxCount = 1 << 24;  // of classes, of words

struct NamedNetwork {
  std::string_view name;
  NetworkPointer (*make)(const ModelShape& shape, const ModelOptions& options);
  bool has_activation = false;
  bool has_width = false;
  bool linear_probe = false;  // the backbone is frozen, and comes from a file
};

constexpr std::array<NamedNetwork, 10> kNetworks = {{
    {.name = "logistic", .make = internal::MakeLogistic},
    {.name = "mlp", .make = internal::MakeMlp, .has_activation = true, .has_width = true},
    {.name = "cnn-mnist", .make = internal::MakeCnnMnist, .has_activation = true},
    {.name = "cnn-cifar", .make = internal::MakeCnnCifar, .has_activation = true},
    {.name = "wrn-16-4", .make = internal::MakeWideResNet, .has_activation = true},
    {.name = "lstm", .make = internal::MakeLstm, .has_width = true},
    {.name = "transformer",
     .make = internal::MakeTransformer,
     .has_activation = true,
     .has_width = true},
    {.name = "scatternet-linear", .make = internal::MakeScatternetLinear},
    {.name = "mobilenet", .make = internal::MakeMobileNet},
    {.name = "mobilenet-linear", .make = internal::MakeMobileNet, .linear_probe = true},
}};

constexpr auto kNames = [] {
  std::array<std::string_view, kNetworks.size()> names;
  for (std::size_t i = 0; i < kNetworks.size(); ++i) names[i] = kNetworks[i].name;
  return names;
}();

// Seeds libtorch's global generator and puts its state back.
class SeededWeights {
 public:
  explicit SeededWeights(std::uint64_t seed) : lock_(Mutex()), generator_(Global()) {
    const std::lock_guard<std::mutex> guard(generator_.mutex());
    state_ = generator_.get_state();
    generator_.set_current_seed(seed);
  }
  ~SeededWeights() {
    const std::lock_guard<std::mutex> guard(generator_.mutex());
    generator_.set_state(state_);
  }
  SeededWeights(const SeededWeights&) = delete;
  SeededWeights& operator=(const SeededWeights&) = delete;

 private:
  static std::mutex& Mutex() {
    static std::mutex mutex;
    return mutex;
  }
  static at::Generator Global() { return at::detail::getDefaultCPUGenerator(); }

  std::lock_guard<std::mutex> lock_;
  at::Generator generator_;
  at::Tensor state_;
};

class NetworkModel : public Model {
 public:
  NetworkModel(std::string_view name, NetworkPointer network)
      : name_(name), network_(std::move(network)) {}

  std::string_view name() const override { return name_; }

  NamedTensors Parameters() const override {
    NamedTensors parameters;
    for (const auto& entry : network_->named_parameters()) {
      parameters.emplace_back(entry.key(), entry.value());
    }
    return parameters;
  }

  bool HasFeatures() const override { return network_->HasFeatures(); }
  at::Tensor Features(const at::Tensor& inputs) const override {
    if (!HasFeatures()) return inputs;
    const at::NoGradGuard no_grad;
    return network_->Features(inputs);
  }
  at::Tensor Forward(const at::Tensor& features) const override {
    return network_->Forward(features);
  }
  void Train(bool on) override { network_->train(on); }
  std::string Description() const override { return internal::Describe(name_, Parameters()); }

 private:
  std::string name_;
  NetworkPointer network_;
};

void CheckShape(const ModelShape& shape) {
  std::int64_t size = 1;
  for (const std::int64_t side : shape.input) {
    if (side < 1 || side > kMaxInput || (shape.input.size() > 1 && side > kMaxSide)) {
      throw Error(
          fmt::format("an example of shape {} has a side out of range; sides lie in 1 to {}.",
                      fmt::join(shape.input, "x"), kMaxSide));
    }
    size *= side;  // at most 2^28 and three times 2^16 are multiplied before the check
    if (size > kMaxInput) {
      throw Error(
          fmt::format("an example of shape {} is too large for the named models, which "
                      "take at most {} numbers.",
                      fmt::join(shape.input, "x"), kMaxInput));
    }
  }
  if (shape.input.empty()) {
    throw Error(
        "the shape of an example has no sides; declare {features} or {channels, height, "
        "width}.");
  }
  if (!shape.predicts_number && (shape.classes < 2 || shape.classes > kMaxCount)) {
    throw Error(fmt::format("a classifier of {} classes was asked for; declare 2 to {}.",
                            shape.classes, kMaxCount));
  }
  if (shape.tokens && (shape.vocabulary < 1 || shape.vocabulary > kMaxCount)) {
    throw Error(fmt::format("a vocabulary of {} words was declared; declare 1 to {}.",
                            shape.vocabulary, kMaxCount));
  }
}

void CheckOptions(const NamedNetwork& network, const ModelOptions& options) {
  if (!network.has_activation && !options.activation.empty()) {
    throw Error(
        fmt::format("the model '{}' has no activation to choose and '{}' was given; leave "
                    "it out.",
                    network.name, options.activation));
  }
  if (!network.has_width && options.width != 0) {
    throw Error(fmt::format("the model '{}' has no width to choose and {} was given; leave it out.",
                            network.name, options.width));
  }
  if (network.linear_probe && options.pretrained.empty()) {
    throw Error(
        fmt::format("the model '{}' trains a linear layer on the features of a pretrained "
                    "network and no file was given; name its safetensors file as "
                    "pretrained.",
                    network.name));
  }
}

}  // namespace

std::span<const std::string_view> ModelNames() { return kNames; }

std::unique_ptr<Model> MakeModel(std::string_view name, const ModelShape& shape,
                                 const ModelOptions& options, c10::Device device) {
  const NamedNetwork& found = kNetworks[IndexOfName("the model", name, kNames)];
  CheckShape(shape);
  CheckOptions(found, options);

  NetworkPointer network;
  {
    const SeededWeights weights(options.seed);
    network = found.make(shape, options);
  }
  auto model = std::make_unique<NetworkModel>(name, network);
  if (!options.pretrained.empty()) {
    internal::LoadPretrained(model->Parameters(),
                             network->Adapt(ReadSafetensors(options.pretrained).tensors),
                             options.pretrained, kClassifier);
  }
  std::vector<std::string> frozen = options.freeze;
  if (found.linear_probe) frozen.emplace_back("backbone");
  internal::Freeze(model->Parameters(), frozen);
  network->to(device);
  return model;
}

namespace internal {

void LoadPretrained(const NamedTensors& parameters, const NamedTensors& tensors,
                    const std::string& file, std::string_view classifier) {
  const auto is_classifier = [&](const std::string& name) {
    return !classifier.empty() && name.starts_with(classifier);
  };
  std::set<std::string> known;
  for (const auto& [name, value] : parameters) known.insert(name);
  for (const auto& [name, value] : tensors) {
    if (!known.contains(name) && !is_classifier(name)) {
      throw Error(
          fmt::format("the file '{}' has a tensor '{}' that the model does not have; give "
                      "the weights of this model.",
                      file, name));
    }
  }
  const at::NoGradGuard no_grad;
  for (const auto& [name, value] : parameters) {
    const auto found =
        std::find_if(tensors.begin(), tensors.end(),
                     [&wanted = name](const auto& tensor) { return tensor.first == wanted; });
    if (found == tensors.end()) {
      if (is_classifier(name)) continue;
      throw Error(
          fmt::format("the file '{}' has no tensor '{}', which the model needs; give the "
                      "weights of this model.",
                      file, name));
    }
    const at::Tensor& weights = found->second;
    if (!weights.is_floating_point()) {
      throw Error(
          fmt::format("the tensor '{}' of '{}' holds {} and weights are floating-point "
                      "numbers; give the weights of this model.",
                      name, file, c10::toString(weights.scalar_type())));
    }
    if (weights.sizes() != value.sizes()) {
      if (is_classifier(name)) continue;
      throw Error(fmt::format(
          "the tensor '{}' of '{}' has the shape [{}] and the model needs [{}]; "
          "give the weights of this model.",
          name, file, fmt::join(weights.sizes(), ", "), fmt::join(value.sizes(), ", ")));
    }
    value.copy_(weights);
  }
}

void Freeze(const NamedTensors& parameters, const std::vector<std::string>& prefixes) {
  for (const std::string& prefix : prefixes) {
    bool any = false;
    for (const auto& [name, value] : parameters) {
      if (prefix.empty() || !name.starts_with(prefix)) continue;
      value.set_requires_grad(false);
      any = true;
    }
    if (any) continue;
    std::vector<std::string> names;
    for (const auto& [name, value] : parameters) names.push_back(name);
    throw Error(
        fmt::format("no parameter of the model begins with '{}', so it freezes nothing; the "
                    "parameters are {}.",
                    prefix, fmt::join(names, ", ")));
  }
}

std::string Describe(std::string_view name, const NamedTensors& parameters) {
  std::int64_t all = 0;
  std::int64_t trained = 0;
  for (const auto& [parameter, value] : parameters) {
    all += value.numel();
    if (value.requires_grad()) trained += value.numel();
  }
  const auto grouped = [](std::int64_t count) {
    std::string digits = std::to_string(count);
    for (std::size_t place = digits.size(); place > 3;) digits.insert(place -= 3, ",");
    return digits;
  };
  return fmt::format("{}: {} parameters, of which {} are trained", name, grouped(all),
                     grouped(trained));
}

}  // namespace internal
}  // namespace sordino
