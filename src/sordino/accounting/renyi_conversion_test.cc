#include "sordino/accounting/renyi_conversion.h"

#include <gtest/gtest.h>

#include <cmath>

namespace sordino {
namespace {

TEST(RenyiConversion, ContinuousOptimumIsNeverAboveAnyOrder) {
  for (const double slope : {1e-6, 1e-3, 0.1, 10.0, 1e4}) {
    for (const double log_delta : {-0.1, -5.0, -50.0, -690.0, -1e5}) {
      const auto curve = [slope](double order) { return slope * order; };
      const RenyiEpsilonResult best = MinimizeEpsilon(curve, log_delta);
      ASSERT_GE(best.epsilon, 0);
      for (double t = -9; t < 9; t += 0.05) {
        const double order = 1 + std::pow(10, t);
        ASSERT_LE(best.epsilon,
                  EpsilonFromRenyi(curve(order), order, log_delta) * (1 + 1e-9) + 1e-12)
            << slope << " " << log_delta << " " << order;
      }
    }
  }
}

TEST(RenyiConversion, OldConversionOfALineHasItsClosedForm) {
  // rho alpha + L / (alpha - 1) is least at rho + 2 sqrt(rho L).
  const double rho = 0.03;
  const double log_delta = std::log(1e-7);
  const auto curve = [rho](double order) { return rho * order; };
  const RenyiEpsilonResult result = MinimizeEpsilon(curve, log_delta, RenyiConversion::kOld);
  EXPECT_NEAR(result.epsilon, rho + 2 * std::sqrt(-rho * log_delta), 1e-9);
  EXPECT_NEAR(result.order, 1 + std::sqrt(-log_delta / rho), 1e-2);
  EXPECT_LT(MinimizeEpsilon(curve, log_delta).epsilon, result.epsilon);
}

TEST(RenyiConversion, DeltaInvertsEpsilon) {
  for (const double slope : {1e-5, 0.01, 2.0}) {
    const auto curve = [slope](double order) { return slope * order; };
    for (const double log_delta : {-3.0, -20.0, -500.0}) {
      const double epsilon = MinimizeEpsilon(curve, log_delta).epsilon;
      if (epsilon == 0) continue;  // delta at 0 is smaller still
      ASSERT_NEAR(MinimizeDelta(curve, epsilon).log_delta, log_delta, 1e-6 * std::abs(log_delta));
    }
  }
}

TEST(RenyiConversion, FindsAMinimumBehindAWall) {
  // Finite only below order 1.01, as for tiny noise.
  const auto curve = [](double order) { return order < 1.01 ? 50.0 * order : kInfinity; };
  const RenyiEpsilonResult result = MinimizeEpsilon(curve, std::log(1e-5));
  EXPECT_LT(result.epsilon, 50 * 1.01 + 13 / 0.005);
  EXPECT_LT(result.order, 1.01);
  EXPECT_EQ(MinimizeEpsilon([](double) { return kInfinity; }, -5).epsilon, kInfinity);
}

TEST(RenyiConversion, TrivialDeltas) {
  const auto curve = [](double order) { return order; };
  EXPECT_EQ(MinimizeEpsilon(curve, 0).epsilon, 0);
  EXPECT_EQ(MinimizeEpsilon(curve, -kInfinity).epsilon, kInfinity);
  EXPECT_LE(MinimizeDelta(curve, 0).log_delta, 0);
  EXPECT_EQ(MinimizeDelta([](double) { return kInfinity; }, 1).log_delta, 0);
}

}  // namespace
}  // namespace sordino
