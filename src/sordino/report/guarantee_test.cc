#include "sordino/report/guarantee.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "sordino/accounting/gaussian.h"

namespace sordino {
namespace {

TEST(Guarantee, OfAGaussianMatchesItsClosedForms) {
  const double mu = 0.7;
  const Guarantee guarantee = GuaranteeOf(Event::Gaussian(NoiseMultiplier(1 / mu)), 1e-5, 0);
  // Total variation of N(0, 1) and N(mu, 1): 2 Phi(mu / 2) - 1.
  EXPECT_NEAR(guarantee.attack_accuracy, 1 - UpperTail(mu / 2), 1e-9);
  ASSERT_EQ(guarantee.recognised.size(), 4U);
  for (const TradeoffPoint& point : guarantee.recognised) {
    const double exact = GaussianTruePositiveRate(mu, point.type_one);
    EXPECT_GE(point.type_two, exact) << "at " << point.type_one;  // never less than an attack does
    EXPECT_LE(point.type_two, 1.1 * exact + 2e-6) << "at " << point.type_one;
  }
  for (const TradeoffPoint& point : guarantee.curve) {
    EXPECT_LE(point.type_two, GaussianTradeoff(mu, point.type_one) + 1e-15);
    EXPECT_GE(point.type_two, GaussianTradeoff(mu, point.type_one) - 0.01);
  }
}

TEST(Guarantee, OfAPureMechanismIsItsEpsilon) {
  const double epsilon = std::log(3.0);
  const Guarantee guarantee = GuaranteeOf(Event::Pure(Epsilon(epsilon)), 0, 0);
  EXPECT_NEAR(guarantee.epsilon, epsilon, 1e-9);
  EXPECT_NEAR(guarantee.attack_accuracy, 0.75, 1e-6);  // e^eps / (1 + e^eps)
  EXPECT_NEAR(guarantee.recognised[1].type_two, 0.03, 1e-6);
  // A belief of 10 % has odds 1:9, and 3:9 after.
  ASSERT_EQ(guarantee.beliefs.size(), 3U);
  EXPECT_NEAR(guarantee.beliefs[1].second, 0.25, 1e-9);
}

TEST(Guarantee, PaysForFailures) {
  const Event event = Event::Gaussian(NoiseMultiplier(2));
  const Guarantee without = GuaranteeOf(event, 1e-5, 0);
  const Guarantee with = GuaranteeOf(event, 1e-5, 1e-7);
  EXPECT_GT(with.epsilon, without.epsilon);
  EXPECT_GT(with.attack_accuracy, without.attack_accuracy);
  EXPECT_NEAR(with.attack_accuracy - without.attack_accuracy, 1e-7, 2e-9);  // 2 tau of delta(0)
}

TEST(Guarantee, OfNothingIsChance) {
  const Guarantee guarantee = GuaranteeOf(Event::None(), 1e-5, 0);
  EXPECT_EQ(guarantee.epsilon, 0);
  EXPECT_NEAR(guarantee.attack_accuracy, 0.5, 1e-9);
}

TEST(Guarantee, WithoutALimitAdmitsEveryAttack) {
  const Guarantee guarantee = GuaranteeOf({}, std::numeric_limits<double>::infinity(), 1e-5);
  EXPECT_EQ(guarantee.attack_accuracy, 1);
  EXPECT_EQ(guarantee.recognised.back().type_two, 1);
  EXPECT_EQ(guarantee.beliefs.front().second, 1);
}

}  // namespace
}  // namespace sordino
