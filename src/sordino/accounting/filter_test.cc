#include "sordino/accounting/filter.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "sordino/accounting/gaussian.h"
#include "sordino/accounting/renyi.h"
#include "sordino/base/error.h"

namespace sordino {
namespace {

Event RandomStep(std::mt19937_64& random, bool gaussian_only) {
  std::uniform_real_distribution<double> uniform(0, 1);
  const Event gaussian = Event::Gaussian(NoiseMultiplier(std::exp(1 + 3 * uniform(random))));
  if (gaussian_only) return gaussian;
  switch (random() % 4) {
    case 0:
      return gaussian;
    case 1:
      return Event::Poisson(SamplingRate(0.001 + 0.2 * uniform(random)), gaussian);
    case 2:
      return Event::Laplace(NoiseMultiplier(std::exp(2 + 3 * uniform(random))));
    default:
      return Event::Exponential(Epsilon(0.2 * uniform(random)));
  }
}

// Steps are drawn, and the run reacts to what the filter said; the whole, accounted afterwards,
// must lie inside the budget.
TEST(PrivacyFilter, AdaptiveRunsNeverPassTheBudget) {
  std::mt19937_64 random(6);
  std::uniform_real_distribution<double> uniform(0, 1);
  for (int run = 0; run < 60; ++run) {
    const Epsilon epsilon(std::exp(-2 + 4 * uniform(random)));
    const Delta delta(std::exp(-5 - 60 * uniform(random)));
    const bool gaussian_only = run % 3 == 2;
    PrivacyFilter filter = run % 3 == 0
                               ? PrivacyFilter::Renyi(epsilon, delta, RandomStep(random, false))
                           : run % 3 == 1 ? PrivacyFilter::Zcdp(epsilon, delta)
                                          : PrivacyFilter::Gaussian(epsilon, delta);
    std::vector<Event> taken;
    int refused = 0;
    for (int i = 0; i < 400 && refused < 20; ++i) {
      const Event step = RandomStep(random, gaussian_only);
      const bool admitted = filter.Admits(step);
      ASSERT_EQ(filter.Charge(step), admitted);
      if (admitted) taken.push_back(step);
      refused += admitted ? 0 : 1;
      ASSERT_LE(filter.Spent(), filter.Budget());
      ASSERT_LE(filter.SpentEpsilon(), epsilon.value() * (1 + 1e-9));
    }
    const double log_delta = std::log(delta.value());
    if (gaussian_only) {
      double squares = 0;
      for (const Event& step : taken) squares += 1 / (step.numbers()[0] * step.numbers()[0]);
      ASSERT_LE(GaussianEpsilon(std::sqrt(squares), log_delta), epsilon.value() * (1 + 1e-9));
    } else {
      RenyiCurve whole(Event::Compose(taken));
      ASSERT_LE(whole.ToEpsilon(log_delta).epsilon, epsilon.value() * (1 + 1e-9));
    }
  }
}

TEST(PrivacyFilter, EqualStepsComeCloseToTheBudget) {
  const Event step = Event::Poisson(SamplingRate(0.01), Event::Gaussian(NoiseMultiplier(1)));
  PrivacyFilter filter = PrivacyFilter::Renyi(Epsilon(4), Delta(1e-6), step);
  std::uint64_t count = 0;
  while (filter.Charge(step)) ++count;
  RenyiCurve used(Event::Repeat(step, count));
  EXPECT_LE(used.ToEpsilon(std::log(1e-6)).epsilon, 4);
  EXPECT_GE(used.ToEpsilon(std::log(1e-6)).epsilon, 3.95);

  PrivacyFilter gaussian = PrivacyFilter::Gaussian(Epsilon(1), Delta(1e-5));
  count = 0;
  while (gaussian.Charge(Event::Gaussian(NoiseMultiplier(50)))) ++count;
  EXPECT_GE(GaussianEpsilon(std::sqrt(static_cast<double>(count + 1)) / 50, std::log(1e-5)), 1);
}

TEST(PrivacyFilter, RefusesWhatItCannotMeasure) {
  const Event approximate = Event::Approximate(Epsilon(0.01), Delta(1e-9));
  PrivacyFilter renyi = PrivacyFilter::Renyi(Epsilon(1), Delta(1e-5), RenyiOrder(20));
  EXPECT_FALSE(renyi.Charge(approximate));
  EXPECT_EQ(renyi.Spent(), 0);
  EXPECT_TRUE(renyi.Charge(Event::Gaussian(NoiseMultiplier(100))));
  PrivacyFilter gaussian = PrivacyFilter::Gaussian(Epsilon(1), Delta(1e-5));
  // The central limit estimate of a sampled Gaussian is no bound.
  EXPECT_FALSE(
      gaussian.Charge(Event::Poisson(SamplingRate(1e-6), Event::Gaussian(NoiseMultiplier(100)))));
  EXPECT_THROW(PrivacyFilter::Renyi(Epsilon(1), Delta(1e-5), approximate), Error);
  EXPECT_THROW(PrivacyFilter::Zcdp(Epsilon(1), Delta(0)), Error);
  EXPECT_THROW(PrivacyFilter::Gaussian(Epsilon(kInfinity), Delta(1e-5)), Error);
}

TEST(PrivacyFilter, TooSmallABudgetAdmitsNothing) {
  // At order 2 the conversion alone costs more than epsilon.
  PrivacyFilter filter = PrivacyFilter::Renyi(Epsilon(0.1), Delta(1e-9), RenyiOrder(2));
  EXPECT_EQ(filter.Budget(), 0);
  EXPECT_FALSE(filter.Charge(Event::Gaussian(NoiseMultiplier(1000))));
  EXPECT_TRUE(filter.Charge(Event::None()));
}

TEST(PrivacyOdometer, ReportsAtLeastTheFixedAnswerAndRises) {
  PrivacyOdometer odometer(Delta(1e-6));
  EXPECT_EQ(odometer.Epsilon(), 0);
  const Event step = Event::Gaussian(NoiseMultiplier(30));
  double previous = 0;
  for (std::uint64_t i = 1; i <= 300; ++i) {
    odometer.Charge(step);
    RenyiCurve curve(Event::Repeat(step, i));
    const double fixed = curve.ToEpsilon(std::log(1e-6)).epsilon;
    ASSERT_GE(odometer.Epsilon(), fixed);
    ASSERT_LE(odometer.Epsilon(), 2 * fixed);
    ASSERT_GE(odometer.Epsilon(), previous);
    previous = odometer.Epsilon();
  }
  PrivacyOdometer renyi(Delta(1e-6), RenyiOrder(16));
  renyi.Charge(Event::Poisson(SamplingRate(0.01), Event::Gaussian(NoiseMultiplier(1))));
  EXPECT_GT(renyi.Epsilon(), 0);
  EXPECT_THROW(renyi.Charge(Event::Approximate(Epsilon(1), Delta(0.1))), Error);
}

}  // namespace
}  // namespace sordino
