#include "sordino/accounting/internal/pairs/bounded_range.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "sordino/accounting/accountant.h"
#include "sordino/accounting/internal/engines/exact_release.h"

namespace sordino {
namespace {

double Profile(const LossPair& pair, double epsilon) {
  return std::exp(ExactLogDelta(pair, epsilon));
}

// The largest delta of `steps` adaptive steps over a grid of losses t, by brute force.
double BruteForce(double range, int steps, double epsilon, int grid) {
  if (steps == 0) return std::max(0.0, -std::expm1(epsilon));
  double most = 0;
  for (int i = 0; i <= grid; ++i) {
    const double t = range * i / grid;
    const double p = (std::exp(range) - std::exp(t)) / std::expm1(range);
    most = std::max(most, p * BruteForce(range, steps - 1, epsilon - t, grid) +
                              (1 - p) * BruteForce(range, steps - 1, epsilon - t + range, grid));
  }
  return most;
}

TEST(BoundedRange, OneStepIsTheLargestOverAllLosses) {
  for (const double range : {0.01, 0.5, 3.0}) {
    const LossPair pair = BoundedRangeUpper(range, 1, -60, Effort::kFull);
    for (const double share : {0.0, 0.2, 0.55, 0.9}) {
      const double epsilon = share * range;
      // The largest of (e^range - s)(1 - e^epsilon / s) is at s^2 = e^(range + epsilon).
      const double gap = std::exp(0.5 * range) - std::exp(0.5 * epsilon);
      const double exact = gap * gap / std::expm1(range);
      EXPECT_GE(Profile(pair, epsilon), exact * (1 - 1e-12)) << range << " " << epsilon;
      EXPECT_LE(Profile(pair, epsilon), exact * (1 + 1e-3)) << range << " " << epsilon;
    }
  }
}

TEST(BoundedRange, DominatesEveryAdaptiveSequence) {
  for (const double range : {0.1, 1.0, 2.5}) {
    for (const int steps : {2, 3}) {
      const LossPair pair =
          BoundedRangeUpper(range, static_cast<std::uint64_t>(steps), -60, Effort::kFull);
      const LossPair quick =
          BoundedRangeUpper(range, static_cast<std::uint64_t>(steps), -60, Effort::kQuick);
      for (const double share : {-0.3, 0.0, 0.4, 0.8}) {
        const double epsilon = share * range * steps;
        const double found = BruteForce(range, steps, epsilon, steps == 2 ? 120 : 36);
        EXPECT_GE(Profile(pair, epsilon), found * (1 - 1e-10)) << range << " " << epsilon;
        EXPECT_LE(Profile(pair, epsilon), found * 1.02) << range << " " << epsilon;
        EXPECT_GE(Profile(quick, epsilon), Profile(pair, epsilon) * (1 - 1e-3));
      }
    }
  }
}

TEST(BoundedRange, MassesOfBothLawsSumToOne) {
  for (const double range : {1e-3, 0.3, 4.0}) {
    for (const std::uint64_t steps : {1, 7, 200}) {
      const LossPair pair = BoundedRangeUpper(range, steps, -40, Effort::kFull);
      double p = pair.infinite_mass;
      double q = pair.absent_q;
      for (const LossAtom& atom : pair.atoms) {
        ASSERT_GE(atom.mass, 0);
        p += atom.mass;
        q += atom.mass * std::exp(-atom.loss);
      }
      EXPECT_NEAR(p, 1, 1e-10) << range << " " << steps;
      EXPECT_NEAR(q, 1, 1e-10) << range << " " << steps;
      EXPECT_NEAR(pair.missing_p, 0, 1e-10);
    }
  }
}

TEST(BoundedRange, AStrategyIsAttainedAndNearlyTheWorst) {
  for (const double range : {0.02, 0.5, 3.0}) {
    for (const std::uint64_t steps : {2, 5, 40, 256}) {
      const LossPair lower = BoundedRangeStrategy(range, steps, std::log(1e-4));
      const LossPair upper = BoundedRangeUpper(range, steps, -40, Effort::kFull);
      double p = 0;
      double q = 0;
      for (const LossAtom& atom : lower.atoms) {
        ASSERT_LE(std::abs(atom.loss), static_cast<double>(steps) * range * (1 + 1e-12));
        p += atom.mass;
        q += atom.mass * std::exp(-atom.loss);
      }
      // Two laws: the losses of a strategy keep the mean of e^-loss at one.
      EXPECT_NEAR(p, 1, 1e-9) << range << " " << steps;
      EXPECT_NEAR(q, 1, 1e-9) << range << " " << steps;
      const double low = ExactEpsilon(lower, std::log(1e-4));
      const double high = ExactEpsilon(upper, std::log(1e-4));
      EXPECT_LE(low, high);
      EXPECT_GT(low, 0.99 * high) << range << " " << steps;
      for (const double share : {-0.5, 0.0, 0.3, 1.2}) {
        EXPECT_LE(Profile(lower, share * high), Profile(upper, share * high) * (1 + 1e-9));
      }
    }
  }
}

TEST(BoundedRange, TwoLossesAreAPairOfThatRange) {
  for (const double range : {0.2, 3.0}) {
    for (const double share : {0.01, 0.5, 0.97}) {
      const Outcomes outcomes = TwoLossOutcomes(range, share * range);
      EXPECT_NEAR(std::exp(outcomes[0].log_p) + std::exp(outcomes[1].log_p), 1, 1e-12);
      EXPECT_NEAR(std::exp(outcomes[0].log_q) + std::exp(outcomes[1].log_q), 1, 1e-12);
      EXPECT_NEAR(outcomes[0].loss - outcomes[1].loss, range, 1e-12);
    }
  }
}

Event Exponentials(std::uint64_t count, double range) {
  return Event::Repeat(Event::Exponential(Epsilon(range)), count);
}

TEST(ExponentialMechanism, IntervalIsNarrowAtEveryCount) {
  for (const std::uint64_t count : {1, 2, 5, 100, 257, 50000}) {
    for (const double range : {0.01, 0.4, 2.0}) {
      for (const double delta : {1e-3, 2e-11}) {
        const Interval value = Account(Exponentials(count, range), Delta(delta)).value;
        EXPECT_LE(value.lower, value.upper);
        EXPECT_GT(value.lower, 0.99 * value.upper) << count << " " << range << " " << delta;
      }
    }
  }
}

TEST(ExponentialMechanism, MoreStepsAndSmallerDeltasCostMore) {
  for (const std::uint64_t count : {1, 3, 255, 256}) {
    const Interval one = Account(Exponentials(count, 0.3), Delta(1e-6)).value;
    EXPECT_LE(one.lower, Account(Exponentials(count + 1, 0.3), Delta(1e-6)).value.upper);
    EXPECT_LE(one.lower, Account(Exponentials(count, 0.3), Delta(1e-7)).value.upper);
    EXPECT_LE(one.lower, Account(Exponentials(count, 0.31), Delta(1e-6)).value.upper);
    // An exponential mechanism is pure, and the other ranges of a composition count too.
    const Event pure = Event::Repeat(Event::Pure(Epsilon(0.3)), count);
    EXPECT_LE(one.upper, Account(pure, Delta(1e-6)).value.upper);
    const Event both = Event::Compose({Exponentials(count, 0.3), Exponentials(7, 0.2)});
    EXPECT_LE(one.lower, Account(both, Delta(1e-6)).value.upper);
  }
}

TEST(ExponentialMechanism, PureEpsilonIsTheRange) {
  const Interval value = Account(Exponentials(3, 0.5), Delta(0)).value;
  EXPECT_NEAR(value.upper, 1.5, 1e-12);
  EXPECT_NEAR(value.lower, 1.5, 1e-9);
}

}  // namespace
}  // namespace sordino
