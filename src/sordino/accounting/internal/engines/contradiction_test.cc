#include "sordino/accounting/internal/engines/contradiction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "sordino/accounting/accountant.h"
#include "sordino/accounting/testing/random_event.h"

namespace sordino {
namespace {

using ::testing::HasSubstr;

TEST(Contradiction, NamesBothMethodsAndTheEvent) {
  try {
    ConsistentLower({2.0, 1.0}, {"pld", "optimal"}, "add-remove: gaussian(1)");
    FAIL() << "a lower end above the upper end was accepted";
  } catch (const ContradictionError& error) {
    EXPECT_THAT(error.what(), HasSubstr("pld says at least 2"));
    EXPECT_THAT(error.what(), HasSubstr("optimal says at most 1"));
    EXPECT_THAT(error.what(), HasSubstr("gaussian(1)"));
  }
}

TEST(Contradiction, AllowsOutwardRoundingOnly) {
  EXPECT_EQ(ConsistentLower({1 + 1e-13, 1}, {"a", "b"}, "e"), 1);
  EXPECT_THROW(ConsistentLower({1 + 1e-11, 1}, {"a", "b"}, "e"), ContradictionError);
  EXPECT_EQ(ConsistentLogLower({-20 + 1e-12, -20}, {"a", "b"}, "e"), -20);
  EXPECT_THROW(ConsistentLogLower({-20 + 1e-9, -20}, {"a", "b"}, "e"), ContradictionError);
  EXPECT_EQ(ConsistentLower({0, kInfinity}, {"a", "b"}, "e"), 0);
}

// 10,000 random events of every kind, in shards so that they can run side by side; the program
// contradiction_hunt asks as many more as its time allows. Account and AccountDelta throw
// ContradictionError where a sound upper bound lies below a sound lower bound. Quick answers use
// the same theorems and code as full ones on coarser lists and grids; one event in 400 is also
// asked at full effort, and the two answers must overlap.
constexpr int kShards = 25;
constexpr int kEventsPerShard = 400;
constexpr int kFullEvery = 400;

class RandomEvents : public ::testing::TestWithParam<int> {};

TEST_P(RandomEvents, HaveNoContradiction) {
  for (int i = 0; i < kEventsPerShard; ++i) {
    const auto seed = std::uint64_t{kEventsPerShard} * static_cast<std::uint64_t>(GetParam()) +
                      static_cast<std::uint64_t>(i);
    std::mt19937_64 random(seed);
    const Event event = testing::RandomEvent(random);
    const double delta = testing::RandomDelta(random);
    try {
      const AccountReport report = Account(event, Delta(delta), Effort::kQuick);
      EXPECT_GE(report.value.lower, 0) << event.ToString();
      EXPECT_FALSE(std::isnan(report.value.upper)) << event.ToString();
      if (i % 64 == 0 && std::isfinite(report.value.upper)) {
        AccountDelta(event, Epsilon(0.7 * report.value.upper), Effort::kQuick);
      }
      if (i % kFullEvery != 0) continue;
      const Interval full = Account(event, Delta(delta)).value;
      ConsistentLower({full.lower, report.value.upper}, {"full", "quick"}, event.ToString());
      ConsistentLower({report.value.lower, full.upper}, {"quick", "full"}, event.ToString());
    } catch (const std::exception& error) {
      ADD_FAILURE() << "seed " << seed << ", delta " << delta << ": " << error.what();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shards, RandomEvents, ::testing::Range(0, kShards));

}  // namespace
}  // namespace sordino
