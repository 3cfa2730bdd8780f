#include "sordino/accounting/failures.h"

#include <gtest/gtest.h>

#include <cmath>

#include "sordino/accounting/calibration.h"
#include "sordino/accounting/gaussian.h"

namespace sordino {
namespace {

const Event kEvent = Event::Gaussian(NoiseMultiplier(2));
const Delta kDelta(1e-5);

TEST(Failures, NoFailureCostsNothing) {
  EXPECT_EQ(SpentEpsilon(kEvent, kDelta, 0).upper, SpentEpsilon(kEvent, kDelta).upper);
}

TEST(Failures, ThePaidDeltaAndTheEventsDeltaAreTheWhole) {
  for (const double tau : {1e-30, 1e-12, 1e-9, 1e-7}) {
    const Interval spent = SpentEpsilon(kEvent, kDelta, tau);
    ASSERT_TRUE(std::isfinite(spent.upper)) << tau;
    const double event_delta = std::exp(GaussianLogDelta(0.5, spent.upper));
    EXPECT_LE(event_delta + (1 + std::exp(spent.upper)) * tau, 1e-5) << tau;
  }
}

TEST(Failures, MoreOfThemNeverCostsLess) {
  double last = 0;
  for (double tau = 1e-20; tau < 1e-5; tau *= 10) {
    const double upper = SpentEpsilon(kEvent, kDelta, tau).upper;
    EXPECT_GE(upper, last) << tau;
    last = upper;
  }
  EXPECT_TRUE(std::isinf(SpentEpsilon(kEvent, kDelta, 1e-4).upper));
}

TEST(Failures, ArePaidUpToAnEpsilonAndNotBeyond) {
  for (const double tau : {1e-30, 1e-16, 1e-9}) {
    for (const double paid : {1e-3, 1e-6, 3.1e-9}) {
      const double largest = LargestPaidEpsilon(tau, paid).value();
      EXPECT_GT(largest, 0);
      EXPECT_TRUE(FailuresArePaid(tau, Epsilon(largest), paid));
      EXPECT_FALSE(FailuresArePaid(tau, Epsilon(largest * (1 + 1e-9)), paid));
    }
  }
  EXPECT_EQ(LargestPaidEpsilon(1e-9, 1.9e-9), Epsilon(0));
  EXPECT_EQ(LargestPaidEpsilon(1e-9, 0), Epsilon(0));
}

TEST(Failures, LargeEpsilonMakesThemDear) {
  EXPECT_TRUE(FailuresArePaid(1e-20, Epsilon(1), 1e-8));
  EXPECT_FALSE(FailuresArePaid(1e-20, Epsilon(40), 1e-8));
  EXPECT_FALSE(FailuresArePaid(1e-20, Epsilon(kInfinity), 1e-8));
  EXPECT_TRUE(FailuresArePaid(0, Epsilon(kInfinity), 0));
}

}  // namespace
}  // namespace sordino
