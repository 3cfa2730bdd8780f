// Noise and update in one launch beside the two of them.
#include "sordino/training/noised_update.h"

#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include "sordino/gradients/testing/forged_values.h"
#include "sordino/optimizers/testing/optimizer_cases.h"

namespace sordino {
namespace {

constexpr int kUpdates = 30;

std::vector<NamedParameter> Copied(const std::vector<at::Tensor>& values) {
  std::vector<NamedParameter> parameters;
  parameters.reserve(values.size());
  for (const at::Tensor& value : values) {
    parameters.push_back(
        {"p" + std::to_string(parameters.size()), value.detach().clone().set_requires_grad(true)});
  }
  return parameters;
}

// Two runs from equal seeds on equal sums: by Step, and by noise that is seen before the optimizer
// gets it.
void ExpectSameBits(const OptimizerOptions& options, at::Device device, const std::string& name,
                    bool has_two_types = true) {
  at::manual_seed(1);
  std::vector<at::Tensor> begin;
  for (const std::int64_t size : {1, 77, 4096, 3}) {
    const auto type = size == 77 && has_two_types ? at::kDouble : at::kFloat;
    begin.push_back(at::randn({size, 2}, type).to(device));
  }
  const std::vector<NamedParameter> own = Copied(begin);
  const std::vector<NamedParameter> other = Copied(begin);
  RandomSource source(3);
  RandomSource again(3);
  Optimizer optimizer(own, options, kUpdates);
  Optimizer in_parts(other, options, kUpdates);
  NoiseProcess process({}, source);
  NoiseProcess noise({}, again);
  NoisedUpdate update(process, optimizer);
  for (int step = 0; step < kUpdates; ++step) {
    std::vector<at::Tensor> gradients;
    gradients.reserve(begin.size());
    for (const at::Tensor& value : begin) gradients.push_back(at::randn_like(value));
    const BoundedSum sum =
        ForgedSum({.gradients = std::move(gradients), .sensitivity = L2Sensitivity(1)});
    const StepNoise step_noise{.multiplier = NoiseMultiplier(0.5), .divisor = 3, .step = step};
    // Now and then the other way, which goes on where the first one was.
    if (step % 7 == 5) {
      optimizer.Step(process.Add(sum, step_noise));
    } else {
      update.Step(sum, step_noise);
    }
    in_parts.Step(noise.Add(sum, step_noise));
  }
  EXPECT_EQ(optimizer.steps_done(), kUpdates);
  for (std::size_t k = 0; k < own.size(); ++k) {
    EXPECT_TRUE(at::equal(own[k].value, other[k].value)) << name << ", tensor " << k;
  }
}

TEST(NoisedUpdate, IsTheNoiseAndTheStep) {
  for (const OptimizerCase& kind : OptimizerCasesOfAllKinds()) {
    ExpectSameBits(kind.options, at::kCPU, kind.name);
  }
}

TEST(NoisedUpdateCuda, IsTheNoiseAndTheStepBitForBit) {
  if (at::getNumGPUs() == 0) GTEST_SKIP() << "no CUDA device";
  for (OptimizerCase& kind : OptimizerCasesOfAllKinds()) {
    ExpectSameBits(kind.options, at::Device(at::kCUDA, 0), kind.name);
    ExpectSameBits(kind.options, at::Device(at::kCUDA, 0), std::string(kind.name) + ", float32",
                   /*has_two_types=*/false);
    kind.options.average_decay = 0.9;
    kind.options.projection_radius = 50;
    ExpectSameBits(kind.options, at::Device(at::kCUDA, 0), std::string(kind.name) + ", averaged");
  }
}

TEST(NoisedUpdateErrors, AreThoseOfTheOptimizer) {
  const std::vector<at::Device> devices = at::getNumGPUs() == 0
                                              ? std::vector<at::Device>{at::kCPU}
                                              : std::vector<at::Device>{at::kCPU, at::kCUDA};
  for (const at::Device device : devices) {
    const at::Tensor value = at::zeros({3}, device);
    RandomSource source(4);
    Optimizer optimizer(Copied({value}), {}, 1);
    NoiseProcess process({}, source);
    NoisedUpdate update(process, optimizer);
    const auto sum_of = [&](std::int64_t size) {
      return ForgedSum({.gradients = {at::zeros({size}, device)}, .sensitivity = L2Sensitivity(1)});
    };
    EXPECT_THROW(update.Step(sum_of(4), {}), Error);
    EXPECT_EQ(optimizer.steps_done(), 0);
    update.Step(sum_of(3), {});
    EXPECT_THROW(update.Step(sum_of(3), {.step = 1}), Error);
  }
}

}  // namespace
}  // namespace sordino
