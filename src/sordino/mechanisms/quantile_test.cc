#include "sordino/mechanisms/quantile.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "sordino/base/error.h"

namespace sordino {
namespace {

TEST(Quantile, IsCloseToTheTruthOnManyRows) {
  InsecureSeededGenerator generator(1);
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> uniform(0, 100);
  for (const double q : {0.1, 0.5, 0.99}) {
    const auto statistic = MakeQuantile(q, Bounds(-50, 150), {}, {.epsilon = Epsilon(1)});
    for (int i = 0; i < 100'000; ++i) statistic->Add(0, uniform(random));
    const Release release = statistic->Finish(generator).front();
    EXPECT_NEAR(release.value(), 100 * q, 1) << q;
    EXPECT_LE(release.interval().lower, release.value());
    EXPECT_GE(release.interval().upper, release.value());
    EXPECT_LT(release.interval().upper - release.interval().lower, 2);
  }
}

TEST(Quantile, FindsAValueThatHoldsMostRows) {
  // Ranks jump from 10% to 90% inside one cell; utilities of edges alone would all be bad.
  InsecureSeededGenerator generator(2);
  const auto statistic = MakeQuantile(0.5, Bounds(0, 1), {}, {.epsilon = Epsilon(1)});
  for (int i = 0; i < 1000; ++i) statistic->Add(0, i < 100 ? 0.2 : i < 900 ? 0.5 : 0.8);
  EXPECT_NEAR(statistic->Finish(generator).front().value(), 0.5, 1.0 / 65536);
}

// Five rows at 0.1 and five at 0.9: cells from the one to the other miss the median's rank by 0
// rows, all others by 5. At epsilon 0.4 the value gets 0.2, D = 1/2, so a miss of 5 weighs
// exp(-0.2 * 5 / (2 * 0.5)) = e^-1. 1,500 draws; 5 standard errors (false alarm 6e-7).
TEST(Quantile, ChoosesWithTheProbabilitiesOfTheMechanism) {
  InsecureSeededGenerator generator(3);
  const auto statistic = MakeQuantile(0.5, Bounds(0, 1), {}, {.epsilon = Epsilon(0.4)});
  for (int i = 0; i < 10; ++i) statistic->Add(0, i < 5 ? 0.1 : 0.9);
  constexpr int kDraws = 1500;
  int outside = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double value = statistic->Finish(generator).front().value();
    outside += value < 0.0999 || value > 0.9001 ? 1 : 0;
  }
  const double expected = 0.2 * std::exp(-1) / (0.8 + 0.2 * std::exp(-1));
  const double error = std::sqrt(expected * (1 - expected) / kDraws);
  EXPECT_NEAR(outside / static_cast<double>(kDraws), expected, 5 * error);
}

// Each interval covers the true median with probability 0.9 at least; 500 draws, 5 standard
// deviations of 6.7.
TEST(Quantile, IntervalsCoverAtLeastAsOftenAsTheySay) {
  InsecureSeededGenerator generator(4);
  const auto statistic =
      MakeQuantile(0.5, Bounds(0, 1), {}, {.epsilon = Epsilon(0.5), .confidence = 0.9});
  for (int i = 0; i < 1001; ++i) statistic->Add(0, std::pow(i / 1000.0, 2));
  int misses = 0;
  for (int i = 0; i < 500; ++i) {
    const Interval interval = statistic->Finish(generator).front().interval();
    misses += interval.lower <= 0.25 && 0.25 <= interval.upper ? 0 : 1;
  }
  EXPECT_LE(misses, 50 + 34);
}

// Few rows, and ranks near the ends: the targets of the ends lie outside of the rows.
TEST(Quantile, IntervalsCoverNearTheEndsToo) {
  InsecureSeededGenerator generator(11);
  struct Case {
    int rows;
    double q;
    double epsilon;
  };
  for (const Case& own : {Case{1000, 0.001, 1}, Case{1000, 0.999, 1}, Case{20, 0.1, 1},
                          Case{20, 0.9, 1}, Case{10, 0.5, 0.2}}) {
    const auto statistic =
        MakeQuantile(own.q, Bounds(0, 1), {}, {.epsilon = Epsilon(own.epsilon), .confidence = 0.9});
    for (int i = 0; i < own.rows; ++i) statistic->Add(0, (i + 0.5) / own.rows);
    int misses = 0;
    for (int i = 0; i < 200; ++i) {
      const Interval interval = statistic->Finish(generator).front().interval();
      const double rank = own.q * own.rows;  // between the values of these two rows
      const double low = (std::ceil(rank) - 0.5) / own.rows;
      const double high = (std::floor(rank) + 0.5) / own.rows;
      misses += interval.lower <= high && low <= interval.upper ? 0 : 1;
    }
    // Binomial around at most 20, with standard deviation 4.3.
    EXPECT_LE(misses, 20 + 22) << own.rows << " " << own.q;
  }
}

TEST(Quantile, SurvivesNoRowsAndHostileValues) {
  InsecureSeededGenerator generator(5);
  const auto statistic = MakeQuantile(0.5, Bounds(-1, 1), {}, {.epsilon = Epsilon(1)});
  EXPECT_TRUE(std::isfinite(statistic->Finish(generator).front().value()));
  for (const double x : {std::numeric_limits<double>::quiet_NaN(), kInfinity, -kInfinity, 1e308}) {
    statistic->Add(0, x);
  }
  const Release release = statistic->Finish(generator).front();
  EXPECT_GE(release.value(), -1);
  EXPECT_LE(release.value(), 1);
}

TEST(Quantile, ChargesValueAndBothEnds) {
  const NoiseBudget budget{.epsilon = Epsilon(1)};
  const Event event = MakeQuantile(0.5, Bounds(0, 1), {}, budget)->event();
  double total = 0;
  for (const auto& [child, count] : event.Flatten()) {
    EXPECT_EQ(child.name(), "exponential");
    total += child.number("epsilon") * static_cast<double>(count);
  }
  EXPECT_DOUBLE_EQ(total, 1);
  EXPECT_EQ(MakeQuantile(0.5, Bounds(0, 1), {.groups = 2}, budget)->event(), event);
}

TEST(Quantile, RefusesBadRanksAndBudgets) {
  const Bounds bounds(0, 1);
  for (const double q : {0.0, 1.0, -0.5, 2.0}) {
    EXPECT_THROW(MakeQuantile(q, bounds, {}, {.epsilon = Epsilon(1)}), Error);
  }
  EXPECT_THROW(MakeQuantile(0.5, bounds, {}, {.epsilon = Epsilon(1e-9)}), Error);
  EXPECT_THROW(MakeQuantile(0.5, bounds, {.rows = 0}, {.epsilon = Epsilon(1)}), Error);
}

}  // namespace
}  // namespace sordino
