#include "sordino/mechanisms/streamed_statistic.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>
#include <random>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/base/testing/not_a_number.h"
#include "sordino/mechanisms/internal/additive_statistic.h"
#include "sordino/mechanisms/testing/test_support.h"

namespace sordino {
namespace {

const Bounds kStreamBounds(-2, 3);

struct Row {
  std::size_t group;
  double value;
};
using Table = std::vector<Row>;
using Make =
    std::function<std::unique_ptr<StreamedStatistic>(const PrivacyUnit&, const NoiseBudget&)>;

// All numbers of all groups, with noise that depends on the seed only.
std::vector<double> Replay(const Make& make, const PrivacyUnit& unit, const NoiseBudget& budget,
                           const Table& table, std::uint64_t seed, double* scale) {
  const auto statistic = make(unit, budget);
  for (const Row& row : table) statistic->Add(row.group, row.value);
  InsecureSeededGenerator generator(seed);
  std::vector<double> all;
  for (const Release& release : statistic->Finish(generator)) {
    all.insert(all.end(), release.values.begin(), release.values.end());
    *scale = release.noise_scale;
  }
  return all;
}

const std::vector<std::pair<const char*, Make>> kLinear = {
    {"count", [](const PrivacyUnit& u, const NoiseBudget& b) { return MakeCount(u, b); }},
    {"sum",
     [](const PrivacyUnit& u, const NoiseBudget& b) { return MakeSum(kStreamBounds, u, b); }},
    {"histogram",
     [](const PrivacyUnit& u, const NoiseBudget& b) { return MakeHistogram(3, u, b); }},
};

// Record and replay: with the same noise, releases of neighbouring tables differ by what the
// neighbours' exact sums differ by, and that must not exceed what the noise was calibrated to. All
// pairs that can be made from the candidate rows, hostile values included.
TEST(StreamedStatistic, NeighboursDifferByAtMostTheCalibratedSensitivity) {
  const std::array<Row, 9> candidates = {{{0, -2},
                                          {0, 3},
                                          {1, 3},
                                          {1, -2},
                                          {0, 0.1},
                                          {1, kNan},
                                          {0, kInfinity},
                                          {1, -kInfinity},
                                          {0, 1e308}}};
  const Table base = {{0, 1}, {1, 2}};
  for (const auto& [name, make] : kLinear) {
    for (const NoiseKind noise : {NoiseKind::kLaplace, NoiseKind::kGaussian}) {
      for (const Adjacency adjacency : {Adjacency::kAddRemove, Adjacency::kReplaceOne}) {
        for (const std::uint32_t rows : {1U, 2U}) {
          const NoiseBudget budget{.epsilon = Epsilon(0.7), .delta = Delta(1e-5), .noise = noise};
          const PrivacyUnit unit{.adjacency = adjacency, .rows = rows, .groups = 2};
          double widest = 0;
          double allowed = 0;
          // A unit of `rows` rows: (a, a2) in one table; nothing, or (b, b2), in the other.
          for (const Row& a : candidates) {
            for (const Row& b : candidates) {
              Table one = base;
              Table two = base;
              one.push_back(a);
              if (rows == 2) one.push_back(b);
              if (adjacency == Adjacency::kReplaceOne) {
                two.push_back(rows == 2 ? candidates[3] : b);
                if (rows == 2) two.push_back(candidates[2]);
              }
              double scale = 0;
              const auto x = Replay(make, unit, budget, one, 42, &scale);
              const auto y = Replay(make, unit, budget, two, 42, &scale);
              double l1 = 0;
              double l2 = 0;
              for (std::size_t i = 0; i < x.size(); ++i) {
                l1 += std::abs(x[i] - y[i]);
                l2 = std::hypot(l2, x[i] - y[i]);
              }
              const double multiplier =
                  GridNoiseMultiplier(noise, budget.epsilon, budget.delta, x.size());
              allowed = scale / multiplier;
              widest = std::max(widest, noise == NoiseKind::kLaplace ? l1 : l2);
            }
          }
          EXPECT_LE(widest, allowed * (1 + 1e-9)) << name << " " << AdjacencyName(adjacency);
          // The sensitivity is used up but for the sum's two-sided bound: no budget is wasted.
          EXPECT_GE(widest, allowed * 0.49) << name << " " << AdjacencyName(adjacency);
        }
      }
    }
  }
}

// Mean and variance are ratios; their noised totals are recovered from value and noise scale.
TEST(StreamedStatistic, MeanTotalsMoveByAtMostOneRow) {
  const NoiseBudget budget{.epsilon = Epsilon(1)};
  const auto totals = [&](double extra, bool add) {
    const auto mean = MakeMean(kStreamBounds, {}, budget);
    for (int i = 0; i < 40; ++i) mean->Add(0, 0.1 * i - 1.5);
    if (add) mean->Add(0, extra);
    InsecureSeededGenerator generator(9);
    const Release release = mean->Finish(generator).front();
    const double m = (release.value() + 2) / 5;
    const double n = 5 * std::hypot(1 - m, m) / release.noise_scale;
    return std::pair(m * n, (1 - m) * n);
  };
  const auto [a, b] = totals(0, false);
  for (const double x : {-2.0, 3.0, 0.77, kNan, kInfinity, -kInfinity, 1e300}) {
    const auto [c, d] = totals(x, true);
    EXPECT_NEAR(std::abs(c - a) + std::abs(d - b), 1, 1e-6) << x;
  }
}

TEST(StreamedStatistic, UnitIntervalNeverLeavesItsRange) {
  for (const Bounds& bounds : {Bounds(0, 1), Bounds(-1e300, 1e300), Bounds(1, 1 + 1e-15),
                               Bounds(0, 5e-324), Bounds(-3, 1e-3)}) {
    const internal::UnitInterval interval(bounds, 40);
    for (const double x : {kNan, -kInfinity, kInfinity, 0.0, 1.0, -1e308, 1e308, bounds.low(),
                           bounds.high(), 1e-3}) {
      const std::int64_t steps = interval.Steps(x);
      EXPECT_GE(steps, 0);
      EXPECT_LE(steps, std::int64_t{1} << 40);
    }
    EXPECT_EQ(interval.Steps(bounds.low()), 0);
  }
}

TEST(StreamedStatistic, ReleasesAreCloseToTheTruthWithMuchBudget) {
  InsecureSeededGenerator generator(10);
  std::mt19937_64 random(10);
  std::uniform_real_distribution<double> uniform(-2, 3);
  for (const NoiseKind noise : {NoiseKind::kLaplace, NoiseKind::kGaussian}) {
    const NoiseBudget budget{.epsilon = Epsilon(20), .delta = Delta(1e-6), .noise = noise};
    for (const bool is_public : {false, true}) {
      const PrivacyUnit unit{
          .adjacency = is_public ? Adjacency::kReplaceOne : Adjacency::kAddRemove,
          .count_is_public = is_public};
      const auto sum = MakeSum(kStreamBounds, unit, budget);
      const auto mean = MakeMean(kStreamBounds, unit, budget);
      const auto variance = MakeVariance(kStreamBounds, unit, budget);
      double total = 0;
      double squares = 0;
      constexpr int kRows = 20'000;
      for (int i = 0; i < kRows; ++i) {
        const double x = uniform(random);
        total += x;
        squares += x * x;
        sum->Add(0, x);
        mean->Add(0, x);
        variance->Add(0, x);
      }
      const double truth = total / kRows;
      EXPECT_NEAR(sum->Finish(generator)[0].value(), total, 30);
      EXPECT_NEAR(mean->Finish(generator)[0].value(), truth, 2e-3);
      EXPECT_NEAR(variance->Finish(generator)[0].value(), squares / kRows - truth * truth, 5e-3);
    }
  }
}

// Coverage at 90% over 4,000 releases: misses are binomial around at most 400 with standard
// deviation 19; 5 of them is 95 (false alarm 6e-7). Variance and the public-count forms may cover
// more often than they say.
TEST(StreamedStatistic, IntervalsCoverAtLeastAsOftenAsTheySay) {
  InsecureSeededGenerator generator(11);
  for (const NoiseKind noise : {NoiseKind::kLaplace, NoiseKind::kGaussian}) {
    for (const bool is_public : {false, true}) {
      const PrivacyUnit unit{
          .adjacency = is_public ? Adjacency::kReplaceOne : Adjacency::kAddRemove,
          .count_is_public = is_public};
      const NoiseBudget budget{
          .epsilon = Epsilon(0.5), .delta = Delta(1e-5), .noise = noise, .confidence = 0.9};
      const auto mean = MakeMean(kStreamBounds, unit, budget);
      const auto variance = MakeVariance(kStreamBounds, unit, budget);
      double total = 0;
      double squares = 0;
      constexpr int kRows = 300;
      for (int i = 0; i < kRows; ++i) {
        const double x = -2 + 5.0 * ((i * 7919) % kRows) / (kRows - 1) * 0.8;
        total += x;
        squares += x * x;
        mean->Add(0, x);
        variance->Add(0, x);
      }
      const double true_mean = total / kRows;
      const double true_variance = squares / kRows - true_mean * true_mean;
      int mean_misses = 0;
      int variance_misses = 0;
      for (int i = 0; i < 4000; ++i) {
        const Interval m = mean->Finish(generator)[0].interval();
        mean_misses += m.lower <= true_mean && true_mean <= m.upper ? 0 : 1;
        if (i % 8 != 0) continue;
        const Interval v = variance->Finish(generator)[0].interval();
        variance_misses += v.lower <= true_variance && true_variance <= v.upper ? 0 : 1;
      }
      EXPECT_NEAR(mean_misses, 400, 95);
      EXPECT_LE(variance_misses, 50 + 34);
    }
  }
}

// Rows close together: their noised sums are often those of no rows at all.
TEST(StreamedStatistic, VarianceIntervalsCoverSmallVariances) {
  InsecureSeededGenerator generator(12);
  for (const int rows : {50, 1000}) {
    const double width = rows == 50 ? 0.1 : 0.02;
    const auto variance =
        MakeVariance(Bounds(0, 1), {}, {.epsilon = Epsilon(1), .confidence = 0.9});
    double squares = 0;
    for (int i = 0; i < rows; ++i) {
      const double x = 0.5 + width * ((i + 0.5) / rows - 0.5);
      variance->Add(0, x);
      squares += (x - 0.5) * (x - 0.5) / rows;
    }
    int misses = 0;
    for (int i = 0; i < 300; ++i) {
      const Interval interval = variance->Finish(generator)[0].interval();
      misses += interval.lower <= squares && squares <= interval.upper ? 0 : 1;
    }
    // Binomial around at most 30, with standard deviation 5.2.
    EXPECT_LE(misses, 30 + 26) << rows;
  }
}

TEST(StreamedStatistic, SumsFarFromZeroAreRefusedInASentence) {
  const PrivacyUnit unit{.adjacency = Adjacency::kReplaceOne, .count_is_public = true};
  NoiseBudget budget{.epsilon = Epsilon(1)};
  budget.noise = NoiseKind::kGaussian;
  budget.delta = Delta(1e-6);
  EXPECT_THROW(MakeSum(Bounds(1e9, 1e9 + 1), unit, budget), Error);
}

TEST(StreamedStatistic, VarianceIntervalsAreOfUse) {
  InsecureSeededGenerator generator(12);
  const auto variance = MakeVariance(kStreamBounds, {}, {.epsilon = Epsilon(1)});
  for (int i = 0; i < 10'000; ++i) variance->Add(0, i % 2 == 0 ? 0 : 1);
  const Release release = variance->Finish(generator).front();
  EXPECT_LT(release.interval().upper - release.interval().lower, 0.1);
  EXPECT_NEAR(release.value(), 0.25, 0.05);
}

TEST(StreamedStatistic, NoRowsMakeHarmlessReleases) {
  InsecureSeededGenerator generator(13);
  const NoiseBudget budget{.epsilon = Epsilon(0.1)};
  for (int i = 0; i < 50; ++i) {
    const Release mean = MakeMean(kStreamBounds, {}, budget)->Finish(generator).front();
    EXPECT_GE(mean.value(), -2);
    EXPECT_LE(mean.value(), 3);
    const Release variance = MakeVariance(kStreamBounds, {}, budget)->Finish(generator).front();
    EXPECT_GE(variance.value(), 0);
    EXPECT_LE(variance.value(), 6.25);
    EXPECT_TRUE(std::isfinite(variance.noise_scale));
  }
}

TEST(StreamedStatistic, GroupsAreApartAndCostTheMaximum) {
  const NoiseBudget budget{.epsilon = Epsilon(0.5)};
  const PrivacyUnit unit{.groups = 3};
  const auto count = MakeCount(unit, budget);
  EXPECT_EQ(count->event(), MakeCount({}, budget)->event());
  double scale = 0;
  const auto make = kLinear[0].second;
  const auto before = Replay(make, unit, budget, {{0, 1}, {2, 1}}, 5, &scale);
  const auto after = Replay(make, unit, budget, {{0, 1}, {2, 1}, {2, 1}}, 5, &scale);
  EXPECT_EQ(before[0], after[0]);
  EXPECT_EQ(before[1], after[1]);
  EXPECT_EQ(before[2] + 1, after[2]);
  // Three groups have the noise of one.
  EXPECT_NEAR(scale, 2, 1e-9);
}

// A user with several rows, and a row that is replaced, may be in several groups.
TEST(StreamedStatistic, GroupsThatOneUnitTouchesAreNotDisjoint) {
  for (const NoiseKind noise : {NoiseKind::kLaplace, NoiseKind::kGaussian}) {
    const NoiseBudget budget{.epsilon = Epsilon(0.5), .delta = Delta(1e-6), .noise = noise};
    for (const PrivacyUnit& unit :
         {PrivacyUnit{.rows = 2, .groups = 3},
          PrivacyUnit{.adjacency = Adjacency::kReplaceOne, .groups = 3}}) {
      const Event event = MakeCount(unit, budget)->event();
      EXPECT_EQ(event.name(), noise == NoiseKind::kLaplace ? "pure" : "gaussian")
          << event.ToString();
    }
  }
}

TEST(StreamedStatistic, UsersMultiplyTheNoiseByTheirCap) {
  const NoiseBudget budget{.epsilon = Epsilon(1)};
  InsecureSeededGenerator generator(14);
  EXPECT_NEAR(MakeCount({.rows = 5}, budget)->Finish(generator)[0].noise_scale, 5, 1e-9);
  EXPECT_NEAR(MakeSum(kStreamBounds, {.rows = 5}, budget)->Finish(generator)[0].noise_scale, 15,
              1e-6);
  const PrivacyUnit replaced{.adjacency = Adjacency::kReplaceOne, .rows = 5};
  EXPECT_NEAR(MakeCount(replaced, budget)->Finish(generator)[0].noise_scale, 10, 1e-9);
}

TEST(StreamedStatistic, APublicNumberOfRowsIsUsedAndNotReleased) {
  const PrivacyUnit unit{.adjacency = Adjacency::kReplaceOne, .count_is_public = true};
  const NoiseBudget budget{.epsilon = Epsilon(0.5)};
  EXPECT_THROW(MakeCount(unit, budget), Error);
  InsecureSeededGenerator generator(15);
  const auto mean = MakeMean(kStreamBounds, unit, budget);
  for (int i = 0; i < 1000; ++i) mean->Add(0, 1);
  EXPECT_NEAR(mean->Finish(generator)[0].noise_scale, 5 / (1000 * 0.5), 1e-9);
}

TEST(StreamedStatistic, RefusesBudgetsThatCannotBeMet) {
  EXPECT_THROW(MakeMean(kStreamBounds, {}, {.epsilon = Epsilon(0)}), Error);
  EXPECT_THROW(MakeMean(kStreamBounds, {}, {.epsilon = Epsilon(1), .noise = NoiseKind::kGaussian}),
               Error);
  EXPECT_THROW(MakeCount({.rows = 0}, {.epsilon = Epsilon(1)}), Error);
  EXPECT_THROW(MakeCount({.groups = 0}, {.epsilon = Epsilon(1)}), Error);
  EXPECT_THROW(MakeHistogram(1, {}, {.epsilon = Epsilon(1)}), Error);
  EXPECT_THROW(MakeCount({}, {.epsilon = Epsilon(1e-14)}), Error);
  EXPECT_THROW(MakeCount({}, {.epsilon = Epsilon(1), .confidence = 1}), Error);
}

TEST(StreamedStatisticDeathTest, DoesNotBelieveThatAGroupedCountIsPublic) {
  const PrivacyUnit unit{.adjacency = Adjacency::kReplaceOne, .groups = 2, .count_is_public = true};
  EXPECT_DEATH(MakeMean(kStreamBounds, unit, {.epsilon = Epsilon(1)}), "private");
}

TEST(StreamedStatistic, WorksAtTheEndsOfTheEpsilonRange) {
  InsecureSeededGenerator generator(16);
  for (const double epsilon : {1e-8, 1e-3, 100.0, 1e6}) {
    for (const auto& [name, make] : kLinear) {
      const auto statistic = make({}, {.epsilon = Epsilon(epsilon)});
      statistic->Add(0, 1);
      EXPECT_TRUE(std::isfinite(statistic->Finish(generator)[0].value())) << name << epsilon;
    }
    const auto mean = MakeMean(kStreamBounds, {}, {.epsilon = Epsilon(epsilon)});
    mean->Add(0, 1);
    EXPECT_TRUE(std::isfinite(mean->Finish(generator)[0].value())) << epsilon;
  }
}

}  // namespace
}  // namespace sordino
