#include "sordino/models/benchmark_models.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "sordino/base/error.h"

namespace sordino {
namespace {

constexpr at::DeviceType kCpu = at::kCPU;

TEST(BenchmarkModels, HaveThePublishedNumbersOfParameters) {
  const std::map<std::string_view, std::int64_t> published = {
      {"logreg", 105},   {"ffnn", 5352},    {"mnist", 26010},         {"cifar10", 605226},
      {"embed", 160098}, {"lstm", 1081402}, {"transformer", 7332866}, {"resnet18", 11689512},
      {"vit", 5717416},  {"gpt2", 5753344}};
  ASSERT_EQ(BenchmarkModelNames().size(), published.size());
  for (const std::string_view name : BenchmarkModelNames()) {
    const BenchmarkModel model = MakeBenchmarkModel(name, kCpu);
    EXPECT_EQ(model.name, name);
    std::int64_t count = 0;
    for (const auto& [parameter, value] : model.parameters) {
      EXPECT_TRUE(value.is_leaf() && value.requires_grad()) << parameter;
      count += value.numel();
    }
    EXPECT_EQ(count, published.at(name)) << name;
  }
}

class EveryModel : public ::testing::TestWithParam<std::string_view> {};
INSTANTIATE_TEST_SUITE_P(BenchmarkModels, EveryModel, ::testing::ValuesIn(BenchmarkModelNames()),
                         [](const auto& test) { return std::string(test.param); });

TEST_P(EveryModel, GivesOneFiniteLossForEachExampleThatReachesEveryParameter) {
  const BenchmarkModel model = MakeBenchmarkModel(GetParam(), kCpu);
  const at::Tensor losses = model.losses(model.make_batch(3, 7));
  ASSERT_EQ(losses.sizes(), at::IntArrayRef({3}));
  EXPECT_TRUE(losses.isfinite().all().item<bool>());
  losses.mean().backward();
  for (const auto& [name, value] : model.parameters) {
    ASSERT_TRUE(value.grad().defined()) << name;
    EXPECT_GT(value.grad().abs().max().item<float>(), 0) << name;
  }
}

// What every clipping library assumes of a model, shown for each of these: another example in the
// batch does not change a loss (but for the rounding of another blocking).
TEST_P(EveryModel, LossOfAnExampleDoesNotDependOnTheOthers) {
  const at::NoGradGuard no_grad;
  const BenchmarkModel model = MakeBenchmarkModel(GetParam(), kCpu);
  const std::vector<at::Tensor> batch = model.make_batch(4, 7);
  const at::Tensor together = model.losses(batch);
  for (std::int64_t i = 0; i < 4; ++i) {
    const at::Tensor alone =
        model.losses({batch[0].slice(0, i, i + 1), batch[1].slice(0, i, i + 1)});
    EXPECT_TRUE(at::allclose(alone, together.slice(0, i, i + 1), 1e-4, 1e-5)) << i;
  }
}

TEST_P(EveryModel, WeightsAndBatchesAreThoseOfTheirSeeds) {
  const BenchmarkModel first = MakeBenchmarkModel(GetParam(), kCpu);
  const BenchmarkModel second = MakeBenchmarkModel(GetParam(), kCpu);
  for (std::size_t i = 0; i < first.parameters.size(); ++i) {
    EXPECT_TRUE(at::equal(first.parameters[i].second, second.parameters[i].second));
  }
  EXPECT_TRUE(at::equal(first.make_batch(5, 1)[0], second.make_batch(5, 1)[0]));
  EXPECT_FALSE(at::equal(first.make_batch(5, 1)[0], second.make_batch(5, 2)[0]));
  EXPECT_EQ(first.make_batch(0, 1)[0].size(0), 0);
}

TEST(BenchmarkModels, AnUnknownNameIsAnsweredWithTheNearest) {
  const auto sentence = [](std::string_view name) -> std::string {
    try {
      MakeBenchmarkModel(name, kCpu);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(sentence("transfromer"), ::testing::HasSubstr("did you mean 'transformer'?"));
  EXPECT_THAT(sentence("q"), ::testing::HasSubstr("it can be logreg, ffnn, mnist"));
}

}  // namespace
}  // namespace sordino
