#include "sordino/noise/noise_process.h"

#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/gradients/saved_tensors.h"
#include "sordino/gradients/testing/forged_values.h"

namespace sordino {
namespace {

// Longer than a block of the noise, and no multiple of a register.
constexpr std::int64_t kProcessCoordinates = kNoiseBlock + 1237;
const std::vector<double> kLessHalf = {-0.5};
const std::vector<double> kThreeLags = {-0.5, 0.3, -0.07};

// The multiplier moves, so that draws have several scales.
StepNoise NoiseAt(std::int64_t step) {
  return {.multiplier = NoiseMultiplier(step % 2 == 0 ? 2 : 1.3), .step = step};
}

// Noise alone, in float64.
at::Tensor NoiseOf(NoiseProcess& process, std::int64_t step, at::Device device = at::kCPU) {
  const BoundedSum sum =
      ForgedSum({.gradients = {at::zeros({kProcessCoordinates}, at::kDouble).to(device)},
                 .sensitivity = L2Sensitivity(1)});
  return process.Add(sum, NoiseAt(step)).value().front().cpu();
}

double ScaleAt(std::int64_t step) {
  StepNoise noise = NoiseAt(step);
  noise.earlier = [](const StepDraws&) {};
  return StepGrid(noise, L2Sensitivity(1), kProcessCoordinates).scale;
}

double Correlation(const at::Tensor& some, const at::Tensor& others) {
  return (some * others).mean().item<double>() /
         std::sqrt(some.square().mean().item<double>() * others.square().mean().item<double>());
}

TEST(NoiseProcess, AddsItsDrawAndItsCoefficientsOfEarlierOnes) {
  for (const std::vector<double>& coefficients : {kLessHalf, kThreeLags}) {
    RandomSource source(5);
    RandomSource again(5);
    NoiseProcess process(coefficients, source);
    NoiseProcess independent({}, again);
    std::vector<at::Tensor> draws;  // in units of their scale
    for (std::int64_t step = 0; step < 6; ++step) {
      const double scale = ScaleAt(step);
      // The scales differ by what rounding costs a process that remembers, 2^-10 of 2^-29 sqrt(d).
      draws.insert(draws.begin(), NoiseOf(independent, step) / scale);
      at::Tensor wanted = draws.front().clone();
      for (std::size_t i = 0; i < coefficients.size() && i + 1 < draws.size(); ++i) {
        wanted += draws[i + 1] * coefficients[i];
      }
      const at::Tensor noise = NoiseOf(process, step) / scale;
      EXPECT_LT((noise - wanted).abs().max().item<double>(), 1e-7) << step;
      // A process that forgot its draws would be half a deviation away.
      if (step > 0) {
        EXPECT_GT((noise - draws.front()).abs().max().item<double>(), 0.1) << step;
      }
    }
  }
}

TEST(NoiseProcess, OfShardsIsThatOfTheWholeSum) {
  const auto from_shards = [](int shards) {
    const std::int64_t size = ShardSize(kProcessCoordinates, shards);
    std::vector<at::Tensor> parts;
    for (int shard = 0; shard < shards; ++shard) {
      RandomSource source(5);
      NoiseProcess process(kThreeLags, source);
      std::vector<at::Tensor> steps;
      for (std::int64_t step = 0; step < 5; ++step) {
        const FixedPointShard part = ForgedShard(at::zeros({size}, at::kLong), shard * size,
                                                 kProcessCoordinates, 0x1p-30, L2Sensitivity(1));
        steps.push_back(process.Add(part, NoiseAt(step)).value().front());
      }
      parts.push_back(at::stack(steps));
    }
    return at::cat(parts, 1).narrow(1, 0, kProcessCoordinates);
  };
  RandomSource source(5);
  NoiseProcess process(kThreeLags, source);
  const at::Tensor one = from_shards(1);
  for (std::int64_t step = 0; step < 5; ++step) {
    EXPECT_TRUE(at::equal(NoiseOf(process, step), one[step])) << step;
  }
  for (const int shards : {2, 3, 7}) EXPECT_TRUE(at::equal(from_shards(shards), one)) << shards;
}

TEST(NoiseProcess, OfASeedGoesOnBitForBit) {
  RandomSource source(5);
  NoiseProcess process(kThreeLags, source);
  std::vector<NamedTensors> saved;
  std::vector<at::Tensor> noise;
  for (std::int64_t step = 0; step < 8; ++step) {
    saved.push_back(process.Save());
    noise.push_back(NoiseOf(process, step));
  }
  for (std::int64_t begin = 0; begin < 8; ++begin) {
    RandomSource again(5);
    NoiseProcess resumed(kThreeLags, again);
    SavedTensors state(saved[static_cast<std::size_t>(begin)]);
    resumed.Restore(state, begin);
    state.CheckAllTaken();
    for (std::int64_t step = begin; step < 8; ++step) {
      EXPECT_TRUE(at::equal(NoiseOf(resumed, step), noise[static_cast<std::size_t>(step)]))
          << begin << ", " << step;
    }
  }
}

// Correlations of 66,773 values are off by 1 / 258, and seven of these are crossed with probability
// 3e-12; a draw that came again would give 0.45.
TEST(NoiseProcess, ThatIsPrivateStartsAnewBehindACheckpoint) {
  constexpr double kNone = 7 / 258.0;
  RandomSource source;
  NoiseProcess process(kLessHalf, source);
  const at::Tensor before = NoiseOf(process, 0);
  const NamedTensors saved = process.Save();
  // The checkpoint has one public number, the scale.
  ASSERT_EQ(saved.size(), 1U);
  EXPECT_EQ(saved.front().second.numel(), 1);
  const at::Tensor uninterrupted = NoiseOf(process, 1);
  EXPECT_NEAR(Correlation(before, uninterrupted), -0.5 / std::sqrt(1.25), kNone);
  std::vector<at::Tensor> firsts;
  for (int i = 0; i < 2; ++i) {
    RandomSource fresh;
    NoiseProcess resumed(kLessHalf, fresh);
    SavedTensors state(saved);
    resumed.Restore(state, 1);
    firsts.push_back(NoiseOf(resumed, 1));
    EXPECT_NEAR(Correlation(before, firsts.back()), 0, kNone);
    EXPECT_NEAR(Correlation(uninterrupted, firsts.back()), 0, kNone);
    const double deviation = firsts.back().square().mean().sqrt().item<double>();
    EXPECT_NEAR(deviation / ScaleAt(1), 1, kNone);
    // It remembers again.
    EXPECT_NEAR(Correlation(firsts.back(), NoiseOf(resumed, 2)), -0.5 / std::sqrt(1.25), kNone);
  }
  EXPECT_NEAR(Correlation(firsts[0], firsts[1]), 0, kNone);
}

TEST(NoiseProcess, RefusesAStateThatNoRunHas) {
  RandomSource source(5);
  for (const double scale : {-1.0, std::nan(""), 2.0}) {
    NoiseProcess process(kLessHalf, source);
    SavedTensors state({{"noise.scales", at::full({1}, scale, at::kDouble)}});
    EXPECT_THROW(process.Restore(state, 0), Error) << scale;  // before any step there is none
  }
  NoiseProcess process(kThreeLags, source);
  SavedTensors state({{"noise.scales", at::ones({1}, at::kDouble)}});
  EXPECT_THROW(process.Restore(state, 5), Error);
}

TEST(NoiseProcessDeath, StopsAStepThatIsDrawnTwice) {
  // A fork of this process would wait for libtorch's threads, which it does not have.
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  RandomSource source(5);
  NoiseProcess process(kLessHalf, source);
  NoiseOf(process, 0);
  EXPECT_DEATH(NoiseOf(process, 0), "drawn twice");
  EXPECT_DEATH(NoiseOf(process, 2), "left out");
}

TEST(NoiseProcess, PaysForTheRoundingOfEarlierDraws) {
  StepNoise noise = NoiseAt(0);
  const NoiseGrid independent = StepGrid(noise, L2Sensitivity(1), kProcessCoordinates);
  noise.earlier = [](const StepDraws&) {};
  const NoiseGrid correlated = StepGrid(noise, L2Sensitivity(1), kProcessCoordinates);
  EXPECT_EQ(correlated.granularity, independent.granularity);
  const double finer_step = std::ldexp(correlated.granularity, -10);
  EXPECT_GE((correlated.scale - independent.scale) / 2,
            finer_step * std::sqrt(static_cast<double>(kProcessCoordinates)));
}

// Where draws are remembered, they are those of the processor.
TEST(NoiseProcessCuda, ThatRemembersHasTheBitsOfTheProcessor) {
  if (at::getNumGPUs() == 0) GTEST_SKIP() << "no CUDA device";
  RandomSource source(5);
  RandomSource again(5);
  NoiseProcess here(kThreeLags, source);
  NoiseProcess there(kThreeLags, again);
  for (std::int64_t step = 0; step < 5; ++step) {
    EXPECT_TRUE(at::equal(NoiseOf(here, step), NoiseOf(there, step, at::kCUDA))) << step;
  }
}

}  // namespace
}  // namespace sordino
