#include "sordino/models/stacked_model.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <memory>
#include <string>
#include <vector>

namespace sordino {
namespace {

struct StackedCase {
  std::string model;
  std::string activation;
  ModelShape shape;
};

class StackedModels : public ::testing::TestWithParam<StackedCase> {};

// Logits and gradients of three models, each with a batch of its own, are those of each alone. The
// difference is the rounding of float32 sums of up to a few hundred terms.
TEST_P(StackedModels, AgreeWithEachAlone) {
  constexpr std::int64_t kModels = 3;
  constexpr std::int64_t kExamples = 5;
  const StackedCase& given = GetParam();
  ModelOptions options;
  options.activation = given.activation;
  const StackedForward forward = FindStackedForward(given.model, options);
  ASSERT_TRUE(forward);
  at::manual_seed(3);
  std::vector<std::int64_t> sizes = {kModels, kExamples};
  sizes.insert(sizes.end(), given.shape.input.begin(), given.shape.input.end());
  const at::Tensor inputs = at::randn(sizes);
  const at::Tensor labels = at::randint(given.shape.classes, {kModels, kExamples}, at::kLong);

  std::vector<std::vector<at::Tensor>> alone;  // gradients, by model
  std::vector<std::vector<at::Tensor>> values;
  std::vector<at::Tensor> logits;
  for (std::int64_t i = 0; i < kModels; ++i) {
    options.seed = static_cast<std::uint64_t>(i) + 1;
    const auto model = MakeModel(given.model, given.shape, options, c10::kCPU);
    model->Train(true);
    std::vector<at::Tensor> parameters;
    for (const auto& [name, value] : model->Parameters()) parameters.push_back(value);
    logits.push_back(model->Forward(inputs[i]));
    alone.push_back(torch::autograd::grad({at::cross_entropy_loss(logits.back(), labels[i])},
                                          {parameters.begin(), parameters.end()}));
    values.push_back(parameters);
  }
  std::vector<at::Tensor> stacked;
  for (std::size_t p = 0; p < values[0].size(); ++p) {
    std::vector<at::Tensor> of_models;
    of_models.reserve(values.size());
    for (const auto& parameters : values) of_models.push_back(parameters[p].detach());
    stacked.push_back(at::stack(of_models).set_requires_grad(true));
  }
  const at::Tensor all = forward(stacked, inputs);
  EXPECT_TRUE(at::allclose(all, at::stack(logits), 1e-4, 1e-5));
  const at::Tensor loss =
      at::cross_entropy_loss(all.flatten(0, 1), labels.flatten(), {}, at::Reduction::Sum) /
      static_cast<double>(kExamples);
  const auto gradients = torch::autograd::grad({loss}, {stacked.begin(), stacked.end()});
  for (std::size_t p = 0; p < gradients.size(); ++p) {
    for (std::int64_t i = 0; i < kModels; ++i) {
      EXPECT_TRUE(at::allclose(gradients[p][i], alone[static_cast<std::size_t>(i)][p], 1e-4, 1e-5))
          << "parameter " << p << " of model " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Catalogue, StackedModels,
    ::testing::Values(StackedCase{"logistic", "", {.input = {7}, .classes = 3}},
                      StackedCase{"mlp", "tanh", {.input = {3, 5}, .classes = 4}},
                      StackedCase{"cnn-mnist", "", {.input = {1, 28, 28}, .classes = 10}},
                      StackedCase{"cnn-mnist", "tanh", {.input = {3, 17, 22}, .classes = 2}}));

TEST(StackedModel, OthersHaveNone) {
  for (const char* const name : {"cnn-cifar", "wrn-16-4", "lstm", "scatternet-linear"}) {
    EXPECT_FALSE(FindStackedForward(name, {})) << name;
  }
}

}  // namespace
}  // namespace sordino
