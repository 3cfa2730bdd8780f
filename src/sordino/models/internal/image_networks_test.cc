#include "sordino/models/internal/image_networks.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <string>

namespace sordino {
namespace {

class ImageModel : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(ImageNetworks, ImageModel,
                         ::testing::Values("logistic", "mlp", "cnn-mnist", "cnn-cifar", "wrn-16-4"),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::erase(name, '-');
                           return name;
                         });

TEST_P(ImageModel, GivesLogitsForEveryNumberOfChannelsAndEverySize) {
  for (const ModelShape& shape : {ModelShape{.input = {1, 28, 28}, .classes = 10},
                                  {.input = {3, 32, 32}, .classes = 7},
                                  {.input = {2, 15, 22}, .classes = 2}}) {
    const auto model = MakeModel(GetParam(), shape, {}, c10::kCPU);
    EXPECT_FALSE(model->HasFeatures());
    std::vector<std::int64_t> sizes = shape.input;
    sizes.insert(sizes.begin(), 3);
    const at::Tensor logits = model->Forward(at::randn(sizes));
    EXPECT_EQ(logits.sizes(), (at::IntArrayRef{3, shape.classes}));
    EXPECT_TRUE(logits.isfinite().all().item<bool>());
  }
}

TEST_P(ImageModel, LooksAtEveryExampleByItself) {
  at::manual_seed(3);
  const auto model = MakeModel(GetParam(), {.input = {3, 16, 16}, .classes = 4}, {}, c10::kCPU);
  const at::Tensor images = at::randn({5, 3, 16, 16});
  const at::Tensor together = model->Forward(images);
  for (std::int64_t i = 0; i < 5; ++i) {
    EXPECT_TRUE(model->Forward(images.slice(0, i, i + 1))
                    .allclose(together.slice(0, i, i + 1), 1e-4, 1e-5));
  }
}

TEST(ImageNetworks, TheActivationIsTheOneChosen) {
  const ModelShape shape{.input = {1, 28, 28}, .classes = 10};
  const at::Tensor images = at::randn({2, 1, 28, 28});
  const auto logits = [&](const std::string& name, const std::string& activation) {
    return MakeModel(name, shape, {.activation = activation}, c10::kCPU)->Forward(images);
  };
  for (const std::string name : {"mlp", "cnn-mnist", "cnn-cifar", "wrn-16-4"}) {
    EXPECT_TRUE(logits(name, "").equal(logits(name, "relu"))) << name;
    for (const std::string activation : {"tanh", "sigmoid", "gelu", "silu", "elu"}) {
      EXPECT_FALSE(logits(name, activation).allclose(logits(name, "relu"), 1e-4, 1e-5))
          << name << ' ' << activation;
    }
  }
}

TEST(ImageNetworks, InitialLogitsOfCnnCifarDependOnTheImage) {
  at::manual_seed(5);
  const at::Tensor images = at::randn({32, 3, 32, 32});
  for (const std::string activation : {"relu", "tanh", "gelu", "silu", "elu"}) {
    const auto model = MakeModel("cnn-cifar", {.input = {3, 32, 32}, .classes = 10},
                                 {.activation = activation}, c10::kCPU);
    const double deviation = model->Forward(images).std(0).mean().item<double>();
    EXPECT_GT(deviation, 1e-3) << activation;
    EXPECT_LT(deviation, 1) << activation;
  }
}

TEST(ImageNetworks, CnnMnistComputesWhatThePaperDescribes) {
  const auto model = MakeModel("cnn-mnist", {.input = {1, 28, 28}, .classes = 10},
                               {.activation = "tanh"}, c10::kCPU);
  const auto p = model->Parameters();
  const at::Tensor images = at::randn({2, 1, 28, 28});
  at::Tensor y =
      at::conv2d(images, p[0].second, p[1].second, at::IntArrayRef{2, 2}, at::IntArrayRef{3, 3});
  EXPECT_EQ(y.sizes(), (at::IntArrayRef{2, 16, 14, 14}));
  y = at::max_pool2d(y.tanh(), {2, 2}, {1, 1});
  y = at::conv2d(y, p[2].second, p[3].second, at::IntArrayRef{2, 2}, at::IntArrayRef{0, 0});
  y = at::max_pool2d(y.tanh(), {2, 2}, {1, 1}).flatten(1);
  EXPECT_EQ(y.size(1), 512);
  y = at::linear(at::linear(y, p[4].second, p[5].second).tanh(), p[6].second, p[7].second);
  EXPECT_TRUE(model->Forward(images).allclose(y, 1e-5, 1e-6));
}

TEST(ImageNetworks, WideResNetStandardisesItsWeights) {
  const auto model = MakeModel("wrn-16-4", {.input = {3, 8, 8}, .classes = 10}, {}, c10::kCPU);
  const at::NoGradGuard no_grad;
  const at::Tensor images = at::randn({2, 3, 8, 8});
  const at::Tensor before = model->Forward(images);
  int weights = 0;
  for (const auto& [name, value] : model->Parameters()) {
    if (!name.ends_with("weight") || value.dim() != 4) continue;
    value.mul_(3).add_(0.5);
    ++weights;
  }
  EXPECT_EQ(weights, 16);
  EXPECT_TRUE(model->Forward(images).allclose(before, 1e-3, 1e-4));
  for (const auto& [name, value] : model->Parameters()) {
    if (name == "block1.conv2.gain") value.mul_(2);
  }
  EXPECT_FALSE(model->Forward(images).allclose(before, 1e-2, 1e-2));
}

}  // namespace
}  // namespace sordino
