#include "sordino/gradients/internal/isolation/directional_derivative.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/gradients/example_loop.h"

// libtorch 2.11 for aarch64 carries this function compiled for SVE only, and constructing a
// recurrent layer calls it; a definition in the program comes first and runs on every processor.
#if defined(__aarch64__) && defined(__GLIBCXX__)
template void std::vector<at::Tensor>::_M_realloc_insert<at::Tensor&>(
    std::vector<at::Tensor>::iterator, at::Tensor&);
#endif

namespace sordino {
namespace {

std::vector<NamedParameter> ParametersOf(const torch::nn::Module& module) {
  std::vector<NamedParameter> parameters;
  for (const auto& entry : module.named_parameters()) {
    parameters.push_back({entry.key(), entry.value()});
  }
  return parameters;
}

std::vector<at::Tensor> RandomTangents(const std::vector<NamedParameter>& parameters) {
  std::vector<at::Tensor> tangents;
  tangents.reserve(parameters.size());
  for (const NamedParameter& parameter : parameters) {
    tangents.push_back(at::randn(parameter.value.sizes(), parameter.value.options()));
  }
  return tangents;
}

// The largest | forward mode - <g_i, v> | / ||g_i|| over the examples of the batch, where g_i comes
// from one backward pass for each example.
double TangentError(const torch::nn::Module& module, const LossFunction& loss, const Batch& batch) {
  const auto parameters = ParametersOf(module);
  const auto tangents = RandomTangents(parameters);
  const at::Tensor derivatives = RepeatedLoss(loss, batch, parameters).Derivatives(tangents);
  double worst = 0;
  for (std::int64_t i = 0; i < Examples(batch); ++i) {
    const auto gradient = GradientOfExamples(loss, Slice(batch, i, i + 1), parameters);
    double product = 0;
    double squared = 0;
    for (std::size_t p = 0; p < parameters.size(); ++p) {
      const at::Tensor g = gradient[p].to(at::kDouble);
      product += (g * tangents[p]).sum().item<double>();
      squared += g.square().sum().item<double>();
    }
    EXPECT_GT(squared, 0);
    worst = std::max(worst, std::abs(derivatives[i].item<double>() - product) / std::sqrt(squared));
  }
  return worst;
}

struct TangentLayer {
  std::string name;
  // The per-example error of a model with that layer in the given type.
  std::function<double(at::ScalarType)> error;
};

template <typename Module>
double ErrorOf(Module module, at::ScalarType type, const at::Tensor& input,
               const std::function<at::Tensor(Module&, const at::Tensor&)>& forward) {
  module->to(type);
  const at::Tensor typed = input.is_floating_point() ? input.to(type) : input;
  return TangentError(
      *module,
      [&](const Batch& batch) { return forward(module, batch[0]).square().flatten(1).mean(1); },
      {typed});
}

std::vector<TangentLayer> TangentLayers() {
  namespace nn = torch::nn;
  torch::manual_seed(5);
  const at::Tensor images = at::randn({4, 3, 8, 8});
  const at::Tensor tokens = at::randint(0, 10, {4, 5}, at::kLong);
  const at::Tensor sequences = at::randn({4, 5, 8});
  const auto layer = [](std::string name, auto module, at::Tensor input, auto forward) {
    return TangentLayer{std::move(name), [=](at::ScalarType type) {
                          return ErrorOf<std::decay_t<decltype(module)>>(module, type, input,
                                                                         forward);
                        }};
  };
  const auto plain = [](auto& module, const at::Tensor& x) { return module(x); };
  const auto recurrent = [](auto& module, const at::Tensor& x) { return std::get<0>(module(x)); };
  return {
      layer("linear", nn::Linear(8, 4), sequences, plain),
      layer("convolution", nn::Conv2d(nn::Conv2dOptions(3, 6, 3).stride(2).groups(3)), images,
            plain),
      layer("transposed", nn::ConvTranspose2d(nn::ConvTranspose2dOptions(3, 4, 3)), images, plain),
      layer("embedding", nn::Embedding(10, 4), tokens, plain),
      layer("layer norm", nn::LayerNorm(nn::LayerNormOptions({8})), sequences, plain),
      layer("group norm", nn::GroupNorm(nn::GroupNormOptions(3, 3)), images, plain),
      layer("lstm", nn::LSTM(nn::LSTMOptions(8, 4).batch_first(true).num_layers(2)), sequences,
            recurrent),
      layer("gru", nn::GRU(nn::GRUOptions(8, 4).batch_first(true)), sequences, recurrent),
      layer("attention", nn::Linear(8, 8), sequences,
            [](nn::Linear& module, const at::Tensor& x) {
              const at::Tensor heads = module(x).reshape({-1, 5, 2, 4}).transpose(1, 2);
              return at::scaled_dot_product_attention(heads, heads, heads);
            }),
  };
}

TEST(RepeatedLoss, DerivativesAreProductsWithThePerExampleGradients) {
  for (const TangentLayer& layer : TangentLayers()) {
    EXPECT_LT(layer.error(at::kDouble), 1e-13) << layer.name;
    // A tenth of what the sensitivity of estimated norms allows for.
    EXPECT_LT(layer.error(at::kFloat), 1e-5) << layer.name;
  }
}

TEST(RepeatedLoss, LeavesNoTangentAndNoSettingBehind) {
  torch::nn::LSTM module(torch::nn::LSTMOptions(8, 4).batch_first(true));
  const auto parameters = ParametersOf(*module);
  const Batch batch{at::randn({3, 5, 8})};
  const auto loss = [&](const Batch& part) { return std::get<0>(module(part[0])).sum({1, 2}); };
  const bool mkldnn = at::globalContext().userEnabledMkldnn();
  { RepeatedLoss(loss, batch, parameters).Derivatives(RandomTangents(parameters)); }
  EXPECT_EQ(at::globalContext().userEnabledMkldnn(), mkldnn);
  EXPECT_TRUE(at::globalContext().userEnabledFlashSDP());
  const auto broken = [&](const Batch& part) -> at::Tensor {
    EXPECT_TRUE(parameters[0].value._fw_grad(0).defined());
    loss(part);
    throw std::runtime_error("broken");
  };
  EXPECT_THROW(RepeatedLoss(broken, batch, parameters).Derivatives(RandomTangents(parameters)),
               std::runtime_error);
  for (const NamedParameter& parameter : parameters) {
    EXPECT_FALSE(parameter.value._fw_grad(0).defined()) << parameter.name;
  }
  EXPECT_FALSE(loss(batch)._fw_grad(0).defined());
}

TEST(RepeatedLoss, PassesOnOtherErrorsOfTheModel) {
  torch::nn::Linear module(8, 4);
  const auto parameters = ParametersOf(*module);
  const Batch batch{at::randn({3, 7})};
  const auto loss = [&](const Batch& part) { return module(part[0]).sum(1); };
  EXPECT_THROW(RepeatedLoss(loss, batch, parameters).Derivatives(RandomTangents(parameters)),
               Error);
}

TEST(RepeatedLoss, DrawsTheSameMasksEachTime) {
  torch::manual_seed(7);
  torch::nn::Linear module(8, 16);
  const auto parameters = ParametersOf(*module);
  const Batch batch{at::randn({3, 8})};
  const auto loss = [&](const Batch& part) {
    return torch::dropout(module(part[0]), 0.5, true).sum(1);
  };
  RepeatedLoss repeated(loss, batch, parameters);
  const auto tangents = RandomTangents(parameters);
  const at::Tensor derivatives = repeated.Derivatives(tangents);
  EXPECT_TRUE(repeated.Derivatives(tangents).equal(derivatives));
  const at::Tensor losses = repeated.Losses();
  const auto gradient = torch::autograd::grad({losses}, {parameters[0].value, parameters[1].value},
                                              {at::ones_like(losses)});
  const double product =
      ((gradient[0] * tangents[0]).sum() + (gradient[1] * tangents[1]).sum()).item<double>();
  EXPECT_NEAR(product, derivatives.sum().item<double>(), 1e-4);
  // The next step draws others.
  EXPECT_FALSE(RepeatedLoss(loss, batch, parameters).Losses().equal(losses));
}

TEST(RepeatedLoss, GivesZerosWhereTheLossDoesNotReachAParameter) {
  torch::nn::Linear module(8, 4);
  const auto parameters = ParametersOf(*module);
  const Batch batch{at::randn({3, 8})};
  const auto loss = [](const Batch& part) { return part[0].sum(1); };
  EXPECT_TRUE(RepeatedLoss(loss, batch, parameters)
                  .Derivatives(RandomTangents(parameters))
                  .equal(at::zeros({3}, at::kDouble)));
}

}  // namespace
}  // namespace sordino
