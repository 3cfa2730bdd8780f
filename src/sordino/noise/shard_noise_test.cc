// Noise on the shards of a sum of several processes.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "sordino/gradients/testing/forged_values.h"
#include "sordino/noise/gradient_noise.h"
#include "sordino/noise/noised_shards.h"

namespace sordino {
namespace {

// Longer than two blocks of the noise.
constexpr std::int64_t kCoordinates = 2 * kNoiseBlock + 1234;

at::Tensor Steps() {
  at::Tensor steps = at::arange(kCoordinates, at::kLong);
  return steps.mul_(7'919).sub_(500'000'000);
}

// The noised sum, put together from shards that several processes of one seed noise.
at::Tensor FromShards(int shards, double granularity, const StepNoise& noise) {
  const std::int64_t size = ShardSize(kCoordinates, shards);
  const at::Tensor padded = at::zeros({size * shards}, at::kLong);
  padded.narrow(0, 0, kCoordinates).copy_(Steps());
  std::vector<at::Tensor> parts;
  for (int shard = 0; shard < shards; ++shard) {
    RandomSource source(3);
    const FixedPointShard part =
        ForgedShard(padded.narrow(0, shard * size, size).contiguous(), shard * size, kCoordinates,
                    granularity, L2Sensitivity(1));
    parts.push_back(AddNoise(part, noise, source).value().front());
  }
  const at::Tensor all = at::cat(parts);
  // Nothing is drawn for what is after the last coordinate.
  EXPECT_EQ(all.slice(0, kCoordinates, all.numel()).abs().sum().item<double>(), 0);
  return all.narrow(0, 0, kCoordinates);
}

// The grid of the noise is coarser than that of the sum, equal to it, or finer: with a sum that
// both hold exactly, the bits are those of the noise step of one process.
TEST(ShardNoise, IsThatOfTheWholeSumWhateverTheNumberOfShards) {
  const StepNoise noise = {.multiplier = NoiseMultiplier(1.1), .divisor = 3, .step = 2};
  const double grid =
      ChooseNoiseGrid(GaussianNoise(), NoiseMultiplier(1.1), L2Sensitivity(1), kCoordinates)
          .granularity;
  for (const double ratio : {4.0, 1.0, 0.25}) {
    const double granularity = grid * ratio;
    const BoundedSum whole = ForgedSum(
        {.gradients = {Steps().to(at::kDouble) * granularity}, .sensitivity = L2Sensitivity(1)});
    RandomSource source(3);
    const NoisedGradients wanted = AddNoise(whole, noise, source);
    const at::Tensor one = FromShards(1, granularity, noise);
    // A finer sum is rounded to the nearest, and ties may go either way.
    const double tolerance = ratio < 1 ? grid / 3 * (1 + 1e-5) : 0;
    EXPECT_LE((one - wanted.value().front()).abs().max().item<double>(), tolerance);
    for (const int shards : {2, 3, 16}) {
      EXPECT_TRUE(at::equal(FromShards(shards, granularity, noise), one)) << shards;
    }
  }
}

// Canaries in any shard, one of them at its end.
TEST(ShardNoise, HasTheCanariesOfTheWholeSum) {
  std::vector<Dirac> canaries;
  for (const std::int64_t coordinate :
       {std::int64_t{0}, ShardSize(kCoordinates, 3) - 1, ShardSize(kCoordinates, 3),
        std::int64_t{100'000}, kCoordinates - 1}) {
    canaries.push_back({.coordinate = coordinate, .value = coordinate % 2 == 0 ? 0.75 : -1.0});
  }
  StepNoise noise = {.multiplier = NoiseMultiplier(1.1), .divisor = 3, .step = 2};
  const double grid =
      ChooseNoiseGrid(GaussianNoise(), NoiseMultiplier(1.1), L2Sensitivity(1), kCoordinates)
          .granularity;
  const at::Tensor without = FromShards(1, grid, noise);
  noise.canaries = canaries;
  const BoundedSum whole =
      ForgedSum({.gradients = {Steps().to(at::kDouble) * grid}, .sensitivity = L2Sensitivity(1)});
  RandomSource source(3);
  const at::Tensor wanted = AddNoise(whole, noise, source).value().front();
  EXPECT_EQ((wanted - without).abs().gt(0.2).sum().item<std::int64_t>(), 5);
  for (const int shards : {1, 2, 3, 16}) {
    EXPECT_TRUE(at::equal(FromShards(shards, grid, noise), wanted)) << shards;
  }
}

TEST(NoisedShards, JoinAndCutAreInverse) {
  const std::vector<NamedParameter> parameters = {{"a", at::zeros({7, 11})},
                                                  {"b", at::zeros({100})}};
  for (const int shards : {1, 2, 3}) {
    const std::int64_t size = ShardSize(177, shards);
    const at::Tensor all = at::arange(size * shards, at::kFloat);
    all.slice(0, 177, size * shards).zero_();
    for (int shard = 0; shard < shards; ++shard) {
      const at::Tensor own = all.narrow(0, shard * size, size);
      const NoisedGradients whole =
          NoisedShards::Join(ForgedGradients({own}, 0.5), shards, parameters,
                             [&](const at::Tensor& given, at::Tensor& gathered) {
                               EXPECT_TRUE(at::equal(given, own));
                               gathered.copy_(all);
                             });
      ASSERT_EQ(whole.value().size(), 2U);
      EXPECT_TRUE(at::equal(whole.value()[0], all.narrow(0, 0, 77).view({7, 11})));
      EXPECT_TRUE(at::equal(whole.value()[1], all.narrow(0, 77, 100)));
      EXPECT_EQ(whole.standard_deviation(), 0.5);
      const NoisedGradients part = NoisedShards::Cut(whole, shard, shards, at::kCPU);
      EXPECT_TRUE(at::equal(part.value().front(), own));
      EXPECT_EQ(part.standard_deviation(), 0.5);
    }
  }
}

TEST(ShardNoise, SumIsMovedByHalfAStepAtMost) {
  // Noise of so little that the sum shows: with z = 1e-6 the grid is 2^-49 or finer.
  RandomSource source(1);
  const StepNoise noise = {.multiplier = NoiseMultiplier(0.5)};
  const double grid =
      ChooseNoiseGrid(GaussianNoise(), NoiseMultiplier(0.5), L2Sensitivity(1), 64).granularity;
  const std::vector<std::int64_t> values = {0, 1, -1, 511, 512, 513, -511, -512, -513, 1 << 20};
  at::Tensor steps = at::zeros({64}, at::kLong);
  for (std::size_t i = 0; i < values.size(); ++i) {
    steps[static_cast<std::int64_t>(i)] = values[i];
  }
  const double fine = grid / 1024;
  const auto noised = [&](const at::Tensor& sum) {
    RandomSource same(9);
    return AddNoise(ForgedShard(sum, 0, 64, fine, L2Sensitivity(1)), noise, same).value().front();
  };
  const at::Tensor moved = (noised(steps) - noised(at::zeros_like(steps))) / grid;
  const at::Tensor exact = steps.to(at::kDouble) / 1024;
  EXPECT_LE((moved - exact).abs().max().item<double>(), 0.5);
  EXPECT_TRUE(at::equal(moved, moved.round()));
}

TEST(ShardNoise, HugeSumsAreCutOffAndDoNotWrapRound) {
  at::Tensor steps = at::zeros({64}, at::kLong);
  steps[0] = (std::int64_t{1} << 61) - 1;
  steps[1] = -(std::int64_t{1} << 61) + 1;
  for (const double granularity : {0x1p-70, 0x1p-30, 1.0, 0x1p40}) {
    RandomSource source(1);
    const at::Tensor value =
        AddNoise(ForgedShard(steps, 0, 64, granularity, L2Sensitivity(1)), {}, source)
            .value()
            .front();
    EXPECT_TRUE(at::isfinite(value).all().item<bool>());
    if (granularity < 0x1p-60) continue;
    EXPECT_GT(value[0].item<double>(), 1e3) << granularity;
    EXPECT_LT(value[1].item<double>(), -1e3) << granularity;
  }
}

// Processes with sources of their own: no two shards share their noise, and its deviation is z U.
TEST(ShardNoise, OfSourcesThatAreNotSharedIsIndependent) {
  const std::int64_t size = 50'048;  // within one block
  const auto draw = [&](std::int64_t begin) {
    RandomSource source;
    return AddNoise(ForgedShard(at::zeros({size}, at::kLong), begin, 4 * size, 0x1p-40,
                                L2Sensitivity(1)),
                    {.multiplier = NoiseMultiplier(2)}, source)
        .value()
        .front();
  };
  const at::Tensor first = draw(0);
  const at::Tensor second = draw(size);
  const auto n = static_cast<double>(size);
  // Seven deviations of the estimates, which are crossed with probability 3e-12.
  EXPECT_NEAR(first.square().mean().item<double>() / 4, 1, 7 * std::sqrt(2 / n) + 1e-3);
  EXPECT_NEAR((first * second).mean().item<double>() / 4, 0, 7 / std::sqrt(n));
}

}  // namespace
}  // namespace sordino
