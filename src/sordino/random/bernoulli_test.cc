#include "sordino/random/bernoulli.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "sordino/random/testing/test_support.h"

namespace sordino {
namespace {

constexpr std::uint64_t kAllOnes = ~std::uint64_t{0};

bool Flip(double rate, std::uint64_t bits) {
  ScriptedGenerator generator({bits});
  return Bernoulli(generator, SamplingRate(rate));
}

TEST(Bernoulli, ComparesSixtyFourBitsWithTheThreshold) {
  EXPECT_TRUE(Flip(0.5, (std::uint64_t{1} << 63) - 1));
  EXPECT_FALSE(Flip(0.5, std::uint64_t{1} << 63));
  // 1e-8 * 2^64 = 184467440737.096, on a 24-bit grid it would be 6e-8.
  EXPECT_TRUE(Flip(1e-8, 184467440736));
  EXPECT_FALSE(Flip(1e-8, 184467440737));
  const double third = 1.0 / 3;
  const auto threshold = static_cast<std::uint64_t>(std::ldexp(third, 64));
  EXPECT_TRUE(Flip(third, threshold - 1));
  EXPECT_FALSE(Flip(third, threshold));
}

TEST(Bernoulli, RateZeroIsNeverAndRateOneAlways) {
  EXPECT_FALSE(Flip(0, 0));
  EXPECT_FALSE(Flip(0, kAllOnes));
  EXPECT_TRUE(Flip(1, 0));
  EXPECT_TRUE(Flip(1, kAllOnes));
  EXPECT_FALSE(Flip(std::nextafter(1.0, 0.0), kAllOnes));
}

TEST(Bernoulli, TinyPositiveRateIsStillPossible) {
  EXPECT_TRUE(Flip(1e-30, 0));
  EXPECT_FALSE(Flip(1e-30, 1));
  EXPECT_EQ(EffectiveRate(SamplingRate(1e-30)).value(), 0x1p-64);
}

TEST(Bernoulli, DrawsTheSameNumberOfBitsForEveryRate) {
  for (const double rate : {0.0, 1e-30, 0.25, 1.0}) {
    ScriptedGenerator generator({1, 2, 3});
    Bernoulli(generator, SamplingRate(rate));
    EXPECT_EQ(generator.Next64(), 2u) << rate;
  }
}

TEST(EffectiveRate, IsTheThresholdThatIsCompared) {
  for (const double rate : {1.0, 0.5, 1.0 / 3, 0.01, 1e-3, 0x1.8p-11, 1e-8, 3e-17, 1e-19, 1e-30}) {
    const double effective = EffectiveRate(SamplingRate(rate)).value();
    const double steps = std::ldexp(effective, 64);
    EXPECT_EQ(steps, std::floor(steps));
    if (rate >= 0x1p-11) {
      EXPECT_EQ(effective, rate);
    }
    if (rate < 1) {
      const auto threshold = static_cast<std::uint64_t>(steps);
      EXPECT_TRUE(Flip(rate, threshold - 1)) << rate;
      EXPECT_FALSE(Flip(rate, threshold)) << rate;
    }
  }
  EXPECT_EQ(EffectiveRate(SamplingRate(0)).value(), 0);
}

// 10^6 flips at five rates within 5 standard deviations: false alarms 5 * 5.7e-7 = 3e-6.
TEST(Bernoulli, FrequencyMatchesTheRate) {
  InsecureSeededGenerator generator(1);
  for (const double rate : {0.001, 0.1, 0.5, 0.9, 0.999}) {
    const auto draws = static_cast<double>(Draws(1'000'000));
    double heads = 0;
    for (double i = 0; i < draws; ++i) heads += Bernoulli(generator, SamplingRate(rate)) ? 1 : 0;
    EXPECT_LT(std::abs(heads - draws * rate), 5 * std::sqrt(draws * rate * (1 - rate))) << rate;
  }
}

TEST(PoissonSample, SelectsTheIndicesWhoseBitsAreBelowTheThreshold) {
  constexpr std::uint64_t kLow = std::uint64_t{1} << 61;
  ScriptedGenerator generator({kLow - 1, kLow, 0, kAllOnes, 5}, kAllOnes);
  std::vector<std::uint64_t> selected = {77};
  PoissonSample(generator, SamplingRate(0.125), 10'000, selected);
  EXPECT_EQ(selected, (std::vector<std::uint64_t>{77, 0, 2, 4}));
}

TEST(PoissonSample, DrawsSixtyFourBitsAnIndexWhateverTheRate) {
  for (const double rate : {0.0, 0.01, 1.0}) {
    for (const std::uint64_t population : {0, 1, 2047, 2048, 2049, 100'000}) {
      ScriptedGenerator generator({}, 12345);
      std::vector<std::uint64_t> selected;
      PoissonSample(generator, SamplingRate(rate), population, selected);
      EXPECT_EQ(generator.words_drawn(), population);
    }
  }
}

TEST(PoissonSample, RateOneSelectsEverythingOnce) {
  InsecureSeededGenerator generator(4);
  std::vector<std::uint64_t> selected;
  PoissonSample(generator, SamplingRate(1), 5000, selected);
  std::vector<std::uint64_t> all(5000);
  std::iota(all.begin(), all.end(), std::uint64_t{0});
  EXPECT_EQ(selected, all);
}

// 2000 batches out of 1000 records at rate 0.05. The batch size is binomial: mean within 5
// standard deviations (5.7e-7), variance within 5 of its own (sd of the sample variance is
// var sqrt(2/n)); how often each record came is tested by chi-square at 1e-6.
TEST(PoissonSample, BatchSizeAndRecordFrequenciesAreThoseOfIndependentCoins) {
  constexpr int kBatches = 2000;
  constexpr std::uint64_t kPopulation = 1000;
  constexpr double kRate = 0.05;
  InsecureSeededGenerator generator(5);
  std::vector<std::uint64_t> counts(kPopulation);
  double sum = 0;
  double squares = 0;
  for (int i = 0; i < kBatches; ++i) {
    std::vector<std::uint64_t> selected;
    PoissonSample(generator, SamplingRate(kRate), kPopulation, selected);
    for (const std::uint64_t index : selected) ++counts[index];
    const double centred = static_cast<double>(selected.size()) - kPopulation * kRate;
    sum += centred;
    squares += centred * centred;
  }
  const double variance = kPopulation * kRate * (1 - kRate);
  EXPECT_LT(std::abs(sum), 5 * std::sqrt(kBatches * variance));
  EXPECT_LT(std::abs(squares / kBatches - variance), 5 * variance * std::sqrt(2.0 / kBatches));
  double statistic = 0;
  for (const std::uint64_t count : counts) {
    const double off = static_cast<double>(count) - kBatches * kRate;
    statistic += off * off / (kBatches * kRate * (1 - kRate));
  }
  const double tail = ChiSquareTail(statistic, static_cast<double>(kPopulation));
  EXPECT_GT(tail, 1e-6);
  EXPECT_LT(tail, 1 - 1e-6);
}

}  // namespace
}  // namespace sordino
