// p-values must exceed 1e-6: eight of them, false alarms below 1e-5 over the choice of seeds,
// which are fixed.
#include "sordino/random/grid_noise.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/random/testing/test_support.h"

namespace sordino {
namespace {

constexpr double kGridAlarm = 1e-6;

template <typename Noise>
class GridNoiseTest : public testing::Test {};
using Noises = testing::Types<GridGaussian, GridLaplace>;
TYPED_TEST_SUITE(GridNoiseTest, Noises);

TYPED_TEST(GridNoiseTest, GranularityIsAPowerOfTwoThatFollowsTheScale) {
  for (const double scale : {0x1p-900, 1e-30, 0.1, 1.0, 3.0, 1e20, 0x1p900}) {
    const TypeParam noise(scale);
    int exponent = 0;
    EXPECT_EQ(std::frexp(noise.Granularity(), &exponent), 0.5);
    EXPECT_EQ(noise.RoundingError(), noise.Granularity() / 2);
    EXPECT_GE(scale / noise.Granularity(), 0x1p39);
    EXPECT_LT(scale / noise.Granularity(), 0x1p40);
  }
}

// The noise that is added has exactly the scale that was asked for.
TYPED_TEST(GridNoiseTest, IntegerScaleTimesGranularityIsTheScale) {
  for (const GridPrecision precision : {GridPrecision::kFloat, GridPrecision::kDouble}) {
    for (const double scale : {1e-20, 1.0 / 3, 1.7, 1e20}) {
      const TypeParam noise(scale, precision);
      double integer_scale = 0;
      if constexpr (std::is_same_v<TypeParam, GridGaussian>) {
        integer_scale = noise.sampler().sigma();
      } else {
        integer_scale = noise.sampler().scale();
      }
      EXPECT_EQ(integer_scale * noise.Granularity(), scale);
    }
  }
}

TYPED_TEST(GridNoiseTest, EveryReleaseLiesOnTheGrid) {
  InsecureSeededGenerator generator(301);
  const TypeParam noise(0.37);
  std::vector<double> values(5000, 1.0 / 3);
  noise.AddTo(generator, std::span<double>(values));
  for (const double value : values) {
    const double steps = value / noise.Granularity();
    EXPECT_EQ(steps, std::nearbyint(steps));
  }
}

TYPED_TEST(GridNoiseTest, FloatNoiseIsExactInFloats) {
  for (const double scale : {0x1p-100, 0.77, 1.0, 3e5, 0x1p100}) {
    const TypeParam noise(scale, GridPrecision::kFloat);
    InsecureSeededGenerator a(302);
    InsecureSeededGenerator b(302);
    std::vector<float> floats(20'000);
    std::vector<double> doubles(floats.size());
    noise.Fill(a, std::span<float>(floats));
    noise.Fill(b, std::span<double>(doubles));
    for (std::size_t i = 0; i < floats.size(); ++i)
      ASSERT_EQ(static_cast<double>(floats[i]), doubles[i]);
  }
}

// Adding gridded floats in float arithmetic is the exact sum, rounded: what a device may do.
TYPED_TEST(GridNoiseTest, FloatAdditionOnTheGridRoundsTheExactSum) {
  const TypeParam noise(1.5, GridPrecision::kFloat);
  InsecureSeededGenerator a(303);
  InsecureSeededGenerator b(303);
  std::vector<float> released(10'000);
  std::vector<float> added(released.size());
  noise.Fill(a, std::span<float>(added));
  for (std::size_t i = 0; i < released.size(); ++i) {
    released[i] = static_cast<float>(i) * 0.37F;
    added[i] += static_cast<float>(
        noise.grid().Value(noise.grid().Round(static_cast<double>(released[i]))));
  }
  noise.AddTo(b, std::span<float>(released));
  EXPECT_EQ(released, added);
}

TYPED_TEST(GridNoiseTest, SpanAndSingleValuesUnderOneSeedAreNoiseAroundTheValue) {
  InsecureSeededGenerator generator(304);
  const TypeParam noise(2.0);
  const double value = 100;
  double sum = 0;
  constexpr int kCount = 20'000;
  for (int i = 0; i < kCount; ++i) sum += noise.AddTo(generator, value) - value;
  // Within 6 standard deviations (2e-9); those of Laplace are sqrt(2) scales.
  EXPECT_LT(std::abs(sum), 6 * 2.0 * std::sqrt(2.0 * kCount));
  EXPECT_NE(sum, 0);
}

TYPED_TEST(GridNoiseTest, RefusesBadScalesAndFloatsOnTheFineGrid) {
  for (const double bad : {0.0, -1.0, 0x1p-901, 0x1p901, std::nan(""), HUGE_VAL}) {
    EXPECT_THROW(TypeParam{bad}, Error) << bad;
  }
  EXPECT_THROW(TypeParam(0x1p-101, GridPrecision::kFloat), Error);
  EXPECT_THROW(TypeParam(0x1p101, GridPrecision::kFloat), Error);
  InsecureSeededGenerator generator(305);
  std::vector<float> out(3);
  try {
    TypeParam(1.0).Fill(generator, std::span<float>(out));
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("GridPrecision::kFloat"), std::string::npos);
  }
}

TEST(Grid, RoundsToTheNearestMultipleWithinHalfAStep) {
  const Grid grid(-3);
  for (const double value : {0.0, 0.06, 0.07, -0.5, 1.0 / 3, 1e6 + 0.01, -7.77}) {
    EXPECT_LE(std::abs(grid.Value(grid.Round(value)) - value), grid.RoundingError());
  }
  EXPECT_EQ(grid.Round(0.25), 2);
}

TEST(Grid, SaturatesAndTakesNanAsZero) {
  const Grid grid(0);
  EXPECT_EQ(grid.Round(HUGE_VAL), std::int64_t{1} << 62);
  EXPECT_EQ(grid.Round(-1e300), -(std::int64_t{1} << 62));
  EXPECT_EQ(grid.Round(std::nan("")), 0);
  InsecureSeededGenerator generator(306);
  EXPECT_TRUE(std::isfinite(GridGaussian(1.0).AddTo(generator, HUGE_VAL)));
  EXPECT_TRUE(std::isfinite(GridGaussian(1.0).AddTo(generator, std::nan(""))));
}

TEST(Grid, EnlargedSensitivityCoversTheRoundedQuery) {
  const Grid grid(-4);
  EXPECT_GT(grid.Enlarged(L2Sensitivity(1), 4).value(), 1 + 2.0 / 16);
  EXPECT_NEAR(grid.Enlarged(L2Sensitivity(1), 4).value(), 1 + 2.0 / 16, 1e-14);
  EXPECT_GT(grid.Enlarged(L1Sensitivity(1), 4).value(), 1 + 4.0 / 16);
  EXPECT_NEAR(grid.Enlarged(L1Sensitivity(1), 4).value(), 1 + 4.0 / 16, 1e-14);
  // Random neighbours in 5 dimensions, at distance 0.3: never farther apart than that.
  std::mt19937_64 random(307);
  std::uniform_real_distribution<double> uniform(-1, 1);
  double farthest = 0;
  for (int trial = 0; trial < 20'000; ++trial) {
    double length = 0;
    double rounded = 0;
    double base[5];
    double off[5];
    for (int i = 0; i < 5; ++i) {
      base[i] = uniform(random);
      off[i] = uniform(random);
      length += off[i] * off[i];
    }
    for (int i = 0; i < 5; ++i) {
      const double moved = base[i] + 0.3 * off[i] / std::sqrt(length);
      const double apart = grid.Value(grid.Round(moved)) - grid.Value(grid.Round(base[i]));
      rounded += apart * apart;
    }
    farthest = std::max(farthest, std::sqrt(rounded));
  }
  EXPECT_GT(farthest, 0.3);
  EXPECT_LE(farthest, grid.Enlarged(L2Sensitivity(0.3), 5).value());
}

// The eight lowest bits of a release, as multiples of `unit`.
std::vector<std::uint64_t> LowBits(const std::vector<double>& releases, double unit) {
  std::vector<std::uint64_t> counts(256);
  for (const double release : releases) {
    const auto steps = static_cast<std::int64_t>(std::floor(release / unit));
    ++counts[static_cast<std::uint64_t>(steps) % 256];
  }
  return counts;
}

template <typename Noise>
double LowBitsOfNeighbours(const Noise& noise, double a, double b) {
  InsecureSeededGenerator generator(308);
  std::vector<double> first(Draws(1'000'000), a);
  std::vector<double> second(first.size(), b);
  noise.AddTo(generator, std::span<double>(first));
  noise.AddTo(generator, std::span<double>(second));
  return SameDistribution(LowBits(first, noise.Granularity()),
                          LowBits(second, noise.Granularity()));
}

TYPED_TEST(GridNoiseTest, LowBitsOfNeighbouringValuesAreIndistinguishable) {
  for (const GridPrecision precision : {GridPrecision::kFloat, GridPrecision::kDouble}) {
    const TypeParam noise(0.1, precision);
    EXPECT_GT(LowBitsOfNeighbours(noise, 0, noise.Granularity()), kGridAlarm);
    EXPECT_GT(LowBitsOfNeighbours(noise, 0, 1), kGridAlarm);
  }
}

// What the grid is for: with noise in doubles, 0 + noise keeps bits that 1 + noise has lost, and
// the same test tells the two apart at once.
TEST(GridNoise, LowBitTestNoticesFloatingPointNoise) {
  std::mt19937_64 random(309);
  std::normal_distribution<double> normal(0, 0.1);
  std::vector<double> first(100'000);
  std::vector<double> second(first.size());
  for (double& release : first) release = 0 + normal(random);
  for (double& release : second) release = 1 + normal(random);
  EXPECT_LT(SameDistribution(LowBits(first, 0x1p-58), LowBits(second, 0x1p-58)), 1e-100);
}

}  // namespace
}  // namespace sordino
