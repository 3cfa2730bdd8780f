#include "sordino/models/internal/network.h"

#include <ATen/Functions.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "sordino/base/error.h"
#include "sordino/base/known_name.h"

namespace sordino::internal {
namespace {

struct NamedActivation {
  std::string_view name;
  Activation function;
};

constexpr std::array<NamedActivation, 6> kActivations = {{
    {"relu", [](const at::Tensor& x) { return at::relu(x); }},
    {"tanh", [](const at::Tensor& x) { return at::tanh(x); }},
    {"sigmoid", [](const at::Tensor& x) { return at::sigmoid(x); }},
    {"gelu", [](const at::Tensor& x) { return at::gelu(x); }},
    {"silu", [](const at::Tensor& x) { return at::silu(x); }},
    {"elu", [](const at::Tensor& x) { return at::elu(x); }},
}};

constexpr std::int64_t kMaxWidth = 1 << 16;

std::string WhatTheDataAre(const ModelShape& shape) {
  if (shape.tokens) return fmt::format("sentences of {} tokens", fmt::join(shape.input, "x"));
  return fmt::format("examples of shape {}", fmt::join(shape.input, "x"));
}

}  // namespace

Activation ChooseActivation(const ModelOptions& options, std::string_view otherwise) {
  const std::string_view name = options.activation.empty() ? otherwise : options.activation;
  std::array<std::string_view, kActivations.size()> names;
  std::transform(kActivations.begin(), kActivations.end(), names.begin(),
                 [](const auto& activation) { return activation.name; });
  return kActivations[IndexOfName("the activation", name, names)].function;
}

double GainOf(Activation activation) {
  const at::Tensor values = at::linspace(-8, 8, 1601, at::kDouble);
  const at::Tensor density = (values.square() * -0.5).exp();
  const at::Tensor mean_square = (activation(values).square() * density).sum() / density.sum();
  return 1 / std::sqrt(mean_square.item<double>());
}

std::int64_t ChooseWidth(const ModelOptions& options, std::int64_t otherwise) {
  if (options.width == 0) return otherwise;
  if (options.width < 1 || options.width > kMaxWidth) {
    throw Error(
        fmt::format("a hidden width of {} was asked for; give 1 to {}.", options.width, kMaxWidth));
  }
  return options.width;
}

ImageSize ImagesFor(std::string_view model, const ModelShape& shape, std::int64_t smallest) {
  if (shape.tokens || shape.input.size() != 3) {
    throw Error(
        fmt::format("the model '{}' takes images (channels, height, width) and the data "
                    "are {}; choose {}.",
                    model, WhatTheDataAre(shape),
                    shape.tokens ? "'lstm' or 'transformer'" : "'logistic' or 'mlp'"));
  }
  const ImageSize size{shape.input[0], shape.input[1], shape.input[2]};
  if (std::min(size.height, size.width) < smallest) {
    throw Error(
        fmt::format("the model '{}' takes images of at least {}x{} pixels and these have "
                    "{}x{}; choose 'logistic' or 'mlp'.",
                    model, smallest, smallest, size.height, size.width));
  }
  return size;
}

void CheckTokensFor(std::string_view model, const ModelShape& shape) {
  if (shape.tokens && shape.input.size() == 1) return;
  throw Error(
      fmt::format("the model '{}' takes sentences of token ids and the data are {}; choose "
                  "'logistic' or 'mlp', or a model for images.",
                  model, WhatTheDataAre(shape)));
}

ToPixels::ToPixels(const ModelShape& shape) {
  if (shape.mean.empty() && shape.deviation.empty()) return;
  const std::size_t channels = static_cast<std::size_t>(shape.input.at(0));
  if (shape.mean.size() != channels || shape.deviation.size() != channels) {
    throw Error(
        fmt::format("{} means and {} deviations were declared for images of {} channels; "
                    "give one of each for every channel.",
                    shape.mean.size(), shape.deviation.size(), channels));
  }
  shift_ = at::tensor(shape.mean, at::kFloat).view({-1, 1, 1});
  scale_ = at::tensor(shape.deviation, at::kFloat).view({-1, 1, 1});
}

at::Tensor ToPixels::operator()(const at::Tensor& images) const {
  if (!scale_.defined()) return images;
  return images * scale_.to(images.device()) + shift_.to(images.device());
}

}  // namespace sordino::internal
