#include "sordino/correlation/bands_choice.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "sordino/accounting/accountant.h"
#include "sordino/base/error.h"
#include "sordino/base/testing/processor_time.h"

namespace sordino {
namespace {

BandsQuestion Question(std::int64_t steps, double rate, double epsilon) {
  return {.steps = steps,
          .rate = SamplingRate(rate),
          .epsilon = Epsilon(epsilon),
          .delta = Delta(1e-6)};
}

struct Certified {
  double epsilon;
  double ratio;  // RMSE over Poisson sampling with independent noise
  std::int64_t bands;
};

TEST(CalibrateBands, HasThePublishedRatios) {
  for (const Certified& row : {Certified{1, 0.941, 4}, Certified{2, 0.824, 10},
                               Certified{4, 0.658, 10}, Certified{8, 0.517, 25}}) {
    const BandsQuestion question = Question(1000, 0.01, row.epsilon);
    const double one = CalibrateBands(question, 1)->rmse;
    EXPECT_NEAR(CalibrateBands(question, row.bands)->rmse / one, row.ratio, 1e-3);
  }
}

TEST(ChooseBands, FindsThePublishedRatiosOrBetterInTime) {
  for (const Certified& row : {Certified{1, 0.941, 0}, Certified{2, 0.824, 0},
                               Certified{4, 0.658, 0}, Certified{8, 0.517, 0}}) {
    const double start = ProcessorSeconds();
    const auto choice = ChooseBands(Question(1000, 0.01, row.epsilon));
    ASSERT_TRUE(choice);
    EXPECT_LT(choice->Ratio(), row.ratio + 1e-3);
    EXPECT_GT(choice->Ratio(), row.ratio - 6e-3);
    EXPECT_LE(choice->best.epsilon.upper, row.epsilon);
    EXPECT_LT(ProcessorSeconds() - start, 2);
  }
  for (const Certified& row : {Certified{1, 0.875, 0}, Certified{2, 0.706, 0},
                               Certified{4, 0.537, 0}, Certified{8, 0.419, 0}}) {
    EXPECT_LT(ChooseBands(Question(2000, 0.005, row.epsilon))->Ratio(), row.ratio + 1e-3);
  }
}

TEST(ChooseBands, IsAsGoodAsEveryNumberOfBands) {
  const BandsQuestion question = Question(200, 0.05, 4);
  const auto choice = ChooseBands(question);
  ASSERT_TRUE(choice);
  for (std::int64_t bands = 1; bands <= 20; ++bands) {
    const auto row = CalibrateBands(question, bands);
    EXPECT_GT(row->rmse, choice->best.rmse * 0.995) << bands;
  }
}

TEST(ChooseBands, TakesIndependentNoiseWhereItIsBest) {
  // Many epochs and a small epsilon: amplification is worth more.
  const auto choice = ChooseBands(Question(400, 0.5, 0.5));
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->strategy(), "none");
  EXPECT_EQ(choice->Ratio(), 1);
  // Full batches leave no group to wait for.
  EXPECT_EQ(ChooseBands(Question(50, 1, 2))->strategy(), "none");
}

TEST(ChooseBands, SaysThatNoNoiseMeetsABudget) {
  EXPECT_FALSE(ChooseBands(
      {.steps = 10, .rate = SamplingRate(0.1), .epsilon = Epsilon(0), .delta = Delta(0)}));
  EXPECT_THROW(ChooseBands(Question(0, 0.1, 1)), Error);
  EXPECT_THROW(ChooseBands(Question(10, 0, 1)), Error);
}

TEST(CyclicPoissonEvent, IsOneReleaseOfAGroupARound) {
  EXPECT_EQ(CyclicPoissonEvent(1000, SamplingRate(0.01), 7, NoiseMultiplier(2)).ToString(),
            "add-remove: 143*poisson(0.07, gaussian(2))");
  // All of a group in each of its rounds.
  EXPECT_EQ(CyclicPoissonEvent(1000, SamplingRate(0.01), 100, NoiseMultiplier(2)).ToString(),
            "add-remove: 10*gaussian(2)");
  EXPECT_THROW(CyclicPoissonEvent(1000, SamplingRate(0.01), 101, NoiseMultiplier(2)), Error);
}

// Models that Gboard published, trained in a fixed order. Matrices there are normalised so that the
// participations they were made for have sensitivity 1: 2000 rounds of 400 bands are five, of which
// a client takes part in three, with 484 rounds in between. For 1000 bands, the published number
// follows from twice the squared sensitivity of one participation.
TEST(Participation, GivesThePublishedEpsilonsOfGboard) {
  const auto epsilon = [](double noise) {
    return Account(Event::Gaussian(NoiseMultiplier(noise)), Delta(1e-10)).value.upper;
  };
  const auto strategy = MakeStrategy("banded:400", {2000, 485, 3});
  const double unit = strategy->Sensitivity({2000, 400, 5});
  EXPECT_NEAR(strategy->Sensitivity() / unit, std::sqrt(0.6), 1e-9);
  EXPECT_NEAR(epsilon(1.411 * unit / strategy->Sensitivity()), 3.42400727, 2e-8);
  const auto wide = MakeStrategy("banded:1000", {2000, 1000, 2});
  EXPECT_NEAR(epsilon(8.35 * wide->Sensitivity({2000, 1000, 1}) / wide->Sensitivity()), 0.99354996,
              2e-8);
}

TEST(ChooseUnsampled, IsTheBestOfWhatItLooksAt) {
  const Participation participation{500, 100, 5};
  const auto strategy = ChooseUnsampled(participation);
  for (const char* text : {"none", "banded", "blt"}) {
    EXPECT_LE(strategy->Rmse(), MakeStrategy(text, participation)->Rmse());
  }
  EXPECT_EQ(ChooseUnsampled({20, 1, 20})->Bands(), 1);
}

}  // namespace
}  // namespace sordino
