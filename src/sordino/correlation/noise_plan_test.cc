#include "sordino/correlation/noise_plan.h"

#include <gtest/gtest.h>

#include <cmath>

#include "sordino/base/error.h"

namespace sordino {
namespace {

const auto kSilent = [](std::uint64_t, std::uint64_t) {};

TEST(NoisePlanQuestion, FillsInThePattern) {
  EXPECT_EQ((NoisePlanQuestion{.steps = 100}.Pattern()), (Participation{100, 100, 1}));
  EXPECT_EQ((NoisePlanQuestion{.steps = 100, .participations = 4}.Pattern()),
            (Participation{100, 25, 4}));
  EXPECT_EQ((NoisePlanQuestion{.steps = 100, .separation = 30}.Pattern()),
            (Participation{100, 30, 4}));
  EXPECT_EQ((NoisePlanQuestion{.steps = 100, .separation = 30, .participations = 2}.Pattern()),
            (Participation{100, 30, 2}));
  const SampledBudget budget{Epsilon(1), Delta(1e-6), SamplingRate(0.05)};
  EXPECT_EQ((NoisePlanQuestion{.steps = 100, .budget = budget}.Pattern()),
            (Participation{100, 20, 5}));
  EXPECT_THROW(NoisePlanQuestion{.steps = 0}.Pattern(), Error);
  EXPECT_THROW((NoisePlanQuestion{.steps = 10, .separation = 0}.Pattern()), Error);
  EXPECT_THROW((NoisePlanQuestion{.steps = 10, .participations = 0}.Pattern()), Error);
}

TEST(PlanNoise, ComparesWithIndependentNoiseOfTheSamePattern) {
  const NoisePlan plan =
      PlanNoise({.steps = 128, .participations = 4, .strategy = "banded:32"}, kSilent);
  EXPECT_NEAR(plan.rmse, 5.130562, 1e-6);
  EXPECT_NEAR(plan.independent_rmse, std::sqrt(4 * 129 / 2.0), 1e-9);
  EXPECT_FALSE(plan.budget);
  EXPECT_EQ(plan.Coefficients().size(), 32U);
  EXPECT_EQ(plan.Coefficients().front(), 1);
  EXPECT_TRUE(PlanNoise({.steps = 8, .strategy = "tree"}, kSilent).Coefficients().empty());
}

TEST(PlanNoise, HasACellForTheRunThatWasAskedFor) {
  const NoisePlan plan = PlanNoise(
      {.steps = 100, .budget = SampledBudget{Epsilon(4), Delta(1e-6), SamplingRate(0.25)}},
      kSilent);
  ASSERT_TRUE(plan.budget);
  bool found = false;
  for (const NoisePlanCell& cell : plan.budget->cells) {
    EXPECT_LE(cell.ratio, 1);
    EXPECT_NEAR(cell.epochs, static_cast<double>(cell.steps) / 4, 1e-12);
    if (cell.steps != 100 || cell.epsilon != 4) continue;
    found = true;
    EXPECT_EQ(cell.bands, plan.budget->sampled.best.bands);
  }
  EXPECT_TRUE(found);
  // A large epsilon wants bands.
  EXPECT_EQ(plan.budget->cells.back().epsilon, 16);
  EXPECT_LT(plan.budget->cells.back().ratio, 1);
  EXPECT_THROW(
      PlanNoise({.steps = 10, .budget = SampledBudget{Epsilon(0), Delta(0), SamplingRate(0.1)}},
                kSilent),
      Error);
}

}  // namespace
}  // namespace sordino
