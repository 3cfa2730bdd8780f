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
  for (const double decay : {0.9, 0.97, 0.995, 1.0}) {
    const LearnedInfluence learned = FitInfluence(Blocks(3, decay, 100, 8, 1e-6, 1), 100);
    EXPECT_NEAR(learned.decay, decay, 5e-4) << decay;
    EXPECT_NEAR(learned.scale, 3, 0.05) << decay;
    ASSERT_EQ(learned.weights.size(), 100U);
    EXPECT_NEAR(learned.weights[99] / learned.weights[98], 1 / decay, 1e-3) << decay;
  }
}

TEST(LearnedInfluence, IsNearTheTruthWithNoise) {
  // The last block has the weight 2 and errors of a tenth; a false alarm has five deviations.
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const LearnedInfluence learned = FitInfluence(Blocks(2, 0.96, 100, 8, 0.05, seed), 100);
    EXPECT_NEAR(learned.scale, 2, 5 * 2 * learned.scale_error) << seed;
    EXPECT_GT(learned.decay, 0.9) << seed;
    EXPECT_LT(learned.decay, 0.99) << seed;
  }
}

TEST(LearnedInfluence, WhatCannotBeToldFromChanceIsRefused) {
  int accepted = 0;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    try {
      FitInfluence(Blocks(0, 0.96, 100, 8, 1, seed), 100);
      ++accepted;
    } catch (const Error&) {
    }
  }
  // One decay of many is chosen, so that more than one in forty passes two deviations.
  EXPECT_LT(accepted, 25);
  EXPECT_THROW(FitInfluence(Blocks(3, 0.9, 100, 1, 1e-6, 1), 100), Error);
  EXPECT_THROW(FitInfluence(Blocks(3, 0.9, 100, 4, 0, 1), 100), Error);
  EXPECT_THROW(FitInfluence(Blocks(3, 0.9, 100, 4, 1, 1), 50), Error);
}

}  // namespace
}  // namespace sordino
