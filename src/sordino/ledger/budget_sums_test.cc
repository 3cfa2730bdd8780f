#include "sordino/ledger/budget_sums.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/base/quantity.h"

namespace sordino {
namespace {

__extension__ using ExactSum = __int128;

constexpr std::uint64_t kLast = std::numeric_limits<std::uint64_t>::max();
constexpr double kLargest = std::numeric_limits<double>::max();

TEST(BudgetSums, CountsStopAtTheEndOfTheirType) {
  EXPECT_EQ(SaturatingSum(kLast - 1, 1), kLast);
  EXPECT_EQ(SaturatingSum(kLast, 1), kLast);
  EXPECT_EQ(SaturatingSum(std::uint64_t{1} << 63, std::uint64_t{1} << 63), kLast);
  EXPECT_EQ(SaturatingSum(kLast, kLast), kLast);
  EXPECT_EQ(SaturatingDifference(5, 3), 2U);
  EXPECT_EQ(SaturatingDifference(3, 5), 0U);
  // Nobody knows by how much the end was passed.
  EXPECT_EQ(SaturatingDifference(kLast, kLast), kLast);
  EXPECT_EQ(SaturatingDifference(kLast - 1, kLast - 1), 0U);
}

TEST(BudgetSums, MillionsOfDecimalsAddUpToADecimal) {
  UpwardSum sum;
  for (int i = 0; i < 1'000'000; ++i) sum.Add(1e-6);
  EXPECT_GE(sum.Value(), 1 - 1e-15);  // 1e-6 as a double is a little less
  EXPECT_LE(sum.Value(), 1 + 1e-15);
}

TEST(BudgetSums, IsNeverBelowTheExactSum) {
  constexpr int kUnit = -110;  // everything is a multiple of 2^kUnit
  std::mt19937_64 random(3);
  for (int round = 0; round < 500; ++round) {
    UpwardSum sum;
    ExactSum exact = 0;
    for (int i = 0; i < 50; ++i) {
      const std::uint64_t digits = random() >> 11;
      const int shift = static_cast<int>(random() % 51);
      const std::uint64_t count = random() % 1000;
      sum.Add(std::ldexp(static_cast<double>(digits), shift + kUnit), count);
      exact += (static_cast<ExactSum>(digits) << shift) * static_cast<ExactSum>(count);
    }
    const ExactSum kept = static_cast<ExactSum>(std::ldexp(sum.high(), -kUnit)) +
                          static_cast<ExactSum>(std::ldexp(sum.low(), -kUnit));
    EXPECT_TRUE(kept >= exact) << round;
    EXPECT_TRUE(kept - exact <= ExactSum{1} << 24) << round;
    EXPECT_GE(sum.Value(), sum.high());
  }
}

TEST(BudgetSums, ACountThatADoubleDoesNotHoldIsRoundedUp) {
  for (const std::uint64_t count : {(std::uint64_t{1} << 53) + 1, kLast, kLast - 1}) {
    UpwardSum sum;
    sum.Add(1, count);
    EXPECT_GE(sum.Value(), std::ldexp(static_cast<double>(count >> 11), 11));
    EXPECT_GT(sum.Value(), static_cast<double>(count) * (1 - 0x1p-60));
    sum.Subtract(1, count);
    EXPECT_GE(sum.Value(), 0);
    EXPECT_LE(sum.Value(), 8192);
  }
}

TEST(BudgetSums, ChargesTooSmallForTheLastDigitCount) {
  UpwardSum sum;
  sum.Add(1);
  for (int i = 0; i < 1000; ++i) sum.Add(1e-20);
  EXPECT_GT(sum.Value(), 1);
  EXPECT_GE(sum.low(), 1e-17 * (1 - 1e-12));
  for (int i = 0; i < 10; ++i) sum.Add(std::numeric_limits<double>::denorm_min());
  EXPECT_GE(sum.low(), 1e-17 * (1 - 1e-12));
}

TEST(BudgetSums, WhatIsReturnedIsGoneUpToRoundingThatIsNeverTooLow) {
  std::mt19937_64 random(5);
  std::uniform_real_distribution<double> costs(0, 2);
  UpwardSum sum;
  std::vector<double> kept;
  for (int i = 0; i < 10'000; ++i) {
    kept.push_back(costs(random));
    sum.Add(kept.back(), 3);
    if (i % 2 == 0) continue;
    sum.Subtract(kept.back(), 3);
    kept.pop_back();
  }
  for (const double cost : kept) sum.Subtract(cost, 3);
  EXPECT_GE(sum.Value(), 0);
  EXPECT_LE(sum.Value(), 1e-24);
}

TEST(BudgetSums, UnboundedCostsAreCountedAndReturned) {
  for (const double cost : {kInfinity, std::nan(""), kLargest}) {
    UpwardSum sum;
    sum.Add(0.5);
    sum.Add(cost, 7);
    sum.Subtract(cost, 3);
    EXPECT_EQ(sum.Value(), kInfinity);
    sum.Subtract(cost, 4);
    EXPECT_EQ(sum.Value(), 0.5);
    sum.Add(cost, kLast);
    sum.Add(cost, 2);
    sum.Subtract(cost, kLast);
    EXPECT_EQ(sum.Value(), kInfinity);
  }
}

TEST(BudgetSums, ASumStopsAtTheLargestNumber) {
  UpwardSum sum;
  sum.Add(kLargest);
  sum.Add(kLargest);
  sum.Subtract(kLargest);
  EXPECT_EQ(sum.Value(), kLargest);
}

TEST(BudgetSums, ComeBackFromTextAsTheyWere) {
  BudgetSums sums;
  sums.runs = 3;
  sums.releases = kLast;
  sums.pure.Add(0.1, 3);
  sums.pure.Add(1e-19);
  sums.pure.Add(kInfinity, 5);
  sums.filter.Add(kLargest);
  sums.filter.Add(kLargest);
  sums.loss.Add(1e-300, 7);
  sums.reserved.Add(1e-40, 3);
  sums.failure.Add(0x1p-70, 4);
  sums.order = 10.25;
  EXPECT_EQ(ParseBudgetSumsJson(BudgetSumsJson(sums)), sums);
  sums.whole = "run";
  sums.whole_failure = 1e-30;
  EXPECT_EQ(ParseBudgetSumsJson(BudgetSumsJson(sums)), sums);
  EXPECT_EQ(ParseBudgetSumsJson(BudgetSumsJson({})), BudgetSums());
}

TEST(BudgetSums, TextThatIsNoneIsRefused) {
  const std::string good = BudgetSumsJson({});
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    return text.replace(text.find(from), from.size(), to);
  };
  for (const std::string& text :
       {std::string(), std::string("[]"), good.substr(1), changed("\"runs\"", "\"run\""),
        changed("\"rules\":1", "\"rules\":2"), changed("[0.0,0.0,0]", "[-1.0,0.0,0]"),
        changed("[0.0,0.0,0]", "[0.0,0.5,0]"), changed("[0.0,0.0,0]", "[0.0,0.0]")}) {
    EXPECT_THROW(ParseBudgetSumsJson(text), Error) << text;
  }
}

}  // namespace
}  // namespace sordino
