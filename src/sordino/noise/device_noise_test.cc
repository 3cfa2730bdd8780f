// The noise step of a GPU beside the same values computed on the processor.
#include "sordino/noise/device_noise.h"

#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/device/recorded_graph.h"
#include "sordino/gradients/testing/forged_values.h"
#include "sordino/kernels/grid_step.h"
#include "sordino/random/indexed_gaussian.h"

namespace sordino {
namespace {

TEST(DeviceNoise, ServesNoSumOnTheProcessor) {
  const BoundedSum sum =
      ForgedSum({.gradients = {at::zeros({3})}, .sensitivity = L2Sensitivity(1)});
  EXPECT_FALSE(DeviceNoise::Serves(sum, GaussianNoise()));
}

TEST(DeviceNoise, SaysThatItIsNotBuilt) {
  if (DeviceNoise::IsBuilt()) GTEST_SKIP() << "it is built";
  RandomSource source(1);
  EXPECT_THROW(DeviceNoise(at::Device(at::kCUDA, 0), source), Error);
}

// The draws of a step in steps of the grid, computed on the processor from the key of a seed.
at::Tensor StepsByIndex(std::uint64_t seed, const NoiseGrid& grid, std::int64_t coordinates,
                        std::uint64_t draw) {
  RandomSource source(seed);
  const auto stream = source.Stream({.step = 0, .rank = 0, .tensor = kDeviceNoiseStream});
  const ChaChaKey key = DrawChaChaKey(*stream);
  std::vector<std::int64_t> draws(static_cast<std::size_t>(coordinates));
  IndexedGaussian(std::ldexp(grid.scale / grid.granularity, grid.finer_bits))
      .Fill(key, draw, 0, draws);
  at::Tensor steps = at::empty({coordinates}, at::kDouble);
  auto* const out = steps.mutable_data_ptr<double>();
  for (std::size_t i = 0; i < draws.size(); ++i) {
    out[i] = static_cast<double>(internal::RoundedSteps(draws[i], grid.finer_bits));
  }
  return steps;
}

// Draws by index have the deviation and the mean that the grid says, and each step its own.
TEST(DeviceNoise, StepsByIndexHaveTheDeviationOfTheGrid) {
  constexpr std::int64_t kCount = 400'000;
  const NoiseGrid grid =
      ChooseNoiseGrid(GaussianNoise(), NoiseMultiplier(1.3), L2Sensitivity(0.7), kCount);
  const at::Tensor first = StepsByIndex(2, grid, kCount, 0) * (grid.granularity / grid.scale);
  const at::Tensor second = StepsByIndex(2, grid, kCount, 1) * (grid.granularity / grid.scale);
  const double root = std::sqrt(static_cast<double>(kCount));
  // Six deviations of the estimates: crossed with probability 2e-9.
  EXPECT_LT(std::abs(first.mean().item<double>()), 6 / root);
  EXPECT_NEAR(first.square().mean().item<double>(), 1, 6 * std::sqrt(2) / root);
  EXPECT_LT(std::abs((first * second).mean().item<double>()), 6 / root);
}

class DeviceNoiseCuda : public testing::Test {
 protected:
  void SetUp() override {
    if (at::getNumGPUs() == 0) GTEST_SKIP() << "no CUDA device";
    if (!DeviceNoise::IsBuilt()) GTEST_SKIP() << "noise on a device is not built";
  }

  at::Tensor Zeros(std::int64_t count, at::ScalarType type = at::kDouble) const {
    return at::zeros({count}, at::TensorOptions(device_).dtype(type));
  }
  BoundedSum SumOf(std::vector<at::Tensor> gradients) const {
    return ForgedSum({.gradients = std::move(gradients), .sensitivity = L2Sensitivity(1)});
  }

  const at::Device device_ = at::Device(at::kCUDA, 0);
};

constexpr int kManyDraws = 10'000;
constexpr std::int64_t kDrawSize = 4096;

// Rows of noise with deviation 1.
void ExpectNoneRepeated(const at::Tensor& rows) {
  const at::Tensor products = at::matmul(rows, rows.t()).div_(kDrawSize);
  const at::Tensor squares = products.diagonal().clone();
  products.fill_diagonal_(0);
  // Off the diagonal the deviation is 1 / 64; nine of them. Repeated noise gives 1.
  EXPECT_LT(products.abs_().max().item<double>(), 9.0 / 64);
  EXPECT_NEAR(squares.mean().item<double>(), 1, 0.01);
}

// Sigmas of 2^39 to 2^40 of the finer grid, as training has them.
TEST_F(DeviceNoiseCuda, DrawsTheValuesOfTheProcessorBitForBit) {
  constexpr std::int64_t kCount = 1'000'003;
  for (const double steps : {0x1p29, 0x1.2345678p29, 0x1.8p29, 0x1.fffffffp29}) {
    for (const std::int64_t step : {std::int64_t{0}, std::int64_t{7}, std::int64_t{1} << 40}) {
      const NoiseGrid grid = {.scale = steps * 0.25, .granularity = 0.25, .finer_bits = 10};
      RandomSource source(3);
      DeviceNoise noise(device_, source);
      const at::Tensor found = noise.Steps(grid, kCount, step).cpu();
      EXPECT_TRUE(at::equal(found, StepsByIndex(3, grid, kCount, static_cast<std::uint64_t>(step))))
          << steps << " at " << step;
    }
  }
}

// Many tensors of both types, more than one launch takes, some of them empty or not contiguous,
// some to be rounded to float32 after the noise.
TEST_F(DeviceNoiseCuda, TheStepIsThatOfTheProcessorBitForBit) {
  std::vector<at::Tensor> gradients;
  std::vector<at::ScalarType> types;
  std::int64_t coordinates = 0;
  for (std::int64_t i = 0; i < 600; ++i) {
    const at::ScalarType type = i % 3 == 0 ? at::kDouble : at::kFloat;
    const at::Tensor values = at::randn({3 + i % 7, i % 11 == 0 ? 0 : 1 + i % 50},
                                        at::TensorOptions(device_).dtype(type));
    gradients.push_back(i % 5 == 0 ? values.t() : values);
    types.push_back(i % 2 == 0 ? type : at::kFloat);
    coordinates += values.numel();
  }
  gradients[1].view(-1)[0] = std::nan("");
  gradients[1].view(-1)[1] = INFINITY;
  const StepNoise noise = {.multiplier = NoiseMultiplier(1.1), .divisor = 3, .step = 5};
  const BoundedSum sum =
      ForgedSum({.gradients = gradients, .noised_types = types, .sensitivity = L2Sensitivity(1)});
  RandomSource source(4);
  const NoisedGradients noised = AddNoise(sum, noise, source);
  const NoiseGrid grid = StepGrid(noise, sum.sensitivity, coordinates);
  const at::Tensor steps = StepsByIndex(4, grid, coordinates, 5);
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const at::Tensor gradient = gradients[i].cpu().contiguous();
    at::Tensor value = gradient.to(at::kDouble).mul(1 / grid.granularity);
    value = value.nan_to_num_(0, internal::kSaturation, -internal::kSaturation).round_();
    value.clamp_(-internal::kSaturation, internal::kSaturation);
    value.add_(steps.narrow(0, begin, gradient.numel()).view(gradient.sizes()));
    value = value.mul_(grid.granularity / noise.divisor).to(types[i]);
    ASSERT_TRUE(at::equal(noised.value()[i].cpu(), value)) << i;
    begin += gradient.numel();
  }
  EXPECT_EQ(noised.standard_deviation(), grid.scale / 3);
}

TEST_F(DeviceNoiseCuda, CanariesAreAddedInWholeSteps) {
  const StepNoise noise = {.multiplier = NoiseMultiplier(1), .step = 2};
  const BoundedSum sum = SumOf({Zeros(10)});
  const double granularity = StepGrid(noise, sum.sensitivity, 10).granularity;
  RandomSource source(5);
  const at::Tensor without = AddNoise(sum, noise, source).value().front().cpu();
  const std::vector<Dirac> canaries = {{.coordinate = 3, .value = 0.7}};
  StepNoise with_canaries = noise;
  with_canaries.canaries = canaries;
  const at::Tensor with = AddNoise(sum, with_canaries, source).value().front().cpu();
  at::Tensor wanted = at::zeros({10}, at::kDouble);
  wanted[3] = granularity * std::trunc(0.7 / granularity);
  EXPECT_TRUE(at::equal(with - without, wanted));
}

// Step by step, and by a seed that begins in the middle.
TEST_F(DeviceNoiseCuda, ASeededRunIsTheSameWhenResumed) {
  const NoiseGrid grid = {.scale = 0x1.4p29, .granularity = 1, .finer_bits = 10};
  RandomSource source(6);
  DeviceNoise whole(device_, source);
  RandomSource again(6);
  DeviceNoise resumed(device_, again);
  for (std::int64_t step = 0; step < 6; ++step) {
    const at::Tensor values = whole.Steps(grid, 1000, step);
    if (step >= 3) {
      EXPECT_TRUE(at::equal(values, resumed.Steps(grid, 1000, step)));
    }
  }
}

// A launch that is replayed, with a step that is set again or not: 10,000 draws, all different.
TEST_F(DeviceNoiseCuda, NoReplayRepeatsNoise) {
  const NoiseGrid grid = {.scale = 0x1.4p29, .granularity = 1, .finer_bits = 10};
  for (const bool is_seeded : {false, true}) {
    RandomSource source = is_seeded ? RandomSource(7) : RandomSource();
    DeviceNoise noise(device_, source);
    noise.SetGrid(grid, 1, 0);
    const at::Tensor sum = Zeros(kDrawSize);
    at::Tensor out = at::empty_like(sum);
    const auto graph = RecordGraph(device_, [&] { noise.Launch({sum}, {out}); });
    std::vector<at::Tensor> seen;
    for (int i = 0; i < kManyDraws; ++i) {
      // An old step does not bring old noise back, except where a seed is to repeat it.
      if (i % 10 == 3 && !is_seeded) noise.SetGrid(grid, 1, 1);
      graph->Replay();
      seen.push_back(out.clone());
    }
    ExpectNoneRepeated(at::stack(seen).div_(grid.scale));
  }
}

// The same for descents, which tell their noise by the way that the parameters go. A step that is
// not told anew, and the first of a private run that is told an old one, are new draws.
TEST_F(DeviceNoiseCuda, NoDescentRepeatsNoise) {
  RandomSource source;
  DeviceNoise noise(device_, source);
  const BoundedSum sum = SumOf({Zeros(kDrawSize)});
  const Descent descent{.parameters = {Zeros(kDrawSize)}, .factors = {.rate = 1}};
  const double scale = StepGrid({}, sum.sensitivity, kDrawSize).scale;
  std::vector<at::Tensor> seen;
  for (int i = 0; i < kManyDraws; ++i) {
    descent.parameters.front().zero_();
    if (i == 0 || i % 10 == 3) {
      noise.SetStep({.step = i % 3 == 0 ? 0 : i}, sum.sensitivity, kDrawSize);
    }
    AddNoise(sum, noise, descent);
    seen.push_back(descent.parameters.front().clone());
  }
  ExpectNoneRepeated(at::stack(seen).div_(scale));
}

// A step that the device has already is not stored again, and is the right one all the same.
TEST_F(DeviceNoiseCuda, EveryOrderOfStepsOfASeedGivesTheirDraws) {
  RandomSource source(11);
  DeviceNoise noise(device_, source);
  const NoiseGrid grid = {.scale = 0x1.4p29, .granularity = 1, .finer_bits = 10};
  const NoiseGrid other = {.scale = 0x1.8p29, .granularity = 1, .finer_bits = 10};
  for (const std::int64_t step : {0, 1, 2, 2, 2, 3, 1, 2, 9, 10, 10, 0}) {
    for (const NoiseGrid& own : {grid, other, grid}) {
      EXPECT_TRUE(at::equal(noise.Steps(own, 1000, step).cpu(),
                            StepsByIndex(11, own, 1000, static_cast<std::uint64_t>(step))));
    }
    noise.SetGrid(grid, 3, step);
    const at::Tensor out = Zeros(1000);
    noise.Launch({out}, {out});
    EXPECT_TRUE(at::allclose(
        out.cpu() * 3, StepsByIndex(11, grid, 1000, static_cast<std::uint64_t>(step)), 1e-12, 0));
  }
}

// Replays go on after the step that was set, as steps that are set one by one do.
TEST_F(DeviceNoiseCuda, ReplaysOfASeedAreTheStepsThatFollow) {
  const NoiseGrid grid = {.scale = 0x1.4p29, .granularity = 1, .finer_bits = 10};
  RandomSource source(8);
  DeviceNoise noise(device_, source);
  noise.SetGrid(grid, 1, 0);
  const at::Tensor sum = Zeros(1001);
  const at::Tensor out = at::empty_like(sum);
  const auto graph = RecordGraph(device_, [&] { noise.Launch({sum}, {out}); });
  noise.SetGrid(grid, 1, 4);
  for (std::uint64_t draw = 4; draw < 10; ++draw) {
    graph->Replay();
    EXPECT_TRUE(at::equal(out.cpu(), StepsByIndex(8, grid, 1001, draw))) << draw;
  }
}

TEST_F(DeviceNoiseCuda, PrivateSourcesGiveNewKeys) {
  RandomSource source;
  const BoundedSum sum = SumOf({Zeros(1000)});
  const at::Tensor first = AddNoise(sum, {}, source).value().front();
  EXPECT_FALSE(at::equal(first, AddNoise(sum, {}, source).value().front()));
}

TEST_F(DeviceNoiseCuda, HasTheDeviationOfTheStep) {
  RandomSource source(9);
  const BoundedSum sum = SumOf({Zeros(2'000'000, at::kFloat)});
  const NoisedGradients noised =
      AddNoise(sum, {.multiplier = NoiseMultiplier(1.3), .divisor = 4}, source);
  const double square = noised.value().front().to(at::kDouble).square().mean().item<double>();
  EXPECT_NEAR(std::sqrt(square) / (1.3 / 4), 1, 6 / std::sqrt(4e6) + 1e-4);
  EXPECT_NEAR(noised.standard_deviation(), 1.3 / 4, 1e-5);
}

using DeviceNoiseCudaDeath = DeviceNoiseCuda;

TEST_F(DeviceNoiseCudaDeath, StopsForASumThatItWasNotSetFor) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto noise_for = [&](double sensitivity, std::int64_t coordinates) {
    RandomSource source(10);
    DeviceNoise noise(device_, source);
    noise.SetStep({}, L2Sensitivity(sensitivity), coordinates);
    static_cast<void>(AddNoise(SumOf({Zeros(3)}), noise));
  };
  noise_for(1, 3);
  EXPECT_DEATH(noise_for(0.9, 3), "smaller sensitivity");
  EXPECT_DEATH(noise_for(1, 4), "another number of coordinates");
}

}  // namespace
}  // namespace sordino
