// The trainer on a GPU beside the same trainer on the CPU.
#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "sordino/gradients/testing/forged_values.h"
#include "sordino/noise/gradient_noise.h"
#include "sordino/training/testing/trainer_cases.h"
#include "sordino/training/trainer.h"

namespace sordino {
namespace {

class TrainerCuda : public testing::Test {
 protected:
  void SetUp() override {
    if (at::getNumGPUs() == 0) GTEST_SKIP() << "no CUDA device";
  }
};

at::Tensor TrainedBy(const PlanOptions& options, const Dataset& data, c10::Device device,
                     const GradientOptions& gradients) {
  // A device draws noise of its own, so there is little: it moves weights by 3e-4 of their norm.
  // With much less than this the values of sums would be saturated.
  const PrivacyPlan plan(options, NoiseMultiplier(1e-4), Delta(1e-5));
  at::Tensor weights = at::zeros({16}, at::TensorOptions(device)).set_requires_grad(true);
  const LossFunction losses = [&](const Batch& batch) {
    return (at::matmul(batch[0], weights) - batch[1].to(at::kFloat)).square();
  };
  Trainer trainer(plan, {{"weights", weights}}, losses, data,
                  {.algorithm = {"sgd", {{"momentum", 0.9}}}, .learning_rate = 0.1},
                  {.gradients = gradients, .loader = {.device = device}, .insecure_seed = 3});
  trainer.Run();
  return weights.detach().to(at::kCPU);
}

at::Tensor TrainedWeights(c10::Device device, const std::string& clipping) {
  const Dataset data = RandomFeatures(200, 16, 1);
  PlanOptions options = FullBatch(data.size(), 12);
  options.sampling = "poisson";
  options.batch = 40;
  options.clipping = clipping;
  return TrainedBy(options, data, device, {});
}

// Batches of one size: recorded, by a replay and a launch of noise and update; or one operation at
// a time, with the same noise.
TEST_F(TrainerCuda, RecordedStepsTrainTheSameWeightsBitForBit) {
  const c10::Device device(at::kCUDA, 0);
  if (const std::string problem = RecordingProblem(device); !problem.empty()) {
    GTEST_SKIP() << problem;
  }
  const Dataset data = RandomFeatures(200, 16, 1);
  for (const std::string kind : {"flat", "automatic", "adaptive", "adaclip"}) {
    PlanOptions options = FullBatch(data.size(), 40);
    options.clipping = kind;
    const at::Tensor eager = TrainedBy(options, data, device, {});
    const at::Tensor recorded = TrainedBy(options, data, device, {.graph = GraphUse::kAutomatic});
    EXPECT_TRUE(at::equal(eager, recorded)) << kind;
  }
}

TEST_F(TrainerCuda, GivesTheWeightsOfTheCpu) {
  for (const std::string kind :
       {"flat", "automatic", "adaptive", "adaptive-layerwise", "adaclip"}) {
    const at::Tensor cpu = TrainedWeights(at::kCPU, kind);
    const at::Tensor cuda = TrainedWeights(c10::Device(at::kCUDA, 0), kind);
    const double norm = cpu.norm().item<double>();
    EXPECT_GT(norm, 1e-4) << kind;  // of AdaCliP, which scales gradients down; of others above 0.1
    EXPECT_LE((cuda - cpu).norm().item<double>(), 2e-3 * norm) << kind;
  }
}

TEST_F(TrainerCuda, NoiseHasTheSameDeviation) {
  RandomSource source(4);
  const BoundedSum sum =
      ForgedSum({.gradients = {at::zeros({1000, 1000}, at::TensorOptions(at::kCUDA))},
                 .sensitivity = L2Sensitivity(1)});
  const NoisedGradients noised = AddNoise(sum, {.multiplier = NoiseMultiplier(2)}, source);
  const double deviation = noised.value()[0].square().mean().sqrt().item<double>();
  // A million values: the estimate is off by 0.07 %; five of these.
  EXPECT_NEAR(deviation / 2, 1, 0.0036 + 1e-4);
}

}  // namespace
}  // namespace sordino
