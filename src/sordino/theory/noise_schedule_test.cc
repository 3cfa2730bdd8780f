#include "sordino/theory/noise_schedule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "sordino/accounting/calibration.h"
#include "sordino/accounting/filter.h"
#include "sordino/base/error.h"
#include "sordino/theory/convergence.h"

namespace sordino {
namespace {

std::vector<double> RandomWeights(std::mt19937_64& random, int count) {
  std::uniform_real_distribution<double> exponent(-6, 3);
  std::vector<double> weights;
  weights.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) weights.push_back(std::exp(exponent(random)));
  return weights;
}

TEST(NoiseSchedule, HasTheReferenceValues) {
  std::vector<double> influence;
  for (int t = 1; t <= 5; ++t) influence.push_back(0.01 * std::pow(0.9, 5 - t));
  const std::vector<double> noise = OptimalNoise(influence, 2);
  const std::vector<double> expected = {1.66897956, 1.62559234, 1.58333303, 1.5421723, 1.5020816};
  ASSERT_EQ(noise.size(), expected.size());
  for (std::size_t t = 0; t < noise.size(); ++t) EXPECT_NEAR(noise[t], expected[t], 1e-8);
  EXPECT_NEAR(LeastNoiseTerm(influence), 0.203626406, 1e-9);
}

TEST(NoiseSchedule, SpendsItsBudgetAndReachesTheLeastTerm) {
  std::mt19937_64 random(1);
  for (int trial = 0; trial < 200; ++trial) {
    const std::vector<double> influence = RandomWeights(random, 1 + trial % 30);
    const double budget = std::exp(std::uniform_real_distribution<double>(-5, 5)(random));
    const std::vector<double> noise = OptimalNoise(influence, budget);
    EXPECT_NEAR(BudgetSpent(noise) / budget, 1, 1e-12);
    EXPECT_NEAR(NoiseTerm(influence, noise) / LeastNoiseTerm(influence), 1, 1e-12);
  }
}

// Descent over all schedules, in the shares of the budget p_t = 1 / (R s_t^2), from a random start:
// the term is sum q_t / p_t, and moving share between two steps to their best split never makes it
// larger.
double MinimiseByPairs(const std::vector<double>& influence, std::mt19937_64& random) {
  std::vector<double> share = RandomWeights(random, static_cast<int>(influence.size()));
  double sum = 0;
  for (const double p : share) sum += p;
  for (double& p : share) p /= sum;
  std::uniform_int_distribution<std::size_t> index(0, share.size() - 1);
  const auto split = [&](std::size_t i, std::size_t j, double part) {
    const double both = share[i] + share[j];
    return influence[i] / (part * both) + influence[j] / ((1 - part) * both);
  };
  for (int move = 0; move < 60000; ++move) {
    const std::size_t i = index(random);
    const std::size_t j = index(random);
    if (i == j) continue;
    double low = 0;
    double high = 1;
    for (int k = 0; k < 60; ++k) {
      const double a = low + (high - low) / 3;
      const double b = high - (high - low) / 3;
      (split(i, j, a) < split(i, j, b) ? high : low) = split(i, j, a) < split(i, j, b) ? b : a;
    }
    const double both = share[i] + share[j];
    share[i] = both * 0.5 * (low + high);
    share[j] = both - share[i];
  }
  double term = 0;
  for (std::size_t t = 0; t < share.size(); ++t) term += influence[t] / share[t];
  return term;
}

TEST(NoiseSchedule, IsWhatNumericalMinimisationOverAllSchedulesFinds) {
  std::mt19937_64 random(2);
  for (int trial = 0; trial < 6; ++trial) {
    const std::vector<double> influence = RandomWeights(random, 2 + 2 * trial);
    const double found = MinimiseByPairs(influence, random);
    EXPECT_GE(found, LeastNoiseTerm(influence) * (1 - 1e-12));
    EXPECT_LE(found, LeastNoiseTerm(influence) * (1 + 1e-6));
  }
}

TEST(NoiseSchedule, IsNotBeatenByAnyOtherSchedule) {
  std::mt19937_64 random(3);
  for (int trial = 0; trial < 300; ++trial) {
    const std::vector<double> influence = RandomWeights(random, 8);
    const std::vector<double> other = RandomWeights(random, 8);
    EXPECT_GE(NoiseTerm(influence, other), LeastNoiseTerm(influence) * (1 - 1e-12));
  }
}

TEST(NoiseSchedule, BudgetIsThatOfOneGaussianAndTheScheduleSpendsIt) {
  for (const auto& [epsilon, delta] : {std::pair{1.0, 1e-5}, {0.1, 1e-6}, {8.0, 1e-9}}) {
    const std::optional<double> budget = BudgetOf(Epsilon(epsilon), Delta(delta));
    ASSERT_TRUE(budget.has_value());
    EXPECT_GT(*budget, ZcdpBudgetOf(Epsilon(epsilon), Delta(delta)));
    const std::vector<double> noise = OptimalNoise(std::vector{1.0, 4.0, 0.5, 2.0, 9.0}, *budget);
    std::vector<Event> steps;
    steps.reserve(noise.size());
    for (const double multiplier : noise) {
      steps.push_back(Event::Gaussian(NoiseMultiplier(multiplier)));
    }
    const Interval spent = SpentEpsilon(Event::Compose(steps), Delta(delta));
    EXPECT_LE(spent.lower, epsilon);
    EXPECT_NEAR(spent.upper, epsilon, 1e-4 * epsilon);
  }
}

TEST(NoiseSchedule, ZcdpConversionIsItsOwnInverse) {
  const double budget = ZcdpBudgetOf(Epsilon(1), Delta(1e-5));
  const double rho = budget / 2;
  EXPECT_NEAR(rho + 2 * std::sqrt(rho * std::log(1e5)), 1, 1e-12);
}

TEST(NoiseSchedule, RefusesWhatIsNotPositive) {
  EXPECT_THROW(OptimalNoise({}, 1), Error);
  EXPECT_THROW(OptimalNoise(std::vector{1.0, 0.0}, 1), Error);
  EXPECT_THROW(OptimalNoise(std::vector{1.0, -1.0}, 1), Error);
  EXPECT_THROW(OptimalNoise(std::vector{1.0, std::nan("")}, 1), Error);
  EXPECT_THROW(OptimalNoise(std::vector{1.0}, 0), Error);
  EXPECT_THROW(BudgetSpent(std::vector{1.0, 0.0}), Error);
}

// Algorithms 1 and 2 of the paper end a run where 1 / noise^2 is more than what is left of R. That
// is the Gaussian filter, which holds for noise that is chosen as the run goes.
TEST(BudgetOf, IsTheBudgetOfTheGaussianFilter) {
  for (const double epsilon : {0.3, 1.0, 4.0}) {
    const Delta delta(1e-5);
    const double budget = *BudgetOf(Epsilon(epsilon), delta);
    PrivacyFilter filter = PrivacyFilter::Gaussian(Epsilon(epsilon), delta);
    // Calibration stops 1e-5 below what it may spend at the latest, and a filter shrinks its budget
    // by 1e-7 for rounding.
    EXPECT_LE(budget, (1 + 2e-7) * filter.Budget());
    EXPECT_GT(budget, (1 - 1e-5) * filter.Budget());
    const std::vector<double> influence = ConvergenceProblem(10, 1e-4).Influence(63);
    for (const double noise : OptimalNoise(influence, budget * (1 - 1e-6))) {
      EXPECT_TRUE(filter.Charge(Event::Gaussian(NoiseMultiplier(noise))));
    }
    // The residue is at most 1.1e-5 of R: no step of the schedule fits any more, a tiny one does.
    EXPECT_FALSE(filter.Charge(Event::Gaussian(NoiseMultiplier(100 / std::sqrt(budget)))));
    EXPECT_TRUE(filter.Charge(Event::Gaussian(NoiseMultiplier(1e4 / std::sqrt(budget)))));
  }
}

}  // namespace
}  // namespace sordino
