#include "sordino/runs/internal/script_network.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/api/module.h>

#include <fstream>

#include "sordino/base/error.h"
#include "sordino/base/testing/test_folder.h"
#include "sordino/gradients/clipper.h"
#include "sordino/gradients/example_loop.h"
#include "sordino/gradients/norm_clipping.h"
#include "sordino/models/safetensors.h"

namespace sordino {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

const ModelShape kShape{.input = {1, 2, 3}, .classes = 4};

class ScriptNetworks : public ::testing::Test {
 protected:
  fs::path Script(const std::string& body) const {
    torch::jit::Module module("scripted");
    at::manual_seed(6);
    module.register_parameter("hidden", at::randn({5, 6}).requires_grad_(true), false);
    module.register_parameter("last", at::randn({4, 5}).requires_grad_(true), false);
    module.define("def forward(self, x):\n  return " + body + "\n");
    fs::path file = folder_ / "net.pt";
    module.save(file.string());
    return file;
  }
  fs::path Good() const {
    return Script("torch.tanh(x.flatten(1) @ self.hidden.t()) @ self.last.t()");
  }
  static std::string Refusal(const fs::path& file, const ModelShape& shape,
                             const ModelOptions& options = {}) {
    try {
      OpenScriptNetwork(file, shape, options, c10::kCPU);
    } catch (const Error& error) {
      return error.what();
    }
    return "(opened)";
  }

  const TestFolder folder_;
};

TEST_F(ScriptNetworks, ComputeWhatTheirScriptSays) {
  const auto model = OpenScriptNetwork(Good(), kShape, {}, c10::kCPU);
  EXPECT_EQ(model->name(), "net.pt");
  EXPECT_EQ(model->Description(), "net.pt: 50 parameters, of which 50 are trained");
  const auto parameters = model->Parameters();
  ASSERT_EQ(parameters.size(), 2);
  EXPECT_EQ(parameters[0].first, "hidden");
  const at::Tensor x = at::randn({3, 1, 2, 3});
  const at::Tensor expected =
      at::mm(at::mm(x.flatten(1), parameters[0].second.t()).tanh(), parameters[1].second.t());
  EXPECT_TRUE(model->Forward(x).allclose(expected));
}

// Before anything is charged: the weights are saved when all steps are made.
TEST_F(ScriptNetworks, WeightsThatCannotBeSavedAreRefused) {
  for (const bool is_trained : {true, false}) {
    torch::jit::Module module("scripted");
    module.register_parameter("w", at::randn({4, 6}).requires_grad_(true), false);
    module.register_parameter("filter",
                              at::randn({4}, at::kComplexFloat).requires_grad_(is_trained), false);
    module.define(
        "def forward(self, x):\n"
        "  return torch.fft_irfft(torch.fft_rfft(x.flatten(1)) * self.filter, 6) @ self.w.t()\n");
    const fs::path file = folder_ / "complex.pt";
    module.save(file.string());
    EXPECT_THAT(Refusal(file, kShape),
                AllOf(HasSubstr("the parameter 'filter' of ComplexFloat, which a run cannot save"),
                      HasSubstr("view_as_complex")));
  }
}

TEST_F(ScriptNetworks, AreClippedLikeTheLoop) {
  const auto model = OpenScriptNetwork(Good(), kShape, {.freeze = {"hidden"}}, c10::kCPU);
  std::vector<NamedParameter> trained;
  for (const auto& [name, value] : model->Parameters()) {
    if (value.requires_grad()) trained.push_back({name, value});
  }
  ASSERT_EQ(trained.size(), 1);
  EXPECT_EQ(trained[0].name, "last");
  const LossFunction loss = [&](const Batch& batch) {
    return at::cross_entropy_loss(model->Forward(batch[0]), batch[1], {}, at::Reduction::None);
  };
  const Batch batch = {at::randn({5, 1, 2, 3}), at::randint(0, 4, {5}, at::kLong)};
  const FlatClipping policy(ClipNorm(0.5));
  const BoundedSum sum = Clipper(trained).ClippedSum(loss, batch, policy);
  EXPECT_TRUE(
      sum.gradients[0].allclose(LoopClippedSum(loss, batch, trained, policy).sum[0], 1e-4, 1e-6));
}

TEST_F(ScriptNetworks, TakeWeightsFromAFile) {
  const fs::path weights = folder_ / "w.safetensors";
  WriteSafetensors(weights, {{"hidden", at::ones({5, 6})}, {"last", at::zeros({4, 5})}});
  const auto model = OpenScriptNetwork(Good(), kShape, {.pretrained = weights}, c10::kCPU);
  EXPECT_TRUE(model->Parameters()[0].second.equal(at::ones({5, 6})));
  WriteSafetensors(weights, {{"hidden", at::ones({5, 6})}});
  EXPECT_THAT(Refusal(Good(), kShape, {.pretrained = weights}), HasSubstr("has no tensor 'last'"));
}

TEST_F(ScriptNetworks, RefuseOptionsThatAreTheScriptsOwn) {
  const fs::path file = Good();
  for (const ModelOptions& options :
       {ModelOptions{.activation = "relu"}, ModelOptions{.width = 3}, ModelOptions{.seed = 1}}) {
    EXPECT_THAT(Refusal(file, kShape, options), HasSubstr("leave activation, width and seed out"));
  }
  EXPECT_THAT(Refusal(file, kShape, {.freeze = {"middle"}}), HasSubstr("begins with 'middle'"));
}

TEST_F(ScriptNetworks, RefuseDataThatTheyDoNotFit) {
  EXPECT_THAT(Refusal(Good(), {.input = {1, 2, 4}, .classes = 4}),
              AllOf(HasSubstr("[2, 1, 2, 4]"), ::testing::Not(HasSubstr("\n"))));
  EXPECT_THAT(Refusal(Good(), {.input = {1, 2, 3}, .classes = 3}),
              AllOf(HasSubstr("[2, 4]"), HasSubstr("[2, 3]")));
  EXPECT_THAT(Refusal(Script("x.flatten(1) @ self.hidden.t(), 1"), kShape),
              HasSubstr("must return one tensor"));
}

TEST_F(ScriptNetworks, RefuseFilesThatAreNoScript) {
  std::ofstream(folder_ / "text.pt") << "no archive";
  EXPECT_THAT(Refusal(folder_ / "text.pt", kShape), HasSubstr("is no TorchScript module"));
  EXPECT_THAT(Refusal(folder_ / "none.pt", kShape), HasSubstr("does not exist"));
}

}  // namespace
}  // namespace sordino
