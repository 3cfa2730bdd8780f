// The named models under the clipper: what it computes in one pass for a batch against the loop
// that takes one example at a time. It stands here because models and gradients do not know each
// other.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "sordino/device/precision.h"
#include "sordino/gradients/clipper.h"
#include "sordino/gradients/example_loop.h"
#include "sordino/gradients/norm_clipping.h"
#include "sordino/models/model.h"

namespace sordino {
namespace {

struct Case {
  std::string model;
  ModelShape shape;
  ModelOptions options = {};
};

void PrintTo(const Case& test, std::ostream* out) { *out << test.model; }

class ClippedModel : public ::testing::TestWithParam<Case> {};

const ModelShape kGrey{.input = {1, 28, 28}, .classes = 10};
const ModelShape kColour{.input = {3, 16, 16}, .classes = 10};
const ModelShape kWords{.input = {11}, .tokens = true, .vocabulary = 40, .classes = 2};

INSTANTIATE_TEST_SUITE_P(
    Models, ClippedModel,
    ::testing::Values(Case{"logistic", kGrey}, Case{"mlp", kGrey}, Case{"cnn-mnist", kGrey},
                      Case{"cnn-mnist", kGrey, {.activation = "tanh"}},
                      Case{"cnn-mnist", kGrey, {.freeze = {"conv1"}}}, Case{"cnn-cifar", kColour},
                      Case{"wrn-16-4", kColour}, Case{"lstm", kWords}, Case{"transformer", kWords},
                      Case{"scatternet-linear", kGrey}, Case{"mobilenet", kColour},
                      Case{"mobilenet", kColour, {.freeze = {"backbone"}}}),
    [](const auto& test) {
      std::string name = test.param.model + test.param.options.activation +
                         (test.param.options.freeze.empty() ? "" : "frozen");
      std::erase(name, '-');
      return name;
    });

void ExpectEqualsTheLoop(const Case& test, double tolerance) {
  const auto model = MakeModel(test.model, test.shape, test.options, c10::kCPU);
  model->Train(true);
  std::vector<NamedParameter> trained;
  for (const auto& [name, value] : model->Parameters()) {
    if (value.requires_grad()) trained.push_back({name, value});
  }
  const LossFunction loss = [&](const Batch& batch) {
    return at::cross_entropy_loss(model->Forward(batch[0]), batch[1], {}, at::Reduction::None);
  };

  at::manual_seed(17);
  constexpr std::int64_t kExamples = 4;
  std::vector<std::int64_t> sizes = test.shape.input;
  sizes.insert(sizes.begin(), kExamples);
  at::Tensor inputs = at::rand(sizes);
  if (test.shape.tokens) {
    inputs = at::randint(1, test.shape.vocabulary, sizes, at::kLong);
    inputs[0].slice(0, 4).zero_();  // padding
  }
  const Batch batch = {model->Features(inputs),
                       at::randint(0, test.shape.classes, {kExamples}, at::kLong)};

  Clipper clipper(trained);
  const at::Tensor norms = clipper.Norms(loss, batch, FlatClipping(ClipNorm(1)));
  EXPECT_GT(norms.min().item<double>(), 0);
  const FlatClipping policy(ClipNorm(norms.median().item<double>()));  // about half are clipped
  const BoundedSum sum = clipper.ClippedSum(loss, batch, policy);
  const LoopResult loop = LoopClippedSum(loss, batch, trained, policy);
  EXPECT_TRUE(norms.allclose(loop.norms, tolerance, 1e-3 * tolerance));

  ASSERT_EQ(sum.gradients.size(), trained.size());
  double difference = 0;
  double size = 0;
  for (std::size_t i = 0; i < trained.size(); ++i) {
    const at::Tensor expected = loop.sum[i].to(at::kDouble);
    difference += (sum.gradients[i].to(at::kDouble) - expected).square().sum().item<double>();
    size += expected.square().sum().item<double>();
  }
  EXPECT_LT(std::sqrt(difference), tolerance * std::sqrt(size));
}

TEST_P(ClippedModel, EqualsTheLoop) { ExpectEqualsTheLoop(GetParam(), 1e-3); }

TEST_P(ClippedModel, EqualsTheLoopInBfloat16) {
  const ScopedPrecision scope(Precision::kBfloat16);
  ExpectEqualsTheLoop(GetParam(), 5e-2);
}

}  // namespace
}  // namespace sordino
