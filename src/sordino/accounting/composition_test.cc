#include "sordino/accounting/composition.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "sordino/accounting/gaussian.h"
#include "sordino/accounting/renyi.h"

namespace sordino {
namespace {

Event Sgd(double rate, double noise, std::uint64_t steps) {
  return Event::Repeat(Event::Poisson(SamplingRate(rate), Event::Gaussian(NoiseMultiplier(noise))),
                       steps);
}

// The definition, term by term, for small k.
double BruteForceDelta(double step, double delta, int k, double epsilon) {
  double hockey = 0;
  for (int j = 0; j <= k; ++j) {
    const double log_choose =
        std::lgamma(k + 1.0) - std::lgamma(j + 1.0) - std::lgamma(k - j + 1.0);
    const double p = std::exp(log_choose + j * step - k * std::log1p(std::exp(step)));
    hockey += p * std::max(0.0, 1 - std::exp(epsilon - (2 * j - k) * step));
  }
  return 1 - std::pow(1 - delta, k) * (1 - hockey);
}

TEST(OptimalComposition, MatchesTheDefinitionForSmallCounts) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> uniform(0, 1);
  for (int i = 0; i < 300; ++i) {
    const int k = 1 + static_cast<int>(random() % 60);
    const double step = std::exp(-5 + 6 * uniform(random));
    const double delta = i % 3 == 0 ? 0 : 0.01 * uniform(random) / k;
    const double epsilon = uniform(random) * 0.9 * k * step;
    const StepGuarantee steps{step, std::log(delta), static_cast<std::uint64_t>(k)};
    const double expected = BruteForceDelta(step, delta, k, epsilon);
    const double actual = std::exp(OptimalLogDelta(steps, epsilon));
    ASSERT_NEAR(actual, expected, 1e-9 * expected + 1e-14) << k << " " << step << " " << epsilon;
    if (expected > 1e-10 && expected < 0.999) {
      const double back = OptimalEpsilon(steps, std::log(expected));
      ASSERT_NEAR(std::exp(OptimalLogDelta(steps, back)) / expected, 1, 1e-9) << k << " " << step;
      ASSERT_LE(back, k * step);
    }
  }
}

TEST(OptimalComposition, EpsilonAndDeltaAreInverse) {
  for (const double count : {1e2, 1e4, 1e6, 1e8}) {
    const StepGuarantee steps{0.5 / std::sqrt(count), -kInfinity,
                              static_cast<std::uint64_t>(count)};
    for (const double log_delta : {std::log(1e-3), std::log(1e-12), std::log(1e-100)}) {
      const double epsilon = OptimalEpsilon(steps, log_delta);
      ASSERT_GT(epsilon, 0);
      ASSERT_LE(epsilon, count * steps.epsilon);
      // So little delta that only the sum of all losses, to the last digit, will do.
      if (epsilon == count * steps.epsilon) continue;
      ASSERT_NEAR(OptimalLogDelta(steps, epsilon), log_delta, 1e-7 * std::abs(log_delta));
    }
  }
}

TEST(OptimalComposition, IsNeverAboveBasicOrAdvanced) {
  std::mt19937_64 random(2);
  std::uniform_real_distribution<double> uniform(0, 1);
  for (int i = 0; i < 300; ++i) {
    const StepGuarantee steps{std::exp(-9 + 10 * uniform(random)), -kInfinity,
                              1 + random() % 100000};
    const double log_delta = -1 - 300 * uniform(random);
    const double optimal = OptimalEpsilon(steps, log_delta);
    ASSERT_GE(optimal, 0);
    const double basic = ComposeBasic(std::span(&steps, 1)).epsilon;
    ASSERT_LE(optimal, basic * (1 + 1e-9));
    ASSERT_LE(optimal, AdvancedEpsilon(std::span(&steps, 1), log_delta) * (1 + 1e-9));
  }
}

TEST(OptimalComposition, DifferentStepsAreBoundedAndNearTheEqualOnes) {
  // Two groups with the same parameters must not be far above the exact answer of one group, and
  // never below it.
  for (const std::uint64_t k : {2U, 20U, 100U, 1000U}) {
    const StepGuarantee whole{0.1, std::log(1e-9), 2 * k};
    const std::vector<StepGuarantee> halves = {{0.1, std::log(1e-9), k}, {0.1, std::log(1e-9), k}};
    for (const double log_delta : {std::log(1e-5), std::log(0.01)}) {
      const double exact = OptimalEpsilon(whole, log_delta);
      const double bound = OptimalEpsilon(halves, log_delta);
      EXPECT_GE(bound, exact * (1 - 1e-9)) << k;
      EXPECT_LE(bound, exact * 1.2 + 1e-3) << k;
    }
  }
}

TEST(OptimalComposition, ExtremeInputsGiveNumbers) {
  for (const double step : {0.0, 1e-12, 1e-3, 1.0, 50.0, 1e5}) {
    for (const std::uint64_t count : {1ULL, 3ULL, 100000000ULL}) {
      for (const double log_delta : {-1e-9, -1.0, -690.0, -1e6, -kInfinity}) {
        const double epsilon = OptimalEpsilon({step, -kInfinity, count}, log_delta);
        ASSERT_GE(epsilon, 0) << step << " " << count << " " << log_delta;
        ASSERT_LE(epsilon, step * static_cast<double>(count) * (1 + 1e-9));
      }
    }
  }
}

TEST(AdvancedComposition, FormsAgreeForSmallEpsilonUpToTheSecondTerm) {
  const StepGuarantee steps{0.01, -kInfinity, 1000};
  const double log_slack = std::log(1e-6);
  // Dwork, Rothblum and Vadhan 2010, theorem III.3.
  const double original = 0.01 * std::sqrt(-2000 * log_slack) + 1000 * 0.01 * std::expm1(0.01);
  const double tighter = AdvancedEpsilon(std::span(&steps, 1), log_slack);
  EXPECT_LT(tighter, original);
  // k e (e^e - 1) against k e tanh(e / 2): half of it to first order.
  EXPECT_NEAR(original - tighter, 1000 * 0.01 * 0.005, 1e-3);
}

TEST(AmplifyBySampling, MatchesTheClosedFormAndItsLimits) {
  const StepGuarantee step{1, std::log(1e-6), 1};
  EXPECT_NEAR(AmplifyBySampling(step, 0.1).epsilon, std::log(1 + 0.1 * (std::exp(1.0) - 1)), 1e-11);
  EXPECT_NEAR(AmplifyBySampling(step, 0.1).log_delta, std::log(1e-7), 1e-12);
  EXPECT_NEAR(AmplifyBySampling(step, 1).epsilon, 1, 1e-11);
  EXPECT_EQ(AmplifyBySampling(step, 0).epsilon, 0);
  EXPECT_NEAR(AmplifyBySampling({1e4, 0, 1}, 0.1).epsilon, 1e4 + std::log(0.1), 1e-8);
}

TEST(StepEpsilon, LaplaceMeetsItsClosedForm) {
  // delta(eps) = 1 - e^((eps - 1/b) / 2)
  const double epsilon = StepEpsilon(Event::Laplace(NoiseMultiplier(1)), std::log(0.1));
  EXPECT_NEAR(-std::expm1((epsilon - 1) / 2), 0.1, 1e-9);
  EXPECT_NEAR(StepEpsilon(Event::Laplace(NoiseMultiplier(2)), -kInfinity), 0.5, 1e-9);
}

TEST(ClassicalComposition, OneGaussianIsExactUnderBasic) {
  const Event event = Event::Gaussian(NoiseMultiplier(2));
  EXPECT_NEAR(BasicComposition(event, std::log(1e-5)).epsilon, GaussianEpsilon(0.5, std::log(1e-5)),
              1e-9);
}

TEST(ClassicalComposition, PureStepsAddUpAtDeltaZero) {
  const Event event = Event::Compose({{Event::Laplace(NoiseMultiplier(70.0 / 21)), 10}});
  EXPECT_NEAR(BasicComposition(event, -kInfinity).epsilon, 3, 1e-9);
  EXPECT_NEAR(OptimalComposition(event, -kInfinity).epsilon, 3, 1e-9);
  EXPECT_FALSE(BasicComposition(Sgd(0.1, 1, 10), -kInfinity).reason.empty());
}

TEST(ClassicalComposition, ApproximateStepsNeedTheirOwnDelta) {
  const Event event = Event::Repeat(Event::Approximate(Epsilon(0.1), Delta(1e-6)), 100);
  EXPECT_FALSE(BasicComposition(event, std::log(1e-5)).reason.empty());
  EXPECT_NEAR(BasicComposition(event, std::log(1e-3)).epsilon, 10, 1e-9);
  const MethodResult advanced = AdvancedComposition(event, std::log(1e-3));
  const MethodResult optimal = OptimalComposition(event, std::log(1e-3));
  EXPECT_LT(advanced.epsilon, 10);
  EXPECT_LE(optimal.epsilon, advanced.epsilon);
}

TEST(ClassicalComposition, MethodsAreOrderedAndNeverBelowTheExactGaussian) {
  std::mt19937_64 random(3);
  std::uniform_real_distribution<double> uniform(0, 1);
  for (int i = 0; i < 40; ++i) {
    const double noise = std::exp(3 * uniform(random));
    const std::uint64_t steps = 1 + random() % 1000;
    const double log_delta = -3 - 100 * uniform(random);
    const Event event = Event::Repeat(Event::Gaussian(NoiseMultiplier(noise)), steps);
    const double exact = GaussianEpsilon(std::sqrt(static_cast<double>(steps)) / noise, log_delta);
    for (const MethodResult& result :
         {BasicComposition(event, log_delta), AdvancedComposition(event, log_delta),
          OptimalComposition(event, log_delta)}) {
      ASSERT_TRUE(result.reason.empty()) << result.reason;
      ASSERT_GE(result.epsilon, exact * (1 - 1e-9));
    }
    ASSERT_LE(OptimalComposition(event, log_delta).epsilon,
              AdvancedComposition(event, log_delta).epsilon * (1 + 1e-9));
  }
}

TEST(ClassicalComposition, AnswersGrowWithTheNumberOfSteps) {
  const double log_delta = std::log(1e-6);
  MethodResult (*const methods[])(const Event&, double) = {BasicComposition, AdvancedComposition,
                                                           OptimalComposition};
  for (const auto method : methods) {
    double previous = 0;
    for (const std::uint64_t steps : {1ULL, 10ULL, 1000ULL, 100000ULL, 100000000ULL}) {
      const MethodResult result = method(Sgd(0.01, 4, steps), log_delta);
      ASSERT_TRUE(result.reason.empty());
      ASSERT_GE(result.epsilon, previous);
      previous = result.epsilon;
    }
  }
}

TEST(ClassicalComposition, NothingReleasedCostsNothing) {
  EXPECT_EQ(BasicComposition(Event::None(), -kInfinity).epsilon, 0);
  EXPECT_EQ(OptimalComposition(Event::None(), std::log(1e-5)).epsilon, 0);
  EXPECT_EQ(AdvancedComposition(Sgd(0.1, 1, 5), 0.0).epsilon, 0);
  EXPECT_EQ(BasicComposition(Sgd(0, 1, 5), std::log(1e-5)).epsilon, 0);
}

}  // namespace
}  // namespace sordino
