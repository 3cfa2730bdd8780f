#include "sordino/lower_bounds/two_worlds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "sordino/accounting/event.h"
#include "sordino/accounting/gaussian.h"
#include "sordino/accounting/tradeoff.h"
#include "sordino/base/error.h"

namespace sordino {
namespace {

std::vector<double> Normals(std::mt19937_64& random, int count, double mean) {
  std::normal_distribution<double> normal(mean, 1);
  std::vector<double> scores;
  scores.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) scores.push_back(normal(random));
  return scores;
}

TEST(TwoWorlds, SeparatedWorldsHaveTheReferenceBounds) {
  // A ceiling that depends on the number of runs alone: 0 of n errors on either side. A single
  // threshold and direction has half of the significance for each error.
  const std::vector<double> low(500, 0.0);
  const std::vector<double> high(500, 1.0);
  // The reference spends all of the significance; nine tenths are spent here.
  EXPECT_NEAR(TwoWorlds(high, low).LowerBounds(Delta(0), .02 / .9, {{1}}).epsilon,
              4.541915810224092, 1e-9);
  const TwoWorlds more(std::vector<double>(1000, 1.0), std::vector<double>(1000, 0.0));
  EXPECT_NEAR(more.LowerBounds(Delta(1e-5), .1 / .9, {{1}}).epsilon, 5.600577, 1e-6);
}

TEST(TwoWorlds, BoundsOfNormalScoresAreBelowTheTruthAndNearIt) {
  std::mt19937_64 random(9);
  for (const double shift : {1.0, 2.0, 4.0}) {
    const TwoWorlds worlds(Normals(random, 10000, shift), Normals(random, 10000, 0));
    const auto bounds = worlds.LowerBounds(Delta(1e-6), .05);
    const double truth = GaussianEpsilon(shift, std::log(1e-6));
    EXPECT_LT(bounds.epsilon, truth);
    EXPECT_LT(bounds.mu, shift);
    EXPECT_GT(bounds.mu, 0.9 * shift);
    EXPECT_GT(bounds.mu_epsilon, 0.85 * truth);
    EXPECT_GT(bounds.epsilon, std::min(0.2 * truth, 4.0));
  }
}

std::vector<PrivacyLine> ClaimOf(double mu) {
  return PrivacyProfile(Event::Gaussian(NoiseMultiplier(1 / mu)), 60);
}

TEST(TwoWorlds, RanksArePlannedWhereTheClaimAllowsMost) {
  // By a search over all ranks with scipy: mu of epsilon 1 at delta 1e-5, 10^6 scores a side.
  const PlannedRanks planned =
      PlanRanks(ClaimOf(0.26805), 1'000'000, 1'000'000, Delta(1e-5), 0.0625);
  EXPECT_GT(planned.epsilon, 400);
  EXPECT_LT(planned.epsilon, 800);
  EXPECT_GT(planned.mu, 300'000);
  EXPECT_LT(planned.mu, 600'000);
  // Without a claim, or with a single score, there is still a rank.
  EXPECT_EQ(PlanRanks({}, 1, 1, Delta(0), .05).epsilon, 1);
}

TEST(TwoWorlds, PlannedThresholdsProveMoreWhereTheClaimIsTightAndNotMuchLessElsewhere) {
  std::mt19937_64 random(11);
  const double mu = 0.5;
  const PlannedRanks tight = PlanRanks(ClaimOf(mu), 20000, 20000, Delta(1e-4), .05);
  const PlannedRanks wrong = PlanRanks(ClaimOf(4), 20000, 20000, Delta(1e-4), .05);
  TwoWorlds::Bounds usual;
  TwoWorlds::Bounds planned;
  TwoWorlds::Bounds misled;
  const int audits = 10;
  for (int i = 0; i < audits; ++i) {
    const TwoWorlds worlds(Normals(random, 20000, mu), Normals(random, 20000, 0));
    const auto add = [](TwoWorlds::Bounds& sum, const TwoWorlds::Bounds& one) {
      sum.epsilon += one.epsilon / audits;
      sum.mu += one.mu / audits;
    };
    add(usual, worlds.LowerBounds(Delta(1e-4), .05));
    add(planned, worlds.PlannedBounds(Delta(1e-4), .05, tight));
    add(misled, worlds.PlannedBounds(Delta(1e-4), .05, wrong));
  }
  EXPECT_GT(planned.epsilon, 1.04 * usual.epsilon);
  EXPECT_GT(planned.mu, 1.01 * usual.mu);
  EXPECT_GT(misled.epsilon, 0.9 * usual.epsilon);
  EXPECT_GT(misled.mu, 0.95 * usual.mu);
  EXPECT_THROW(TwoWorlds({1}, {1}).PlannedBounds(Delta(0), .05, {.epsilon = 2}), Error);
}

// Over many audits of two mechanisms that are known exactly, the bounds are above the truth in at
// most 5 % of them.
TEST(TwoWorlds, BoundsAreSeldomAboveTheTruth) {
  std::mt19937_64 random(10);
  const double mu = 1;
  const double truth = GaussianEpsilon(mu, std::log(1e-3));
  int above = 0;
  int mu_above = 0;
  int planned_above = 0;
  int planned_mu_above = 0;
  const PlannedRanks plan = PlanRanks(ClaimOf(mu), 300, 300, Delta(1e-3), .05);
  const int audits = 600;
  for (int i = 0; i < audits; ++i) {
    const TwoWorlds worlds(Normals(random, 300, mu), Normals(random, 300, 0));
    const auto bounds = worlds.LowerBounds(Delta(1e-3), .05);
    above += bounds.epsilon > truth ? 1 : 0;
    mu_above += bounds.mu > mu ? 1 : 0;
    if (i % 3 != 0) continue;
    const auto planned = worlds.PlannedBounds(Delta(1e-3), .05, plan);
    planned_above += planned.epsilon > truth ? 1 : 0;
    planned_mu_above += planned.mu > mu ? 1 : 0;
  }
  const auto limit = [](double count) { return 0.05 * count + 3 * std::sqrt(count * 0.05 * 0.95); };
  EXPECT_LE(above, limit(audits));
  EXPECT_LE(mu_above, limit(audits));
  EXPECT_LE(planned_above, limit(audits / 3.0));
  EXPECT_LE(planned_mu_above, limit(audits / 3.0));
}

// Randomised response: scores are 0 and 1, ties everywhere, and epsilon is attained at delta 0.
TEST(TwoWorlds, TiesDoNotBreakTheBounds) {
  std::mt19937_64 random(11);
  const double epsilon = 1;
  const double keep = 1 / (1 + std::exp(-epsilon));
  std::bernoulli_distribution member(keep);
  std::bernoulli_distribution other(1 - keep);
  int above = 0;
  const int audits = 600;
  for (int i = 0; i < audits; ++i) {
    std::vector<double> members;
    std::vector<double> others;
    for (int k = 0; k < 200; ++k) {
      members.push_back(member(random) ? 1 : 0);
      others.push_back(other(random) ? 1 : 0);
    }
    above += TwoWorlds(members, others).LowerBounds(Delta(0), .05).epsilon > epsilon ? 1 : 0;
  }
  EXPECT_LE(above, 0.05 * audits + 3 * std::sqrt(audits * 0.05 * 0.95));
}

// A count with geometric noise: 8,192 of 30,000, a usual rank, is near the chance of a step of its
// distribution. On either side of it nearly all of epsilon is proven, and no more.
TEST(TwoWorlds, WholeNumbersProveNearlyAllOfEpsilonInEveryAudit) {
  std::mt19937_64 random(12);
  std::geometric_distribution<int> size(1 - std::exp(-1.0));
  int above = 0;
  const int audits = 100;
  for (int i = 0; i < audits; ++i) {
    std::vector<double> members;
    std::vector<double> others;
    members.reserve(30'000);
    others.reserve(30'000);
    for (int k = 0; k < 30'000; ++k) {
      members.push_back(1 + size(random) - size(random));
      others.push_back(size(random) - size(random));
    }
    const double lower = TwoWorlds(members, others).LowerBounds(Delta(0), 1e-4).epsilon;
    EXPECT_GT(lower, 0.85);
    above += lower > 1 ? 1 : 0;
  }
  EXPECT_EQ(above, 0);
}

// The chance that a bound exceeds the truth, summed over all outcomes: scores are 0 and 1.
class AllOutcomes {
 public:
  AllOutcomes() {
    for (int a = 0; a <= kCount; ++a) {
      for (int b = 0; b <= kCount; ++b) {
        bounds_[a][b] = TwoWorlds(Scores(a), Scores(b)).LowerBounds(Delta(0), .2).epsilon;
      }
    }
  }
  // `member` and `other` are the chances of a score to be 1.
  double ChanceToExceed(double truth, double member, double other) const {
    double chance = 0;
    for (int a = 0; a <= kCount; ++a) {
      for (int b = 0; b <= kCount; ++b) {
        if (bounds_[a][b] > truth) chance += Mass(a, member) * Mass(b, other);
      }
    }
    return chance;
  }

 private:
  static constexpr int kCount = 20;
  static std::vector<double> Scores(int ones) {
    std::vector<double> scores(kCount, 0.0);
    std::fill_n(scores.begin(), ones, 1.0);
    return scores;
  }
  static double Mass(int ones, double p) {
    const double ways =
        std::exp(std::lgamma(kCount + 1) - std::lgamma(ones + 1) - std::lgamma(kCount - ones + 1));
    return ways * std::pow(p, ones) * std::pow(1 - p, kCount - ones);
  }
  double bounds_[kCount + 1][kCount + 1] = {};
};

TEST(TwoWorlds, BoundsOfTiesExceedTheTruthAsSeldomAsTheySaySummedOverAllOutcomes) {
  const AllOutcomes all;
  for (double p = 0; p <= 1; p += 0.05) EXPECT_LE(all.ChanceToExceed(0, p, p), .2) << p;
  for (const double epsilon : {0.2, 1.0, 2.0}) {
    const double keep = 1 / (1 + std::exp(-epsilon));
    EXPECT_LE(all.ChanceToExceed(epsilon, keep, 1 - keep), .2) << epsilon;
  }
}

// Scores that are all equal have one outcome only: a bound above 0 would be wrong in every audit. A
// generator that was seeded with the counts "proved" 0.027 for 102 members and 28 others.
TEST(TwoWorlds, ConstantScoresShowNothingWhateverTheirNumber) {
  const auto shows_nothing = [](std::size_t members, std::size_t others) {
    const TwoWorlds worlds(std::vector<double>(members, 3.0), std::vector<double>(others, 3.0));
    const auto bounds = worlds.LowerBounds(Delta(0), .05);
    // One threshold, and hardly any confidence: what a few orders would prove shows here.
    const auto bold = worlds.LowerBounds(
        Delta(0), .99, std::vector<std::int64_t>{static_cast<std::int64_t>(others / 2 + 1)});
    return bounds.epsilon == 0 && bounds.mu == 0 && bold.epsilon == 0 && bold.mu == 0;
  };
  EXPECT_TRUE(shows_nothing(102, 28));
  for (std::size_t count = 1; count <= 10000; count += 1 + count / 16) {
    EXPECT_TRUE(shows_nothing(count, count)) << count;
    EXPECT_TRUE(shows_nothing(count / 3 + 1, count)) << count;
  }
}

TEST(TwoWorlds, EqualWorldsShowNothing) {
  const std::vector<double> same(100, 3.0);
  const auto bounds = TwoWorlds(same, same).LowerBounds(Delta(0), .05);
  EXPECT_EQ(bounds.epsilon, 0);
  EXPECT_EQ(bounds.mu, 0);
  EXPECT_EQ(bounds.mu_epsilon, 0);
  EXPECT_DOUBLE_EQ(TwoWorlds(same, same).Area(.05).value, 0.5);
}

TEST(TwoWorlds, AreasAreThoseOfTheReference) {
  const TwoWorlds worlds({0, 4, 6, 7}, {1, 2, 3, 5});
  EXPECT_DOUBLE_EQ(worlds.HullArea(), 13.0 / 16);
  EXPECT_DOUBLE_EQ(worlds.Area(.05).value, 11.0 / 16);
  const TwoWorlds ties({1, 1}, {1, 0});
  EXPECT_DOUBLE_EQ(ties.Area(.05).value, 0.75);
}

TEST(TwoWorlds, RatesAndAreaHoldTheTruthAsOftenAsTheySay) {
  std::mt19937_64 random(12);
  const double shift = 1.5;
  const double rate = 0.05;
  const double z = 1.6448536269514722;  // Phi(-z) = 0.05
  const double truth = 0.5 * std::erfc((z - shift) / std::sqrt(2.0));
  const double area = 0.5 * std::erfc(-shift / 2);
  int wrong = 0;
  int wrong_area = 0;
  const int trials = 400;
  for (int i = 0; i < trials; ++i) {
    const TwoWorlds worlds(Normals(random, 400, shift), Normals(random, 400, 0));
    const Estimate estimate = worlds.TruePositiveRate(rate, .05);
    EXPECT_LE(estimate.lower, estimate.value);
    EXPECT_GE(estimate.upper, estimate.value);
    wrong += truth < estimate.lower || truth > estimate.upper ? 1 : 0;
    const Estimate auc = worlds.Area(.05);
    wrong_area += area < auc.lower || area > auc.upper ? 1 : 0;
  }
  EXPECT_LE(wrong, 0.05 * trials + 3 * std::sqrt(trials * 0.05 * 0.95));
  EXPECT_LE(wrong_area, 0.05 * trials + 3 * std::sqrt(trials * 0.05 * 0.95));
  EXPECT_EQ(TwoWorlds({1}, {0}).TruePositiveRate(1, .05).value, 1);
  EXPECT_EQ(TwoWorlds({1}, {0}).TruePositiveRate(0.001, .05).lower, 0);
}

TEST(TwoWorlds, ApproximateRatiosAreNearTheRatioForManyDraws) {
  EXPECT_NEAR(KatzRatioLower(500000, 1000000, 100000, 1000000, .05), 5, 0.05);
  EXPECT_NEAR(BaileyRatioLower(500000, 1000000, 100000, 1000000, .05), 5, 0.05);
  EXPECT_LT(BaileyRatioLower(5, 10, 1, 10, .05), 5);
  EXPECT_LT(KatzRatioLower(5, 10, 1, 10, .05), 5);
}

TEST(TwoWorlds, RefusesWhatIsNoScore) {
  EXPECT_THROW(TwoWorlds({}, {1}), Error);
  EXPECT_THROW(TwoWorlds({1}, {}), Error);
  EXPECT_THROW(TwoWorlds({1, std::nan("")}, {1}), Error);
  EXPECT_THROW(TwoWorlds({1}, {1}).LowerBounds(Delta(0), 0), Error);
  EXPECT_THROW(TwoWorlds({1}, {1}).LowerBounds(Delta(0), .05, {{2}}), Error);
  EXPECT_NO_THROW(TwoWorlds({kInfinity}, {-kInfinity}).LowerBounds(Delta(0), .05));
}

}  // namespace
}  // namespace sordino
