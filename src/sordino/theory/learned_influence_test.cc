#include "sordino/theory/learned_influence.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "sordino/base/error.h"

namespace sordino {
namespace {

std::vector<BlockInfluence> Blocks(double scale, double decay, std::int64_t steps,
                                   std::int64_t count, double error, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::vector<BlockInfluence> blocks;
  for (std::int64_t k = 0; k < count; ++k) {
    BlockInfluence block{.first = k * steps / count, .error = error};
    block.steps = (k + 1) * steps / count - block.first;
    for (std::int64_t t = block.first; t < block.first + block.steps; ++t) {
      block.weight += scale * std::pow(decay, static_cast<double>(steps - 1 - t));
    }
    block.weight = block.weight / static_cast<double>(block.steps) + error * normal(random);
    blocks.push_back(block);
  }
  return blocks;
}

TEST(LearnedInfluence, FindsTheDecayOfExactMeasurements) {
  for (const double decay : {0.9, 0.97, 0.995}) {
    const auto learned = FitDecay(Blocks(3, decay, 100, 8, 1e-6, 1), 100);
    ASSERT_TRUE(learned) << decay;
    EXPECT_NEAR(learned->decay, decay, 5e-4) << decay;
    EXPECT_NEAR(learned->scale, 3, 0.05) << decay;
    ASSERT_EQ(learned->weights.size(), 100U);
    EXPECT_NEAR(learned->weights[99] / learned->weights[98], 1 / decay, 1e-3) << decay;
  }
}

TEST(LearnedInfluence, IsNearTheTruthWithNoise) {
  // The last block has the weight 2 and errors of a tenth; a false alarm has five deviations.
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const auto learned = FitDecay(Blocks(2, 0.96, 100, 8, 0.05, seed), 100);
    ASSERT_TRUE(learned) << seed;
    EXPECT_NEAR(learned->scale, 2, 5 * 2 * learned->scale_error) << seed;
    EXPECT_GT(learned->decay, 0.9) << seed;
    EXPECT_LT(learned->decay, 0.99) << seed;
  }
}

// Influences of so many seeds: what all blocks of a seed share, and what each has of its own.
std::vector<std::vector<double>> Measured(const std::vector<double>& means, int seeds,
                                          double shared, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::vector<std::vector<double>> measured(means.size());
  for (int s = 0; s < seeds; ++s) {
    const double all = shared * normal(random);
    for (std::size_t k = 0; k < means.size(); ++k) {
      measured[k].push_back(means[k] + all + normal(random));
    }
  }
  return measured;
}

DecayTest Tested(const std::vector<std::vector<double>>& measured) {
  std::vector<BlockInfluence> blocks;
  for (std::size_t k = 0; k < measured.size(); ++k) {
    blocks.push_back(
        {.first = static_cast<std::int64_t>(10 * k), .steps = 10, .weight = 1, .error = 1});
  }
  return TestDecay(blocks, measured, static_cast<std::int64_t>(10 * measured.size()));
}

TEST(DecayTest, TakesChanceForADecayAsOftenAsItSays) {
  constexpr int kRounds = 4000;
  for (const double shared : {0.0, 5.0}) {
    int alarms = 0;
    for (int round = 0; round < kRounds; ++round) {
      alarms += Tested(Measured({3, 3, 3, 3}, 6, shared, static_cast<std::uint64_t>(round)))
                    .is_significant;
    }
    // A binomial count: five deviations are crossed with probability 6e-7.
    const double deviation = std::sqrt(kRounds * kDecayLevel * (1 - kDecayLevel));
    EXPECT_NEAR(alarms, kRounds * kDecayLevel, 5 * deviation) << shared;
  }
}

TEST(DecayTest, FindsADecayInEitherDirection) {
  for (const auto& means : {std::vector<double>{0, 2, 4, 6}, std::vector<double>{6, 4, 2, 0}}) {
    const DecayTest test = Tested(Measured(means, 12, 5, 1));
    EXPECT_TRUE(test.is_significant);
    EXPECT_LT(test.p_value, 1e-4);
    // 2 a block of 10 steps
    EXPECT_NEAR(std::abs(test.slope), 0.2, 5 * test.error);
    EXPECT_EQ(test.slope > 0, means[3] > 0);
  }
}

// Means and errors of three seeds are (9.0 +- 4.8, 4.6 +- 5.4, 6.4 +- 6.8)e-5.
TEST(DecayTest, MakesNoScheduleOfThreeBlocksThatDifferByLessThanTheirErrors) {
  const auto around = [](double mean, double error) {
    return std::vector<double>{(mean - std::sqrt(3.0) * error) * 1e-5, mean * 1e-5,
                               (mean + std::sqrt(3.0) * error) * 1e-5};
  };
  std::vector<std::vector<double>> measured = {around(9.0, 4.8), around(4.6, 5.4),
                                               around(6.4, 6.8)};
  std::swap(measured[1][0], measured[1][1]);
  std::swap(measured[2][1], measured[2][2]);
  EXPECT_FALSE(Tested(measured).is_significant);
}

TEST(DecayTest, MatchesATableOfStudentsT) {
  // Two blocks whose difference is 1 and has the standard error 1 / 3.182, with 3 degrees of
  // freedom: the two-sided 5 % point.
  const double spread = std::sqrt(3.0) / 3.182446;
  const std::vector<double> zero(4, 0.0);
  const DecayTest test = Tested({zero, {1 + spread, 1 - spread, 1 + spread, 1 - spread}});
  EXPECT_NEAR(test.slope, 0.1, 1e-12);
  EXPECT_NEAR(test.p_value, 0.05, 1e-6);
}

TEST(EqualInfluence, IsTheMeanOfTheBlocks) {
  std::vector<BlockInfluence> blocks = Blocks(3, 1, 100, 4, 1e-9, 1);
  const LearnedInfluence learned = EqualInfluence(blocks, 100);
  EXPECT_EQ(learned.decay, 1);
  EXPECT_NEAR(learned.scale, 3, 1e-6);
  EXPECT_EQ(learned.weights.front(), learned.weights.back());
  blocks[0].error = 0;
  EXPECT_THROW(EqualInfluence(blocks, 100), Error);
}

// Of nothing but chance.
TEST(LearnedInfluence, ManyMeasurementsOfNothingHaveNoDecay) {
  int fitted = 0;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    fitted += FitDecay(Blocks(0, 0.96, 100, 8, 1, seed), 100).has_value();
  }
  // One decay of many is chosen, so that more than one in forty passes two deviations.
  EXPECT_LT(fitted, 25);
}

TEST(LearnedInfluence, AnInfluenceThatFallsHasNoDecay) {
  for (const double growth : {1.001, 1.01, 1.04}) {
    EXPECT_FALSE(FitDecay(Blocks(3, growth, 100, 8, 1e-6, 1), 100)) << growth;
  }
  EXPECT_FALSE(FitDecay(Blocks(-3, 0.96, 100, 8, 1e-3, 1), 100));  // noise that helps
}

TEST(LearnedInfluence, BlocksThatSayNothingAreRefused) {
  EXPECT_THROW(FitDecay(Blocks(3, 0.9, 100, 1, 1e-6, 1), 100), Error);
  EXPECT_THROW(FitDecay(Blocks(3, 0.9, 100, 4, 0, 1), 100), Error);
  EXPECT_THROW(FitDecay(Blocks(3, 0.9, 100, 4, 1, 1), 50), Error);
  auto blocks = Blocks(3, 0.9, 100, 4, 1, 1);
  blocks[2].weight = std::nan("");
  EXPECT_THROW(FitDecay(blocks, 100), Error);
}

DecayTest Significant() { return {.slope = 1, .p_value = 0.01, .is_significant = true}; }

void ExpectEqualNoise(const InfluenceSchedule& schedule, EqualNoise why) {
  EXPECT_EQ(schedule.equal, why);
  EXPECT_EQ(schedule.noise, std::vector<double>(100, 1));
  EXPECT_EQ(schedule.gain, 1);
  EXPECT_EQ(schedule.influence.decay, 1);
}

TEST(InfluenceSchedule, IsEqualNoiseWhereThereIsNoDecay) {
  ExpectEqualNoise(ScheduleOf(Blocks(3, 0.96, 100, 8, 1e-3, 1), {}, 100), EqualNoise::kChance);
  ExpectEqualNoise(ScheduleOf(Blocks(3, 1.02, 100, 8, 1e-3, 1), Significant(), 100),
                   EqualNoise::kNoDecay);
  ExpectEqualNoise(ScheduleOf(Blocks(-3, 0.96, 100, 8, 1e-3, 1), Significant(), 100),
                   EqualNoise::kNoDecay);
  // Sums that overflow or vanish.
  for (const double size : {1e-200, 1e200}) {
    ExpectEqualNoise(ScheduleOf(Blocks(size, 0.96, 100, 8, size, 1), Significant(), 100),
                     EqualNoise::kNoDecay);
  }
}

TEST(InfluenceSchedule, SpendsTheBudgetOfEqualNoiseAndFallsWithTheDecay) {
  for (const double decay : {0.5, 0.96, 0.9999}) {
    for (const double scale : {1e-100, 1.0, 1e100}) {
      const InfluenceSchedule schedule =
          ScheduleOf(Blocks(scale, decay, 100, 8, 1e-6 * scale, 1), Significant(), 100);
      ASSERT_EQ(schedule.equal, EqualNoise::kNot) << decay << ' ' << scale;
      double spent = 0;
      for (std::size_t t = 0; t < 100; ++t) {
        spent += 1 / (schedule.noise[t] * schedule.noise[t]);
        if (t > 0) {
          EXPECT_LT(schedule.noise[t], schedule.noise[t - 1]);
        }
      }
      EXPECT_NEAR(spent, 100, 1e-9);
      EXPECT_GT(schedule.gain, 1);
    }
  }
}

}  // namespace
}  // namespace sordino
