#include "sordino/accounting/calibration.h"

#include <gtest/gtest.h>

#include <cmath>

#include "sordino/accounting/gaussian.h"
#include "sordino/accounting/testing/engine_test_support.h"

namespace sordino {
namespace {

using testing::Sampled;
using testing::Steps;

// Tightest to this, relative: what the documentation promises.
constexpr double kTight = 1e-4;

struct Target {
  double rate;
  double steps;
  double epsilon;
  double delta;
};
constexpr Target kTargets[] = {{0.01, 10000, 1, 1e-5},  {0.01, 10000, 8, 1e-6},
                               {0.1, 512, 1, 1e-6},     {0.001, 100000, 0.1, 1e-9},
                               {0.5, 100, 3, 1e-4},     {1, 50, 2, 1e-5},
                               {1e-4, 3000, 0.05, 1e-7}};

TEST(CalibrateNoise, IsTightAndNeverOnTheWrongSide) {
  for (const Target& target : kTargets) {
    const auto event_of = [&](NoiseMultiplier noise) {
      return Steps(Sampled(target.rate, noise.value()), target.steps);
    };
    const auto calibrated = CalibrateNoise(event_of, Epsilon(target.epsilon), Delta(target.delta));
    ASSERT_TRUE(calibrated) << target.rate << " " << target.steps;
    EXPECT_LE(calibrated->epsilon.upper, target.epsilon) << target.rate << " " << target.steps;
    // The stated interval is that of the stated noise.
    EXPECT_EQ(SpentEpsilon(event_of(calibrated->noise), Delta(target.delta)).upper,
              calibrated->epsilon.upper);
    // A little less noise provably breaks the budget: the lower end, not only the upper.
    const double less = calibrated->noise.value() * (1 - kTight);
    EXPECT_GT(SpentEpsilon(event_of(NoiseMultiplier(less)), Delta(target.delta)).lower,
              target.epsilon)
        << target.rate << " " << target.steps;
  }
}

TEST(CalibrateNoise, GaussianMatchesTheClosedForm) {
  for (const double epsilon : {0.01, 1.0, 20.0}) {
    for (const double delta : {1e-3, 1e-10, 1e-100}) {
      const auto calibrated =
          CalibrateNoise([](NoiseMultiplier noise) { return Event::Gaussian(noise); },
                         Epsilon(epsilon), Delta(delta));
      ASSERT_TRUE(calibrated);
      const double exact = 1 / GaussianMu(epsilon, std::log(delta));
      EXPECT_GE(calibrated->noise.value(), exact * (1 - 1e-11)) << epsilon << " " << delta;
      EXPECT_LE(calibrated->noise.value(), exact * (1 + kTight)) << epsilon << " " << delta;
    }
  }
}

TEST(CalibrateNoise, LaplaceAtDeltaZeroAddsUp) {
  const auto calibrated = CalibrateNoise(
      [](NoiseMultiplier noise) { return Steps(Event::Laplace(noise), 10); }, Epsilon(3), Delta(0));
  ASSERT_TRUE(calibrated);
  EXPECT_GE(calibrated->noise.value(), 10.0 / 3 * (1 - 1e-11));
  EXPECT_LE(calibrated->noise.value(), 10.0 / 3 * (1 + kTight));
}

TEST(CalibrateNoise, ABudgetThatNothingMeetsHasNoAnswer) {
  // No Gaussian is purely private.
  EXPECT_FALSE(CalibrateNoise([](NoiseMultiplier noise) { return Event::Gaussian(noise); },
                              Epsilon(1), Delta(0)));
  // The leak is there whatever the noise.
  EXPECT_FALSE(CalibrateNoise(
      [](NoiseMultiplier noise) {
        return Event::Compose(std::vector<Event>{Event::Gaussian(noise),
                                                 Event::Approximate(Epsilon(0.1), Delta(1e-3))});
      },
      Epsilon(1), Delta(1e-5)));
}

TEST(CalibrateSteps, IsTheLastNumberThatFits) {
  // Row V059 of the table, and targets of very different size.
  struct Question {
    double rate, noise, epsilon, delta;
  };
  for (const Question& q : {Question{0.1, 3, 2, 1e-6}, Question{0.01, 1, 1, 1e-5},
                            Question{0.001, 2, 1, 1e-7}, Question{1, 40, 1, 1e-5}}) {
    const Event step = Sampled(q.rate, q.noise);
    const auto calibrated = CalibrateSteps(step, Epsilon(q.epsilon), Delta(q.delta));
    ASSERT_TRUE(calibrated) << q.rate << " " << q.noise;
    EXPECT_LE(calibrated->epsilon.upper, q.epsilon);
    const auto steps = static_cast<double>(calibrated->steps);
    EXPECT_GT(SpentEpsilon(Steps(step, steps + 1), Delta(q.delta)).upper, q.epsilon);
    const double more = std::max(steps + 1, std::ceil(steps * (1 + kTight)));
    EXPECT_GT(SpentEpsilon(Steps(step, more), Delta(q.delta)).lower, q.epsilon) << steps;
  }
  EXPECT_EQ(CalibrateSteps(Sampled(0.1, 3), Epsilon(2), Delta(1e-6))->steps, 155U);
}

TEST(CalibrateSteps, NotEvenOneStepMayFit) {
  EXPECT_FALSE(CalibrateSteps(Event::Gaussian(NoiseMultiplier(0.5)), Epsilon(1), Delta(1e-6)));
}

TEST(CalibrateSteps, StepsThatCostNothingAreCapped) {
  const auto calibrated = CalibrateSteps(Sampled(0, 1), Epsilon(1), Delta(1e-6));
  ASSERT_TRUE(calibrated);
  EXPECT_GE(calibrated->steps, 500000000000U);
  EXPECT_EQ(calibrated->epsilon.upper, 0);
}

TEST(CalibrateRate, IsTightAndNeverOnTheWrongSide) {
  struct Question {
    double noise, steps, epsilon, delta;
  };
  for (const Question& q :
       {Question{1, 10000, 1, 1e-5}, Question{4, 1000, 0.5, 1e-6}, Question{1.5, 200, 8, 1e-6}}) {
    const auto event_of = [&](SamplingRate rate) {
      return Steps(Sampled(rate.value(), q.noise), q.steps);
    };
    const auto calibrated = CalibrateRate(event_of, Epsilon(q.epsilon), Delta(q.delta));
    ASSERT_TRUE(calibrated) << q.noise;
    EXPECT_LE(calibrated->epsilon.upper, q.epsilon) << q.noise;
    const double more = std::min(1.0, calibrated->rate.value() * (1 + kTight));
    EXPECT_GT(SpentEpsilon(event_of(SamplingRate(more)), Delta(q.delta)).lower, q.epsilon)
        << q.noise;
  }
}

TEST(CalibrateRate, PlentyOfNoiseNeedsNoSampling) {
  const auto calibrated = CalibrateRate(
      [](SamplingRate rate) { return Sampled(rate.value(), 100); }, Epsilon(1), Delta(1e-6));
  ASSERT_TRUE(calibrated);
  EXPECT_EQ(calibrated->rate.value(), 1);
}

TEST(CalibrateRate, ABudgetThatNothingMeetsHasNoAnswer) {
  EXPECT_FALSE(CalibrateRate(
      [](SamplingRate rate) {
        return Event::Compose(std::vector<Event>{Sampled(rate.value(), 1),
                                                 Event::Approximate(Epsilon(0.1), Delta(1e-3))});
      },
      Epsilon(1), Delta(1e-5)));
}

}  // namespace
}  // namespace sordino
