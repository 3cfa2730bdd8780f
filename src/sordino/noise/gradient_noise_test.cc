#include "sordino/noise/gradient_noise.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "sordino/base/error.h"
#include "sordino/gradients/testing/forged_values.h"

namespace sordino {
namespace {

BoundedSum SumOf(std::vector<at::Tensor> gradients, double sensitivity) {
  return ForgedSum({.gradients = std::move(gradients), .sensitivity = L2Sensitivity(sensitivity)});
}

BoundedSum Zeros(std::int64_t coordinates, double sensitivity) {
  return SumOf({at::zeros({coordinates}, at::kDouble)}, sensitivity);
}

// A sum of a large batch is float64 and is rounded to the type of its parameter after the noise.
TEST(GradientNoise, IsAddedBeforeASumIsRoundedToTheTypeOfItsParameter) {
  const at::Tensor sum = at::linspace(-0.9, 1.1, 1000, at::kDouble).mul(M_PI * 1e6);
  const auto noised = [&](std::vector<at::ScalarType> types) {
    RandomSource source(3);
    return AddNoise(ForgedSum({.gradients = {sum},
                               .noised_types = std::move(types),
                               .sensitivity = L2Sensitivity(1)}),
                    {.multiplier = NoiseMultiplier(1e-3)}, source)
        .value()[0];
  };
  const at::Tensor wide = noised({});
  EXPECT_EQ(wide.scalar_type(), at::kDouble);
  const at::Tensor rounded = noised({at::kFloat});
  EXPECT_EQ(rounded.scalar_type(), at::kFloat);
  EXPECT_TRUE(at::equal(rounded, wide.to(at::kFloat)));
}

std::vector<double> Values(const NoisedGradients& noised) {
  std::vector<double> values;
  for (const at::Tensor& gradient : noised.value()) {
    const at::Tensor flat = gradient.to(at::kDouble).contiguous().view(-1);
    values.insert(values.end(), flat.const_data_ptr<double>(),
                  flat.const_data_ptr<double>() + flat.numel());
  }
  return values;
}

double MeanSquare(const std::vector<double>& values) {
  double sum = 0;
  for (const double v : values) sum += v * v;
  return sum / static_cast<double>(values.size());
}

// The estimate of a variance from n normal values has a relative deviation of sqrt(2 / n); five of
// them are crossed with probability 6e-7.
double FiveDeviations(std::size_t n) { return 5 * std::sqrt(2.0 / static_cast<double>(n)); }

TEST(GradientNoise, IsNotOnePercentTooSmallNorTooLarge) {
  RandomSource source(1);
  const double multiplier = 1.3;
  const double sensitivity = 0.7;
  const auto values = Values(
      AddNoise(Zeros(2'000'000, sensitivity), {.multiplier = NoiseMultiplier(multiplier)}, source));
  const double wanted = multiplier * sensitivity;
  const double tolerance = FiveDeviations(values.size());
  ASSERT_LT(tolerance, 0.01);
  EXPECT_NEAR(MeanSquare(values) / (wanted * wanted), 1, tolerance + 1e-4);
}

TEST(GradientNoise, HasTheDistributionOfAGaussian) {
  RandomSource source(2);
  auto values = Values(AddNoise(Zeros(500'000, 1), {.multiplier = NoiseMultiplier(2)}, source));
  std::sort(values.begin(), values.end());
  double largest = 0;
  const auto n = static_cast<double>(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double cdf = std::erfc(-values[i] / 2 / M_SQRT2) / 2;
    const auto rank = static_cast<double>(i);
    largest = std::max({largest, std::abs(cdf - rank / n), std::abs(cdf - (rank + 1) / n)});
  }
  // Kolmogorov's statistic exceeds 2.7 / sqrt(n) with probability 2 exp(-2 2.7^2) = 9e-7.
  EXPECT_LT(largest, 2.7 / std::sqrt(n));
}

TEST(GradientNoise, CanariesAreAddedInWholeSteps) {
  const BoundedSum sum = SumOf(
      {at::linspace(-3, 5, 7, at::kDouble), at::linspace(1e-4, 40, 6, at::kDouble).view({2, 3})},
      1);
  const std::vector<Dirac> drawn = {{.coordinate = 2, .value = 1},
                                    {.coordinate = 9, .value = -0.3}};
  RandomSource plain(4);
  const auto without = Values(AddNoise(sum, {.multiplier = NoiseMultiplier(1.5)}, plain));
  const double granularity =
      ChooseNoiseGrid(GaussianNoise(), NoiseMultiplier(1.5), L2Sensitivity(1), 13).granularity;
  RandomSource source(4);
  const auto with =
      Values(AddNoise(sum, {.multiplier = NoiseMultiplier(1.5), .canaries = drawn}, source));
  for (std::size_t i = 0; i < with.size(); ++i) {
    const double value = i == 2 ? 1 : i == 9 ? -0.3 : 0;
    EXPECT_EQ(with[i] - without[i], granularity * std::trunc(value / granularity)) << i;
  }
}

TEST(GradientNoise, ACanaryAboveTheSensitivityStopsTheProgram) {
  const std::vector<Dirac> drawn = {{.coordinate = 0, .value = 1.001}};
  RandomSource source(5);
  EXPECT_DEATH(AddNoise(Zeros(3, 1), {.canaries = drawn}, source),
               "a canary is larger than the sensitivity");
}

TEST(GradientNoise, GridKeepsItsRangeAndNeverMakesNoiseSmaller) {
  std::mt19937_64 random(3);
  std::uniform_real_distribution<double> uniform;
  for (int i = 0; i < 2000; ++i) {
    const double z = std::exp(uniform(random) * 9 - 4);
    const double unit = std::exp(uniform(random) * 40 - 20);
    const auto d = static_cast<std::int64_t>(std::exp(uniform(random) * 14));
    const double batch = i % 2 == 0 ? 0 : std::exp(uniform(random) * 20);
    for (const NoiseComponent* kind : Noises().all()) {
      const NoiseGrid grid =
          ChooseNoiseGrid(*kind, NoiseMultiplier(z), L2Sensitivity(unit), d, 1, batch * unit);
      const auto dimension = static_cast<double>(d);
      const double wanted = kind->IsGaussian()
                                ? z * (unit + grid.granularity * std::sqrt(dimension))
                                : z * (std::sqrt(dimension) * unit + grid.granularity * dimension);
      EXPECT_GE(grid.scale, wanted);
      EXPECT_LE(grid.scale, wanted * (1 + 1e-11));
      const double draws = std::ldexp(grid.scale / grid.granularity, grid.finer_bits);
      EXPECT_GE(draws, 0x1.fffffp38);
      EXPECT_LE(draws, 0x1p40);
      EXPECT_LE(batch * unit, 0x1p50 * grid.granularity);
      if (batch == 0) {
        EXPECT_EQ(grid.finer_bits, 10);
      }
      int exponent = 0;
      EXPECT_EQ(std::frexp(grid.granularity, &exponent), 0.5);
    }
  }
}

TEST(GradientNoise, EveryValueIsAMultipleOfThePublicGranularity) {
  RandomSource source(4);
  const at::Tensor sum = at::linspace(-0.9, 1.1, 1000, at::kDouble).mul(M_PI);
  const NoiseGrid grid =
      ChooseNoiseGrid(GaussianNoise(), NoiseMultiplier(1), L2Sensitivity(1), 1000);
  for (const double value :
       Values(AddNoise(SumOf({sum}, 1), {.multiplier = NoiseMultiplier(1)}, source))) {
    const double steps = value / grid.granularity;
    EXPECT_EQ(steps, std::nearbyint(steps));
  }
}

// Contiguous sums are noised block by block, others tensor by tensor.
TEST(GradientNoise, HasTheSameBitsBlockByBlockAndTensorByTensor) {
  const std::int64_t first = kNoiseBlock + 17;
  for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
    for (const at::ScalarType noised_type : {at::kFloat, at::kDouble}) {
      at::manual_seed(9);
      std::vector<at::Tensor> wide;  // twice as long as the sums
      for (const std::int64_t count : {first, std::int64_t{0}, std::int64_t{3}, 2 * kNoiseBlock}) {
        wide.push_back(at::randn({2 * count}, type));
      }
      wide[0][0] = std::numeric_limits<double>::quiet_NaN();
      wide[0][2] = -std::numeric_limits<double>::infinity();
      std::vector<at::Tensor> strided;
      std::vector<at::Tensor> contiguous;
      for (const at::Tensor& tensor : wide) {
        strided.push_back(tensor.slice(0, 0, tensor.numel(), 2));
        contiguous.push_back(strided.back().contiguous());
      }
      const auto noised = [&](std::vector<at::Tensor> sum) {
        RandomSource source(10);
        std::vector<at::ScalarType> types(sum.size(), noised_type);
        return AddNoise(ForgedSum({.gradients = std::move(sum),
                                   .noised_types = std::move(types),
                                   .sensitivity = L2Sensitivity(0.3)}),
                        {.multiplier = NoiseMultiplier(0.7), .divisor = 3}, source)
            .value();
      };
      const std::vector<at::Tensor> by_block = noised(contiguous);
      const std::vector<at::Tensor> by_tensor = noised(strided);
      ASSERT_EQ(by_block.size(), by_tensor.size());
      for (std::size_t k = 0; k < by_block.size(); ++k) {
        EXPECT_EQ(by_block[k].scalar_type(), noised_type);
        EXPECT_TRUE(at::equal(by_block[k], by_tensor[k])) << type << ' ' << noised_type << ' ' << k;
      }
    }
  }
}

TEST(GradientNoise, StandsOnTopOfTheSumInItsShapes) {
  RandomSource source(5);
  const std::vector<at::Tensor> gradients = {at::full({3, 2}, 5.0f), at::full({4}, -7.0f)};
  const NoisedGradients noised =
      AddNoise(SumOf(gradients, 1), {.multiplier = NoiseMultiplier(1e-3), .divisor = 2}, source);
  ASSERT_EQ(noised.value().size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(noised.value()[i].sizes(), gradients[i].sizes());
    EXPECT_EQ(noised.value()[i].scalar_type(), at::kFloat);
    EXPECT_LT((noised.value()[i] - gradients[i] / 2).abs().max().item<double>(), 0.01);
  }
  EXPECT_NEAR(noised.standard_deviation(), 1e-3 / 2, 1e-8);
}

TEST(GradientNoise, IsHalvedWithTheUnitAndDivided) {
  const auto noise_at = [](double share, double divisor) {
    RandomSource source(6);
    return std::sqrt(MeanSquare(Values(AddNoise(
        Zeros(400'000, 4),
        {.multiplier = NoiseMultiplier(1), .unit_share = share, .divisor = divisor}, source))));
  };
  EXPECT_NEAR(noise_at(1, 1), 4, 4 * 0.006);
  EXPECT_NEAR(noise_at(0.5, 1), 2, 2 * 0.006);
  EXPECT_NEAR(noise_at(1, 8), 0.5, 0.5 * 0.006);
}

TEST(GradientNoise, LaplaceHasTheScaleOfTheL1Unit) {
  RandomSource source(7);
  const std::int64_t d = 10'000;
  double sum = 0;
  constexpr int kRounds = 100;
  for (int round = 0; round < kRounds; ++round) {
    for (const double value : Values(AddNoise(
             Zeros(d, 0.25),
             {.kind = &Noises().Find("laplace"), .multiplier = NoiseMultiplier(2), .step = round},
             source))) {
      sum += std::abs(value);
    }
  }
  // E|x| = b = 2 sqrt(d) / 4 and the deviation of the mean of n is b / sqrt(n).
  const double n = kRounds * static_cast<double>(d);
  EXPECT_NEAR(sum / n / (2 * 100 * 0.25), 1, 5 / std::sqrt(n) + 1e-4);
}

TEST(GradientNoise, StepsAndBlocksHaveStreamsOfTheirOwn) {
  RandomSource source(8);
  const std::int64_t d = 2 * kNoiseBlock;
  const auto first = Values(AddNoise(Zeros(d, 1), {.step = 0}, source));
  const auto second = Values(AddNoise(Zeros(d, 1), {.step = 1}, source));
  double steps = 0;
  double blocks = 0;
  for (std::int64_t i = 0; i < kNoiseBlock; ++i) {
    const auto at = static_cast<std::size_t>(i);
    steps += first[at] * second[at];
    blocks += first[at] * first[at + static_cast<std::size_t>(kNoiseBlock)];
  }
  // Sums of products of independent standard normals: deviation sqrt(n); repeated noise gives n.
  EXPECT_LT(std::abs(steps), 5 * std::sqrt(static_cast<double>(kNoiseBlock)));
  EXPECT_LT(std::abs(blocks), 5 * std::sqrt(static_cast<double>(kNoiseBlock)));
}

TEST(GradientNoise, SeedRepeatsItAndTheOperatingSystemDoesNot) {
  const auto draw = [](RandomSource source) { return Values(AddNoise(Zeros(64, 1), {}, source)); };
  EXPECT_EQ(draw(RandomSource(9)), draw(RandomSource(9)));
  EXPECT_NE(draw(RandomSource(9)), draw(RandomSource(10)));
  EXPECT_NE(draw(RandomSource()), draw(RandomSource()));
  RandomSource one;
  EXPECT_NE(Values(AddNoise(Zeros(64, 1), {}, one)), Values(AddNoise(Zeros(64, 1), {}, one)));
  EXPECT_TRUE(RandomSource().IsPrivate());
  EXPECT_FALSE(RandomSource(9).IsPrivate());
}

TEST(GradientNoise, ValuesThatAreNotFiniteLeaveNoTrace) {
  const double inf = std::numeric_limits<double>::infinity();
  RandomSource source(11);
  const at::Tensor sum = at::tensor({std::nan(""), inf, -inf}, at::kDouble);
  for (const double value : Values(AddNoise(SumOf({sum}, 1), {}, source))) {
    EXPECT_TRUE(std::isfinite(value));
  }
}

// The coordinates of a sum are up to the batch times its sensitivity, and the noise 2^-39 of it.
TEST(GradientNoise, LeavesTheSumOfALargeBatchWholeHoweverSmallItIs) {
  const double batch = 4096;
  const double z = 1e-8;
  const at::Tensor sum = at::tensor({batch, -batch / 3, 0.5, 0.0}, at::kDouble);
  const StepNoise noise = {
      .multiplier = NoiseMultiplier(z), .divisor = batch, .largest_batch = batch};
  RandomSource source(13);
  const NoisedGradients noised = AddNoise(SumOf({sum}, 1), noise, source);
  const double granularity = StepGrid(noise, L2Sensitivity(1), 4).granularity;
  EXPECT_NEAR(noised.standard_deviation() * batch, z, 1e-3 * z);
  // 13 deviations of the noise and the rounding to the grid.
  EXPECT_LT((noised.value()[0] * batch - sum).abs().max().item<double>(), 13 * z + granularity);
  // Large enough to be noise on this grid, too.
  RandomSource other(14);
  const BoundedSum zeros = Zeros(400'000, 1);
  const double mean_square = MeanSquare(
      Values(AddNoise(zeros, {.multiplier = NoiseMultiplier(z), .largest_batch = batch}, other)));
  EXPECT_NEAR(mean_square / (z * z), 1, FiveDeviations(400'000) + 1e-2);
}

TEST(GradientNoise, RefusesAMultiplierThatNoGridHasBesideTheLargestSum) {
  EXPECT_THROW(ChooseNoiseGrid(GaussianNoise(), NoiseMultiplier(1e-15), L2Sensitivity(1), 4, 1,
                               /*largest=*/512),
               Error);
  EXPECT_NO_THROW(ChooseNoiseGrid(GaussianNoise(), NoiseMultiplier(1e-15), L2Sensitivity(1), 4));
}

TEST(GradientNoise, RefusesAMultiplierThatRoundingWouldTakeOver) {
  // One over a step of the grid would not be a number.
  for (const double unit : {1e-301, 1e301}) {
    EXPECT_THROW(ChooseNoiseGrid(GaussianNoise(), NoiseMultiplier(5), L2Sensitivity(unit), 3),
                 Error);
  }
  EXPECT_THROW(ChooseNoiseGrid(GaussianNoise(), NoiseMultiplier(1e6), L2Sensitivity(1),
                               std::int64_t{1} << 34),
               Error);
}

TEST(GradientNoise, CountsGetTheDeclaredDeviation) {
  RandomSource source(12);
  const BoundedSum sum =
      ForgedSum({.gradients = {at::zeros({1}, at::kDouble)},
                 .sensitivity = L2Sensitivity(1),
                 .counts = PrivateValue<at::Tensor>(at::full({2}, 20.5, at::kDouble))});
  double squares = 0;
  constexpr int kRounds = 20'000;
  for (int round = 0; round < kRounds; ++round) {
    const NoisedCounts counts = AddCountNoise(sum, 3, round, source);
    ASSERT_EQ(counts.value().size(), 2U);
    for (const double count : counts.value()) squares += (count - 20.5) * (count - 20.5);
  }
  EXPECT_NEAR(squares / (2 * kRounds) / 9, 1, FiveDeviations(std::size_t{2} * kRounds));
}

TEST(GradientNoiseDeath, StopsForASumThatWasNotBounded) {
  RandomSource source(13);
  EXPECT_DEATH(AddNoise(Zeros(3, 0), {}, source), "nothing can change");
}

}  // namespace
}  // namespace sordino
