#include "sordino/mechanisms/sensitivity.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "sordino/base/testing/not_a_number.h"
#include "sordino/mechanisms/enumerated_sensitivity.h"

namespace sordino {
namespace {

constexpr std::array kStatistics = {Statistic::kCount,    Statistic::kSum,      Statistic::kMean,
                                    Statistic::kVariance, Statistic::kMedian,   Statistic::kMinimum,
                                    Statistic::kMaximum,  Statistic::kHistogram};
constexpr std::array kAdjacencies = {Adjacency::kAddRemove, Adjacency::kReplaceOne};

// Straight from the definitions, sharing nothing with the closed forms.
std::vector<double> Evaluate(Statistic statistic, std::vector<double> data) {
  const double n = static_cast<double>(data.size());
  double sum = 0;
  for (const double x : data) sum += x;
  std::sort(data.begin(), data.end());
  const std::size_t half = data.size() / 2;
  switch (statistic) {
    case Statistic::kCount:
      return {n};
    case Statistic::kSum:
      return {sum};
    case Statistic::kMean:
      return {sum / n};
    case Statistic::kVariance: {
      double squares = 0;
      for (const double x : data) squares += (x - sum / n) * (x - sum / n);
      return {squares / n};
    }
    case Statistic::kMedian:
      if (data.empty()) return {kNan};
      return {data.size() % 2 == 1 ? data[half] : (data[half - 1] + data[half]) / 2};
    case Statistic::kMinimum:
      return {data.empty() ? kNan : data.front()};
    case Statistic::kMaximum:
      return {data.empty() ? kNan : data.back()};
    case Statistic::kHistogram: {
      std::vector<double> bins(3, 0.0);
      for (const double x : data) bins[x < 0 ? 0 : x < 1 ? 1 : 2] += 1;
      return bins;
    }
  }
  return {};
}

Query<double> QueryOf(Statistic statistic) {
  return [statistic](const std::vector<double>& data) { return Evaluate(statistic, data); };
}

// The bounds are in the domain, and every statistic here is extremal at the bounds, at the mean or
// at a record; the grid holds the means of the small datasets well enough only for the extremes,
// so global forms must match exactly.
const std::vector<double> kDomain = {-1, -0.5, 0.5, 1, 2};
const Bounds kBounds(-1, 2);

TEST(GlobalSensitivity, EqualsTheMaximumOverAllSmallDatasets) {
  for (const Statistic statistic : kStatistics) {
    for (const std::size_t n : {1U, 2U, 3U, 4U}) {
      // Replace-one: exactly n records.
      const auto replace = EnumerateGlobalSensitivity<double>(QueryOf(statistic), n, kDomain,
                                                              Adjacency::kReplaceOne);
      const auto closed = GlobalSensitivity(statistic, kBounds, Adjacency::kReplaceOne, n);
      ASSERT_TRUE(replace.finite() && closed.finite()) << StatisticName(statistic);
      EXPECT_NEAR(closed.value().l1.value(), replace.value().l1.value(), 1e-12)
          << StatisticName(statistic) << " replace-one " << n;
      EXPECT_NEAR(closed.value().l2.value(), replace.value().l2.value(), 1e-12);
      // Add-remove: enumerating at n + 1 covers the pairs (n, n + 1) and (n + 1, n + 2).
      const auto add = EnumerateGlobalSensitivity<double>(QueryOf(statistic), n + 1, kDomain,
                                                          Adjacency::kAddRemove);
      const auto closed_add = GlobalSensitivity(statistic, kBounds, Adjacency::kAddRemove, n);
      ASSERT_TRUE(add.finite() && closed_add.finite()) << StatisticName(statistic);
      EXPECT_NEAR(closed_add.value().l1.value(), add.value().l1.value(), 1e-12)
          << StatisticName(statistic) << " add-remove " << n;
      EXPECT_NEAR(closed_add.value().l2.value(), add.value().l2.value(), 1e-12);
    }
  }
}

TEST(LocalSensitivity, EqualsTheEnumerationOfNeighbours) {
  // The fine grid stands for the interval: it contains both bounds and, for each dataset below,
  // the mean of the records (the one interior point where a variance can be extremal).
  std::vector<double> fine;
  for (int i = 0; i <= 1200; ++i) fine.push_back(-1 + i * 0.0025);
  const std::vector<std::vector<double>> datasets = {
      {0.5},        {-1, 2},       {0.5, 0.5},           {-1, -1, 2},
      {0, 0.25, 2}, {1, 1, 1, -1}, {-1, 0, 0.5, 1.5, 2}, {2, 2, 2, 2}};
  for (const auto& data : datasets) {
    for (const Statistic statistic : kStatistics) {
      for (const Adjacency adjacency : kAdjacencies) {
        const auto brute =
            EnumerateLocalSensitivity<double>(QueryOf(statistic), data, fine, adjacency);
        const auto closed = LocalSensitivity(statistic, data, kBounds, adjacency);
        ASSERT_EQ(closed.finite(), brute.finite()) << StatisticName(statistic) << data.size();
        if (!closed.finite()) continue;
        EXPECT_NEAR(closed.value().l1.value(), brute.value().l1.value(), 2e-6)
            << StatisticName(statistic) << " " << AdjacencyName(adjacency) << " " << data.size();
        EXPECT_NEAR(closed.value().l2.value(), brute.value().l2.value(), 2e-6);
        // And the local one never exceeds the global one.
        const std::uint64_t n = adjacency == Adjacency::kReplaceOne ? data.size() : data.size() - 1;
        const auto global = GlobalSensitivity(statistic, kBounds, adjacency, n);
        ASSERT_TRUE(global.finite());
        EXPECT_LE(closed.value().l1.value(), global.value().l1.value() + 1e-12);
      }
    }
  }
}

TEST(GlobalSensitivity, SaysWhyItIsInfinite) {
  const auto sum = GlobalSensitivity(Statistic::kSum, {}, Adjacency::kAddRemove, 10);
  EXPECT_FALSE(sum.finite());
  EXPECT_NE(sum.reason().find("bounds"), std::string::npos);
  const auto mean = GlobalSensitivity(Statistic::kMean, kBounds, Adjacency::kAddRemove, 0);
  EXPECT_FALSE(mean.finite());
  EXPECT_NE(mean.reason().find("empty"), std::string::npos);
  EXPECT_TRUE(GlobalSensitivity(Statistic::kCount, {}, Adjacency::kAddRemove, 0).finite());
  EXPECT_FALSE(LocalSensitivity(Statistic::kMean, std::vector{1.0}, kBounds, Adjacency::kAddRemove)
                   .finite());
}

TEST(EnumeratedSensitivity, FindsThatAQueryIsNotFiniteOnANeighbour) {
  const auto answer = EnumerateLocalSensitivity<double>(QueryOf(Statistic::kMean), std::vector{1.0},
                                                        kDomain, Adjacency::kAddRemove);
  EXPECT_FALSE(answer.finite());
  EXPECT_NE(answer.reason().find("finite"), std::string::npos);
}

TEST(EnumeratedSensitivity, TakesAnyRecordAndAnyQuery) {
  struct Visit {
    int user;
    double cost;
  };
  // Distinct users and total cost of user 1: no closed form is at hand.
  const Query<Visit> query = [](const std::vector<Visit>& visits) {
    double total = 0;
    std::vector<int> users;
    for (const Visit& v : visits) {
      if (v.user == 1) total += v.cost;
      users.push_back(v.user);
    }
    std::sort(users.begin(), users.end());
    users.erase(std::unique(users.begin(), users.end()), users.end());
    return std::vector<double>{static_cast<double>(users.size()), total};
  };
  const std::vector<Visit> domain = {{1, 0}, {1, 5}, {2, 0}, {2, 5}};
  const auto answer = EnumerateLocalSensitivity<Visit>(query, {{1, 5}, {2, 5}, {2, 0}}, domain,
                                                       Adjacency::kReplaceOne);
  ASSERT_TRUE(answer.finite());
  // Replacing (1, 5) by a visit of user 2 takes one user and 5 of cost away.
  EXPECT_DOUBLE_EQ(answer.value().l1.value(), 6);
  EXPECT_DOUBLE_EQ(answer.value().l2.value(), std::sqrt(26.0));
}

TEST(Bounds, RefuseWhatIsNotARange) {
  EXPECT_THROW(Bounds(1, 1), Error);
  EXPECT_THROW(Bounds(2, 1), Error);
  EXPECT_THROW(Bounds(0, kInfinity), Error);
  EXPECT_THROW(Bounds(kNan, 1), Error);
  EXPECT_THROW(Bounds(-1.7e308, 1.7e308), Error);
}

TEST(Bounds, ClampLetsNothingEscape) {
  for (const double x : {kNan, -kNan, -kInfinity, kInfinity, -1e308, 1e308, 0.3}) {
    const double clamped = kBounds.Clamp(x);
    EXPECT_GE(clamped, -1) << x;
    EXPECT_LE(clamped, 2) << x;
  }
  EXPECT_EQ(kBounds.Clamp(kNan), -1);
}

TEST(SensitivityAnswerDeathTest, StopsWhenAnInfiniteOneIsUsed) {
  EXPECT_DEATH(static_cast<void>(SensitivityAnswer::Infinite("none").value()), "infinite");
}

}  // namespace
}  // namespace sordino
