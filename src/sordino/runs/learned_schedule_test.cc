#include "sordino/runs/learned_schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "sordino/base/error.h"
#include "sordino/base/testing/test_folder.h"
#include "sordino/runs/testing/points_config.h"
#include "sordino/theory/noise_schedule.h"
#include "sordino/training/testing/trainer_cases.h"

namespace sordino {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class LearnedScheduleTest : public ::testing::Test {
 protected:
  LearnedScheduleTest() { WritePoints(root_ / "train.csv", 200); }

  // Much noise and a large learning rate, so that early noise is forgotten.
  TrainConfig Config() const {
    TrainConfig config = PointsConfig(root_ / "train.csv", 200, "logistic", 1, root_ / "run");
    config.privacy.epsilon.reset();
    config.privacy.noise = 20;
    config.privacy.sampling = "full";
    config.training.steps = 60;
    config.training.learning_rate = 4;
    config.training.optimizer = "sgd";
    return config;
  }

  TestFolder root_;
};

TEST_F(LearnedScheduleTest, LateNoiseMattersMoreAndGetsLess) {
  double last = 0;
  const LearnedSchedule learned =
      LearnSchedule(Config(), {.seeds = 12, .blocks = 4, .factor = 3, .progress = [&](double done) {
                                 EXPECT_GE(done, last);
                                 last = done;
                               }});
  EXPECT_EQ(last, 1);
  EXPECT_EQ(learned.runs, 12 * 5);
  ASSERT_EQ(learned.blocks.size(), 4U);
  EXPECT_GT(learned.blocks[3].weight, learned.blocks[0].weight + 2 * learned.blocks[0].error);
  EXPECT_TRUE(learned.test.is_significant);
  EXPECT_GT(learned.test.slope, 0);
  EXPECT_LT(learned.schedule.influence.decay, 1);
  ASSERT_EQ(learned.schedule.noise.size(), 60U);
  EXPECT_LT(learned.schedule.noise.back(), learned.schedule.noise.front());
  EXPECT_GT(learned.schedule.gain, 1);
  EXPECT_NEAR(BudgetSpent(learned.schedule.noise), 60, 1e-9);
}

// Steps so small that noise in one of them is as good as in another: the final loss is that of the
// sum of all noise.
TEST_F(LearnedScheduleTest, ChanceMakesEqualNoise) {
  TrainConfig config = Config();
  config.training.learning_rate = 1e-3;
  const LearnedSchedule learned = LearnSchedule(config, {.seeds = 4, .blocks = 3, .factor = 3});
  EXPECT_FALSE(learned.test.is_significant);
  EXPECT_GT(learned.test.p_value, kDecayLevel);
  EXPECT_EQ(learned.schedule.equal, EqualNoise::kChance);
  EXPECT_EQ(learned.schedule.influence.decay, 1);
  for (const double factor : learned.schedule.noise) EXPECT_NEAR(factor, 1, 1e-12);
  EXPECT_NEAR(learned.schedule.gain, 1, 1e-12);
}

TEST_F(LearnedScheduleTest, RepeatsItselfWithItsSeedAndNotWithAnother) {
  const LearnOptions options{.seeds = 3, .blocks = 2, .factor = 3};
  TrainConfig config = Config();
  const auto influences = [&] {
    std::vector<double> weights;
    for (const BlockInfluence& block : LearnSchedule(config, options).blocks) {
      weights.push_back(block.weight);
    }
    return weights;
  };
  const std::vector<double> one = influences();
  EXPECT_EQ(influences(), one);
  config.model.seed = 1;
  EXPECT_NE(influences(), one);
}

TEST_F(LearnedScheduleTest, RefusesWhatCannotBeLearnedFrom) {
  const auto said = [](const TrainConfig& config, const LearnOptions& options, const char* part) {
    EXPECT_THAT([&] { LearnSchedule(config, options); }, ThrowsMessage<Error>(HasSubstr(part)));
  };
  said(Config(), {.seeds = 1}, "the number of seeds is 1");
  said(Config(), {.blocks = 1}, "the number of blocks is 1");
  said(Config(), {.factor = 1}, "the factor of the noise is 1");
  said(Config(), {.blocks = 100}, "the run has 60 steps");
  TrainConfig config = Config();
  config.privacy.noise_schedule = "linear:0.1";
  said(config, {}, "have a noise schedule");
  config = Config();
  config.run.non_private = true;
  said(config, {}, "leave out --non-private");
  config = Config();
  config.privacy.noise = 0;
  said(config, {}, "leave out --noise 0");
}

}  // namespace
}  // namespace sordino
