#include "sordino/torch_cli/step_comparison.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace sordino {
namespace {

// A model whose forward pass waits and holds memory that its gradient needs.
BenchmarkModel SlowModel(std::chrono::milliseconds wait, std::int64_t features) {
  BenchmarkModel model;
  model.name = "slow";
  const at::Tensor weight = at::randn({1, features}).requires_grad_(true);
  model.parameters = {{"weight", weight}};
  model.losses = [=](const std::vector<at::Tensor>& batch) {
    std::this_thread::sleep_for(wait);
    return at::mm(batch.at(0), weight.t()).squeeze(1).square();
  };
  model.make_batch = [=](std::int64_t examples, std::uint64_t) {
    return std::vector<at::Tensor>{at::randn({examples, features})};
  };
  return model;
}

TEST(CompareSteps, MakesFivePairsAndTimesTheWholeStep) {
  const BenchmarkModel model = SlowModel(std::chrono::milliseconds(5), 4);
  // Five pairs take 50 ms at least; three would have to take half a second to be enough.
  const StepComparison result = CompareSteps(model, 3, at::kCPU, {.seconds = 0.05});
  EXPECT_EQ(result.pairs, 5);
  EXPECT_GE(result.ordinary_step.milliseconds, 5);
  EXPECT_GE(result.private_step.milliseconds, 5);
}

TEST(CompareSteps, ThreePairsAreEnoughForASlowModel) {
  const BenchmarkModel model = SlowModel(std::chrono::milliseconds(10), 4);
  EXPECT_EQ(CompareSteps(model, 3, at::kCPU, {.seconds = 0.001}).pairs, 3);
}

TEST(CompareSteps, MemoryHoldsTheGradients) {
  constexpr std::int64_t kFeatures = 100000;
  const BenchmarkModel model = SlowModel(std::chrono::milliseconds(0), kFeatures);
  const StepComparison result = CompareSteps(model, 2, at::kCPU, {.seconds = 0.001});
  EXPECT_GE(result.ordinary_step.megabytes, 4 * kFeatures / 1e6);
  EXPECT_GE(result.private_step.megabytes, 4 * kFeatures / 1e6);
}

}  // namespace
}  // namespace sordino
