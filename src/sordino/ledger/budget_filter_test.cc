#include "sordino/ledger/budget_filter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include "sordino/accounting/calibration.h"
#include "sordino/accounting/failures.h"
#include "sordino/accounting/filter.h"
#include "sordino/accounting/gaussian.h"
#include "sordino/base/error.h"

namespace sordino {
namespace {

Budget BudgetOf(double epsilon, double delta) {
  return {.epsilon = Epsilon(epsilon), .delta = Delta(delta)};
}

Event GaussianNoise(double noise) { return Event::Gaussian(NoiseMultiplier(noise)); }
Event Pure(double epsilon) { return Event::Pure(Epsilon(epsilon)); }
Event SampledStep(double rate, double noise) {
  return Event::Poisson(SamplingRate(rate), GaussianNoise(noise));
}

// Begins a run of this plan and returns whether the whole plan was charged.
bool ChargeRun(BudgetFilter& filter, const std::string& run, const Event& plan) {
  filter.BeginRun(run, plan, filter.TermsFor(plan, 0));
  if (!filter.Admits(run, plan, 0).admitted) return false;
  filter.Charge(run, plan, 0);
  return true;
}

// The last one of `event` that is admitted is this one.
int Admitted(BudgetFilter filter, const Event& event, int most) {
  filter.BeginRun("many", event, filter.TermsFor(event, 0));
  int count = 0;
  while (count < most && filter.Admits("many", event, 0).admitted) {
    filter.Charge("many", event, 0);
    ++count;
  }
  return count;
}

TEST(BudgetFilter, PureEpsilonsAddUpToTheBudgetAndNotBeyond) {
  EXPECT_EQ(Admitted(BudgetFilter(BudgetOf(1, 0)), Pure(0.1), 100), 10);
  EXPECT_EQ(Admitted(BudgetFilter(BudgetOf(1, 0)), Event::Laplace(NoiseMultiplier(10)), 100), 10);
  EXPECT_EQ(Admitted(BudgetFilter(BudgetOf(1, 0)), GaussianNoise(1000), 100), 0);
}

TEST(BudgetFilter, FewPureReleasesUseNoDelta) {
  BudgetFilter filter(BudgetOf(1, 1e-5));
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(ChargeRun(filter, std::to_string(i), Pure(0.1))) << i;
  }
  EXPECT_FALSE(ChargeRun(filter, "more", Pure(0.1)));
}

TEST(BudgetFilter, ManyPureReleasesAreMoreThanTheirSumWouldAdmit) {
  EXPECT_GT(Admitted(BudgetFilter(BudgetOf(1, 1e-5)), Pure(0.001), 5000), 2000);
}

// n Gaussians of noise s are n^(1/2) / s - GDP, so the filter's limit is known in closed form.
TEST(BudgetFilter, GaussianFilterStopsWhereTheClosedFormDoes) {
  Budget budget = BudgetOf(3, 1e-5);
  budget.filter = FilterKind::kGaussian;
  const double mu = GaussianMu(3, std::log(1e-5 * (1 - kFailureReserve - kLossShare)));
  const int admitted = Admitted(BudgetFilter(budget), GaussianNoise(40), 10000);
  EXPECT_EQ(admitted, static_cast<int>(std::floor(mu * mu * (1 - 1e-7) * 1600)));
  EXPECT_GT(admitted, 500);
}

TEST(BudgetFilter, RenyiFilterStopsWhereTheClosedFormDoes) {
  Budget budget = BudgetOf(3, 1e-5);
  budget.order = RenyiOrder(8);
  const double rest = std::log(1 - 1.0 / 8) -
                      (std::log(1e-5 * (1 - kFailureReserve - kLossShare)) + std::log(8)) / (8 - 1);
  const double limit = (3 - rest) / (8 / (2 * 1600.0));
  EXPECT_EQ(Admitted(BudgetFilter(budget), GaussianNoise(40), 10000),
            static_cast<int>(std::floor(limit)));
}

TEST(BudgetFilter, WhateverIsAdmittedComposesToLessThanTheBudget) {
  std::mt19937 random(7);
  for (int round = 0; round < 4; ++round) {
    const Budget budget = BudgetOf(round % 2 == 0 ? 1 : 6, 1e-5);
    BudgetFilter filter(budget);
    const std::vector<Event> events = {Pure(0.05), GaussianNoise(12), SampledStep(0.01, 1.2),
                                       SampledStep(0.02, 2), Event::Laplace(NoiseMultiplier(30))};
    int admitted = 0;
    for (int i = 0; i < 300; ++i) {
      const Event& event = events[random() % events.size()];
      const std::string run = std::to_string(i);
      filter.BeginRun(run, event, filter.TermsFor(event, 1e-25));
      if (!filter.Admits(run, event, 1e-25).admitted) continue;
      filter.Charge(run, event, 1e-25);
      ++admitted;
    }
    EXPECT_GT(admitted, 10) << round;
    EXPECT_LE(SpentEpsilon(filter.Total(), budget.delta, filter.failure()).upper,
              budget.epsilon.value())
        << round;
    EXPECT_LE(filter.UsedShare(), 1);
  }
}

// Every strategy that chooses its next step after seeing the results so far, by dynamic
// programming: binary randomised response is the worst pure mechanism, its loss is +e with
// probability e^e / (1 + e^e) and -e otherwise, and v is the largest (P - e^epsilon Q)^+ that can
// still be reached, per unit of P. Steps of two sizes, in any mixture, until the filter refuses.
TEST(BudgetFilter, NoAdaptiveStrategyPassesTheBudget) {
  constexpr double kUnit = 0.05;
  constexpr int kLarge = 4;  // the large step, in units
  constexpr double kDelta = 0.02;
  const double epsilon = 1;
  const Event small = Pure(kUnit);
  const Event large = Pure(kLarge * kUnit);

  BudgetFilter start(BudgetOf(epsilon, kDelta));
  start.BeginRun("run", small, start.TermsFor(small, 0));
  const auto admits = [&](int smalls, int larges) {
    BudgetFilter trial = start;
    return trial
        .Admits("run",
                Event::Compose({{small, static_cast<std::uint64_t>(smalls)},
                                {large, static_cast<std::uint64_t>(larges)}}),
                0)
        .admitted;
  };
  // The admitted mixtures, as the most small steps for each number of large ones.
  std::vector<int> most;
  for (int larges = 0;; ++larges) {
    if (larges > 0 && !admits(0, larges)) break;
    int smalls = larges == 0 ? 1 : 0;
    while (admits(smalls + 1, larges)) ++smalls;
    most.push_back(smalls);
  }
  ASSERT_GT(most.size(), 5U);  // more than the pure rule alone, which admits five large steps
  ASSERT_GT(most[0], 20);

  const int largest = static_cast<int>(most.size()) - 1;
  const int reach = most[0] + kLarge * largest + 1;
  const auto loss_value = [&](int loss) {
    return std::max(0.0, 1 - std::exp(epsilon - kUnit * loss));
  };
  const double p_small = 1 / (1 + std::exp(-kUnit));
  const double p_large = 1 / (1 + std::exp(-kUnit * kLarge));
  // values[larges][smalls][loss + reach], filled from the limit of the filter backwards.
  std::vector<std::vector<std::vector<double>>> values(most.size());
  for (int larges = largest; larges >= 0; --larges) {
    auto& row = values[static_cast<std::size_t>(larges)];
    row.resize(static_cast<std::size_t>(most[static_cast<std::size_t>(larges)]) + 1);
    for (int smalls = most[static_cast<std::size_t>(larges)]; smalls >= 0; --smalls) {
      auto& cells = row[static_cast<std::size_t>(smalls)];
      cells.resize(2 * static_cast<std::size_t>(reach) + 1);
      const int bound = smalls + kLarge * larges;
      for (int loss = -bound; loss <= bound; ++loss) {
        const auto at = [&](const std::vector<double>& next, int l) {
          return next[static_cast<std::size_t>(l) + static_cast<std::size_t>(reach)];
        };
        double best = loss_value(loss);
        if (smalls < most[static_cast<std::size_t>(larges)]) {
          const auto& next = row[static_cast<std::size_t>(smalls) + 1];
          best = std::max(best, p_small * at(next, loss + 1) + (1 - p_small) * at(next, loss - 1));
        }
        if (larges < largest && smalls <= most[static_cast<std::size_t>(larges) + 1]) {
          const auto& next =
              values[static_cast<std::size_t>(larges) + 1][static_cast<std::size_t>(smalls)];
          best = std::max(
              best, p_large * at(next, loss + kLarge) + (1 - p_large) * at(next, loss - kLarge));
        }
        cells[static_cast<std::size_t>(loss) + static_cast<std::size_t>(reach)] = best;
      }
    }
  }
  const double delta = values[0][0][static_cast<std::size_t>(reach)];
  EXPECT_LE(delta, kDelta);
  EXPECT_GT(delta, kDelta / 50);  // the filter is not so strict that the test shows nothing
}

TEST(BudgetFilter, AFirstRunThatNeedsAllOfItCountsWhole) {
  const Delta delta(1e-5);
  const auto plan_of = [](NoiseMultiplier noise) {
    return Event::Repeat(Event::Poisson(SamplingRate(0.01), Event::Gaussian(noise)), 1000);
  };
  const NoiseCalibration calibration = *CalibrateNoise(plan_of, Epsilon(3), delta);
  const Event plan = plan_of(calibration.noise);
  const Event step = plan.children().front().first;

  BudgetFilter filter(BudgetOf(3, 1e-5));
  const RunTerms terms = filter.TermsFor(plan, 0);
  EXPECT_TRUE(terms.whole);
  EXPECT_TRUE(filter.AdmitsPlan(plan, 0).admitted);
  filter.BeginRun("first", plan, terms);
  EXPECT_EQ(filter.UsedShare(), 1);
  EXPECT_EQ(filter.LeftEpsilon(), 0);

  filter.Charge("first", Event::Repeat(step, 600), 0);
  filter.Return("first", Event::Repeat(step, 100), 0);
  EXPECT_TRUE(filter.Admits("first", Event::Repeat(step, 500), 0).admitted);
  EXPECT_FALSE(filter.Admits("first", Event::Repeat(step, 501), 0).admitted);
  EXPECT_FALSE(filter.Admits("first", Pure(1e-9), 0).admitted);

  // Nothing for others, however little was charged.
  EXPECT_FALSE(filter.AdmitsPlan(Pure(1e-9), 0).admitted);
  filter.BeginRun("second", Pure(1e-9), filter.TermsFor(Pure(1e-9), 0));
  EXPECT_FALSE(filter.Admits("second", Pure(1e-9), 0).admitted);
}

TEST(BudgetFilter, OnlyTheFirstRunCountsWhole) {
  const Event plan = GaussianNoise(1.0001 / GaussianMu(3, std::log(1e-5)));
  EXPECT_TRUE(BudgetFilter(BudgetOf(3, 1e-5)).TermsFor(plan, 0).whole);
  BudgetFilter filter(BudgetOf(3, 1e-5));
  ASSERT_TRUE(ChargeRun(filter, "first", Pure(1e-6)));
  EXPECT_FALSE(filter.TermsFor(plan, 0).whole);
  EXPECT_FALSE(filter.AdmitsPlan(plan, 0).admitted);
  EXPECT_THROW(filter.BeginRun("second", plan, {.whole = true, .order = filter.order()}), Error);
}

TEST(BudgetFilter, APlanBeyondTheBudgetDoesNotCountWhole) {
  const Event plan = GaussianNoise(0.99 / GaussianMu(3, std::log(1e-5)));
  EXPECT_FALSE(BudgetFilter(BudgetOf(3, 1e-5)).TermsFor(plan, 0).whole);
  EXPECT_FALSE(BudgetFilter(BudgetOf(3, 1e-5)).AdmitsPlan(plan, 0).admitted);
}

TEST(BudgetFilter, TheOrderIsFixedByTheFirstRun) {
  const Event plan = Event::Repeat(SampledStep(0.01, 1), 1000);
  BudgetFilter filter(BudgetOf(8, 1e-5));
  ASSERT_TRUE(ChargeRun(filter, "first", plan));
  const double order = filter.order();
  const Delta delta(1e-5 * (1 - kFailureReserve - kLossShare));
  EXPECT_NEAR(order, PrivacyFilter::Renyi(Epsilon(8), delta, plan).order(), 0.2);
  EXPECT_EQ(filter.TermsFor(GaussianNoise(5), 0).order, order);

  // A count beforehand must not choose an order that suits counts only.
  BudgetFilter other(BudgetOf(1, 1e-5));
  ASSERT_TRUE(ChargeRun(other, "count", Pure(0.1)));
  EXPECT_NEAR(other.order(), PrivacyFilter::Renyi(Epsilon(1), delta, GaussianNoise(1)).order(), 1);
  EXPECT_TRUE(ChargeRun(other, "train", Event::Repeat(SampledStep(0.01, 3), 1000)));
}

TEST(BudgetFilter, WhatIsReturnedCanBeChargedAgain) {
  BudgetFilter filter(BudgetOf(1, 1e-5));
  ASSERT_TRUE(ChargeRun(filter, "first", Event::Repeat(GaussianNoise(100), 50)));
  const double used = filter.UsedShare();
  filter.Charge("first", Event::Repeat(GaussianNoise(100), 20), 0);
  EXPECT_GT(filter.UsedShare(), used);
  filter.Return("first", Event::Repeat(GaussianNoise(100), 20), 0);
  EXPECT_EQ(filter.UsedShare(), used);
  EXPECT_EQ(filter.Total(), Event::Repeat(GaussianNoise(100), 50));
  EXPECT_THROW(filter.Return("first", Event::Repeat(GaussianNoise(100), 51), 0), Error);
  EXPECT_THROW(filter.Return("first", GaussianNoise(99), 0), Error);
  EXPECT_THROW(filter.Return("other", GaussianNoise(100), 0), Error);
}

// Six charges whose counts add up to 0 modulo 2^64.
TEST(BudgetFilter, CountsDoNotWrapAround) {
  constexpr std::uint64_t kHalf = std::uint64_t{1} << 63;
  Budget gaussian = BudgetOf(1, 1e-5);
  gaussian.filter = FilterKind::kGaussian;
  for (const auto& [budget, event] : {std::make_pair(BudgetOf(1, 0), Pure(5e-20)),
                                      std::make_pair(BudgetOf(1, 1e-5), GaussianNoise(2e10)),
                                      std::make_pair(gaussian, GaussianNoise(2e10))}) {
    const Event many = Event::Repeat(event, kHalf);
    BudgetFilter filter(budget);
    filter.BeginRun("run", many, filter.TermsFor(many, 0));
    EXPECT_FALSE(filter.Admits("run", many, 0).admitted);
    // A ledger in which they stand.
    double used = 0;
    for (int i = 0; i < 6; ++i) {
      filter.Charge("run", many, 0);
      EXPECT_GT(filter.UsedShare(), used);
      used = filter.UsedShare();
    }
    EXPECT_GT(used, 1);
    EXPECT_FALSE(filter.Admits("run", Pure(1e-9), 0).admitted);
    filter.Return("run", many, 0);
    EXPECT_FALSE(filter.Admits("run", Pure(1e-9), 0).admitted);
  }
}

TEST(BudgetFilter, CountsUpTo2To53AreAdmittedAndNotOneMore) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 53;
  for (const double epsilon : {1.0, kInfinity}) {
    BudgetFilter filter(BudgetOf(epsilon, 1e-5));
    filter.BeginRun("run", Pure(1e-30), filter.TermsFor(Pure(1e-30), 0));
    EXPECT_TRUE(filter.Admits("run", Event::Repeat(Pure(1e-30), kMost), 0).admitted);
    EXPECT_FALSE(filter.Admits("run", Event::Repeat(Pure(1e-30), kMost + 1), 0).admitted);
    filter.Charge("run", Event::Repeat(Pure(1e-30), kMost), 0);
    EXPECT_FALSE(filter.Admits("run", Pure(1e-31), 0).admitted);
  }
}

TEST(BudgetFilter, GoesOnFromSumsThatWereKept) {
  BudgetFilter filter(BudgetOf(4, 1e-5));
  ASSERT_TRUE(ChargeRun(filter, "first", Event::Repeat(GaussianNoise(20), 100)));
  ASSERT_TRUE(ChargeRun(filter, "second", Pure(0.25)));
  BudgetFilter later(filter.budget(), ParseBudgetSumsJson(BudgetSumsJson(filter.sums())));
  EXPECT_EQ(later.UsedShare(), filter.UsedShare());
  EXPECT_EQ(later.LeftEpsilon(), filter.LeftEpsilon());
  EXPECT_FALSE(later.HasRun("first"));
  EXPECT_FALSE(later.TermsFor(GaussianNoise(0.2), 0).whole);
  later.Recall("first", Event::Repeat(GaussianNoise(20), 100), filter.TotalOf("first"));
  EXPECT_THROW(later.Return("first", Event::Repeat(GaussianNoise(20), 101), 0), Error);
  later.Return("first", Event::Repeat(GaussianNoise(20), 40), 0);
  filter.Return("first", Event::Repeat(GaussianNoise(20), 40), 0);
  EXPECT_EQ(later.sums(), filter.sums());
  later.Recall("second", Pure(0.25), Pure(0.25));
  EXPECT_EQ(later.Total(), filter.Total());
}

TEST(BudgetFilter, ARunThatCountsWholeGoesOnFromSumsThatWereKept) {
  const Event step = GaussianNoise(10 * 1.0001 / GaussianMu(3, std::log(1e-5)));
  const Event plan = Event::Repeat(step, 100);
  BudgetFilter filter(BudgetOf(3, 1e-5));
  filter.BeginRun("first", plan, filter.TermsFor(plan, 0));
  filter.Charge("first", Event::Repeat(step, 60), 0);
  BudgetFilter later(filter.budget(), filter.sums());
  EXPECT_EQ(later.whole_run(), "first");
  EXPECT_EQ(later.UsedShare(), 1);
  later.Recall("first", plan, Event::Repeat(step, 60));
  EXPECT_TRUE(later.Admits("first", Event::Repeat(step, 40), 0).admitted);
  EXPECT_FALSE(later.Admits("first", Event::Repeat(step, 41), 0).admitted);
  EXPECT_EQ(later.Counted(), plan);
}

TEST(BudgetFilter, WhatIsLeftIsAdmittedAndNotMore) {
  for (const FilterKind kind : {FilterKind::kRenyi, FilterKind::kGaussian}) {
    Budget budget = BudgetOf(4, 1e-5);
    budget.filter = kind;
    BudgetFilter filter(budget);
    ASSERT_TRUE(ChargeRun(filter, "first", Event::Repeat(GaussianNoise(20), 100)));
    const double left = filter.LeftEpsilon();
    EXPECT_GT(left, 0.5);
    EXPECT_LT(left, 4);
    const auto gaussian_of = [](double epsilon) {
      return GaussianNoise(1 / GaussianMu(epsilon, std::log(1e-5)));
    };
    EXPECT_TRUE(filter.AdmitsPlan(gaussian_of(left * 0.999), 0).admitted);
    EXPECT_FALSE(filter.AdmitsPlan(gaussian_of(left * 1.001), 0).admitted);
  }
}

TEST(BudgetFilter, WhatIsLeftForPureMechanismsIsTheDifference) {
  for (const double delta : {0.0, 1e-5}) {
    BudgetFilter filter(BudgetOf(1, delta));
    EXPECT_EQ(filter.LeftPureEpsilon(), 1);
    ASSERT_TRUE(ChargeRun(filter, "first", Pure(0.75)));
    EXPECT_NEAR(filter.LeftPureEpsilon(), 0.25, 1e-12);
    EXPECT_TRUE(filter.AdmitsPlan(Pure(filter.LeftPureEpsilon()), 0).admitted);
    EXPECT_FALSE(filter.AdmitsPlan(Pure(1.001 * filter.LeftPureEpsilon()), 0).admitted);
    EXPECT_LT(filter.LeftEpsilon(), delta == 0 ? 1e-300 : 1);
  }
}

TEST(BudgetFilter, AfterGaussiansTheFilterSaysWhatIsLeftForPureMechanisms) {
  BudgetFilter filter(BudgetOf(4, 1e-5));
  ASSERT_TRUE(ChargeRun(filter, "first", Event::Repeat(GaussianNoise(20), 100)));
  const double left = filter.LeftPureEpsilon();
  EXPECT_GT(left, 0.5);
  EXPECT_TRUE(filter.AdmitsPlan(Pure(0.999 * left), 0).admitted);
  EXPECT_FALSE(filter.AdmitsPlan(Pure(1.001 * left), 0).admitted);
}

TEST(BudgetFilter, FailuresHaveALimitOfTheirOwn) {
  Budget budget = BudgetOf(1, 1e-5);
  budget.loss_share = 0;
  BudgetFilter filter(budget);
  const double limit = 1e-5 * kFailureReserve / (1 + std::exp(1));
  filter.BeginRun("run", Pure(0.01), filter.TermsFor(Pure(0.01), 0));
  EXPECT_FALSE(filter.Admits("run", Pure(0.01), 1.001 * limit).admitted);
  EXPECT_TRUE(filter.Admits("run", Pure(0.01), 0.5 * limit).admitted);
  filter.Charge("run", Pure(0.01), 0.5 * limit);
  EXPECT_FALSE(filter.Admits("run", Pure(0.01), 0.501 * limit).admitted);
}

TEST(BudgetFilter, FailuresAreLossesWhereThatCostsLess) {
  BudgetFilter filter(BudgetOf(20, 1e-5));
  const double limit = 1e-5 * kLossShare / (1 + std::exp(0.01));
  filter.BeginRun("run", Pure(0.01), filter.TermsFor(Pure(0.01), 0));
  EXPECT_FALSE(filter.Admits("run", Pure(0.01), 1.001 * limit).admitted);
  EXPECT_TRUE(filter.Admits("run", Pure(0.01), 0.5 * limit).admitted);
  filter.Charge("run", Pure(0.01), 0.5 * limit);
  EXPECT_NEAR(filter.UsedShare(), 0.5, 1e-6);
  EXPECT_FALSE(filter.Admits("run", Pure(0.01), 0.501 * limit).admitted);
  EXPECT_EQ(filter.failure(), 0.5 * limit);
}

TEST(BudgetFilter, WhatCannotBeMeasuredIsRefusedWithAReason) {
  Budget budget = BudgetOf(8, 1e-5);
  budget.loss_share = 0;
  BudgetFilter filter(budget);
  const Event approximate = Event::Approximate(Epsilon(0.1), Delta(1e-7));
  filter.BeginRun("run", approximate, filter.TermsFor(GaussianNoise(1), 0));
  const Verdict verdict = filter.Admits("run", approximate, 0);
  EXPECT_FALSE(verdict.admitted);
  EXPECT_THAT(verdict.reason, ::testing::HasSubstr("cannot measure"));
}

TEST(BudgetFilter, AnotherAdjacencyIsAMistake) {
  BudgetFilter filter(BudgetOf(8, 1e-5));
  filter.BeginRun("run", GaussianNoise(1), filter.TermsFor(GaussianNoise(1), 0));
  EXPECT_THROW(filter.Admits("run", Event::Gaussian(NoiseMultiplier(5), Adjacency::kReplaceOne), 0),
               Error);
  EXPECT_THROW(filter.Admits("nobody", GaussianNoise(5), 0), Error);
}

TEST(BudgetFilter, AnInfiniteBudgetRefusesNothing) {
  BudgetFilter filter({.epsilon = Epsilon(kInfinity), .delta = Delta(1e-5)});
  EXPECT_TRUE(ChargeRun(filter, "first", GaussianNoise(1e-3)));
  EXPECT_EQ(filter.UsedShare(), 0);
}

TEST(BudgetFilter, BudgetsThatContradictThemselvesAreRefused) {
  Budget budget = BudgetOf(1, 0);
  budget.filter = FilterKind::kGaussian;
  EXPECT_THROW(BudgetFilter{budget}, Error);
  budget = BudgetOf(1, 0);
  budget.order = RenyiOrder(3);
  EXPECT_THROW(BudgetFilter{budget}, Error);
  EXPECT_THROW(BudgetFilter(BudgetOf(0, 1e-5)), Error);
  EXPECT_THROW(BudgetFilter(BudgetOf(1, 1)), Error);
}

}  // namespace
}  // namespace sordino
