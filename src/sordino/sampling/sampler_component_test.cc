// What each sampler charges is what it draws. Mutations: tools/mutate sampling.
#include "sordino/sampling/sampler_component.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sordino/base/error.h"

namespace sordino {
namespace {

SamplingPlan PlanOf(double rate, std::int64_t records, Adjacency adjacency) {
  SamplingPlan plan;
  plan.batch = rate * static_cast<double>(records);
  plan.rate = SamplingRate(rate);
  plan.records = records;
  plan.steps = 100;
  plan.adjacency = adjacency;
  return plan;
}

const SamplerComponent& Named(const std::string& name) { return Samplers().Checked(name); }

Event Release(Adjacency adjacency) { return Event::Gaussian(NoiseMultiplier(2), adjacency); }

TEST(SamplerEvents, AreThoseOfTheirDefinition) {
  const SamplingPlan poisson = PlanOf(0.25, 400, Adjacency::kAddRemove);
  EXPECT_EQ(Named("poisson").StepEvent(poisson, 0, Release(poisson.adjacency)).ToString(),
            "add-remove: poisson(0.25, gaussian(2))");
  const SamplingPlan fixed = PlanOf(0.25, 400, Adjacency::kReplaceOne);
  EXPECT_EQ(Named("fixed").StepEvent(fixed, 0, Release(fixed.adjacency)).ToString(),
            "replace-one: fixed(0.25, gaussian(2))");
  EXPECT_EQ(Named("allocation").StepEvent(poisson, 0, Release(poisson.adjacency)).ToString(),
            "add-remove: allocation(4, gaussian(2))");
  EXPECT_EQ(Named("allocation").StepsPerEvent(poisson), 4);
  SamplingPlan cyclic = PlanOf(0.0625, 400, Adjacency::kAddRemove);
  cyclic.noise_bands = 4;
  EXPECT_EQ(Named("cyclic").StepEvent(cyclic, 0, Release(cyclic.adjacency)).ToString(),
            "add-remove: poisson(0.25, gaussian(2))");
  EXPECT_EQ(Named("cyclic").StepsPerEvent(cyclic), 4);
  const SamplingPlan ordered = PlanOf(0.25, 400, Adjacency::kZeroOut);
  EXPECT_EQ(Named("ordered").StepEvent(ordered, 0, Release(ordered.adjacency)).ToString(),
            "zero-out: gaussian(2)");
  EXPECT_EQ(Named("ordered").StepsPerEvent(ordered), 4);
}

// Groups are what the noise needs, or what was asked for, and no more than one pass has steps.
TEST(SamplerEvents, CyclicGroupsAreThoseThatTheNoiseNeeds) {
  SamplingPlan plan = PlanOf(0.0625, 400, Adjacency::kAddRemove);
  const SamplerComponent& cyclic = Samplers().Find("cyclic");
  EXPECT_EQ(cyclic.Separation(plan), 1);
  plan.noise_bands = 5;
  EXPECT_EQ(cyclic.Separation(plan), 5);
  plan.noise_bands = 1000;
  EXPECT_EQ(cyclic.Separation(plan), 16);
  EXPECT_EQ(cyclic.StepEvent(plan, 0, Release(plan.adjacency)).ToString(),
            "add-remove: poisson(1, gaussian(2))");
  plan.options.Set("groups", std::int64_t{8});
  EXPECT_EQ(cyclic.Separation(plan), 8);
  EXPECT_NO_THROW(cyclic.CheckPlan(plan));
  plan.options.Set("groups", std::int64_t{17});
  EXPECT_THROW(cyclic.CheckPlan(plan), Error);
  EXPECT_EQ(Named("full").Separation(plan), 1);
  for (const char* name : {"poisson", "fixed", "allocation"}) {
    EXPECT_EQ(Named(name).Separation(plan), 0) << name;
  }
}

// Of every record: the steps in which it is drawn.
std::vector<std::vector<std::int64_t>> StepsOfRecords(const char* name, const SamplingPlan& plan,
                                                      std::uint64_t records, RandomSource& random) {
  const auto batches = Named(name).Make(plan, records, random);
  std::vector<std::vector<std::int64_t>> steps(records);
  for (std::int64_t step = 0; step < plan.steps; ++step) {
    const auto stream =
        random.Stream({.step = static_cast<std::uint64_t>(step), .rank = 0, .tensor = 0});
    for (const std::uint64_t record : batches->Batch(step, *stream)) {
      steps.at(record).push_back(step);
    }
  }
  return steps;
}

// The pattern that is charged: what correlated noise stands on.
TEST(SamplerEvents, RecordsRestBetweenTheirSteps) {
  for (const std::optional<std::uint64_t> seed :
       {std::optional<std::uint64_t>(3), std::optional<std::uint64_t>()}) {
    RandomSource random = seed ? RandomSource(*seed) : RandomSource();
    for (const char* name : {"cyclic", "ordered"}) {
      const bool is_ordered = std::string(name) == "ordered";
      for (const std::uint64_t records : {380U, 400U, 431U}) {
        SamplingPlan plan =
            PlanOf(0.0625, 400, is_ordered ? Adjacency::kZeroOut : Adjacency::kAddRemove);
        plan.noise_bands = 5;
        plan.steps = 203;
        const std::int64_t separation = Named(name).Separation(plan);
        EXPECT_EQ(separation, is_ordered ? 16 : 5);
        for (const auto& steps : StepsOfRecords(name, plan, records, random)) {
          for (std::size_t i = 1; i < steps.size(); ++i) {
            EXPECT_EQ((steps[i] - steps[i - 1]) % separation, 0) << name;
            EXPECT_GE(steps[i] - steps[i - 1], separation) << name;
            if (is_ordered) {
              EXPECT_EQ(steps[i] - steps[i - 1], separation);
            }
          }
        }
      }
    }
  }
}

// 12,000 records in 6 groups: the statistic has 5 degrees of freedom and is above 40 with
// probability 1.5e-7. Who was in no batch of 600 steps at rate 1/2 of a group: nobody, but for
// 2e-26.
TEST(SamplerEvents, CyclicGroupsAreUniform) {
  SamplingPlan plan = PlanOf(1.0 / 12, 12'000, Adjacency::kAddRemove);
  plan.noise_bands = 6;
  plan.steps = 600;
  RandomSource random(11);
  std::vector<double> counts(6);
  for (const auto& steps : StepsOfRecords("cyclic", plan, 12'000, random)) {
    ASSERT_FALSE(steps.empty());
    ++counts[static_cast<std::size_t>(steps[0] % 6)];
  }
  double statistic = 0;
  for (const double count : counts) statistic += (count - 2000) * (count - 2000) / 2000;
  EXPECT_LT(statistic, 40);
  EXPECT_GT(statistic, 0.02);  // below with probability 3e-6
}

TEST(SamplerEvents, OrderedBatchesArePlacesOfTheDeclaredRecords) {
  const SamplingPlan plan = PlanOf(0.25, 10, Adjacency::kZeroOut);
  RandomSource random(1);
  const auto stream = random.Stream({.step = 0, .rank = 0, .tensor = 0});
  const auto batches_of = [&](std::uint64_t records) {
    const auto batches = Named("ordered").Make(plan, records, random);
    std::vector<std::vector<std::uint64_t>> all;
    for (std::int64_t step = 0; step < 5; ++step) all.push_back(batches->Batch(step, *stream));
    return all;
  };
  using Batches = std::vector<std::vector<std::uint64_t>>;
  EXPECT_EQ(batches_of(10), (Batches{{0, 1, 2}, {3, 4, 5}, {6, 7}, {8, 9}, {0, 1, 2}}));
  EXPECT_EQ(batches_of(7), (Batches{{0, 1, 2}, {3, 4, 5}, {6}, {}, {0, 1, 2}}));
  EXPECT_EQ(batches_of(12), batches_of(10));
}

TEST(SamplerEvents, CountInTheUnitThatTheNoiseHas) {
  EXPECT_EQ(Named("poisson").UnitShare(PlanOf(0.25, 400, Adjacency::kAddRemove)), 1);
  EXPECT_EQ(Named("poisson").UnitShare(PlanOf(0.25, 400, Adjacency::kReplaceOne)), 0.5);
  SamplingPlan pure = PlanOf(0.25, 400, Adjacency::kReplaceOne);
  pure.noise_is_gaussian = false;
  EXPECT_EQ(Named("poisson").UnitShare(pure), 1);
  EXPECT_EQ(Named("fixed").UnitShare(PlanOf(0.25, 400, Adjacency::kReplaceOne)), 1);
}

// The shifts of a user's event are the binomial numbers of rows that a batch holds.
TEST(SamplerEvents, CountEveryRowOfAUser) {
  SamplingPlan plan = PlanOf(0.25, 400, Adjacency::kAddRemove);
  plan.rows_per_user = 3;
  const Event event = Named("poisson").UserEvent(plan, 0, NoiseMultiplier(2));
  const std::vector<double> sizes = event.numbers("shift");
  const std::vector<double> chances = event.numbers("probability");
  ASSERT_EQ(sizes.size(), 4U);
  EXPECT_EQ(event.number("noise"), 2);
  const double expected[] = {27.0 / 64, 27.0 / 64, 9.0 / 64, 1.0 / 64};
  double total = 0;
  std::set<double> shifts;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    shifts.insert(sizes[i]);
    total += chances[i];
    EXPECT_NEAR(chances[i], expected[static_cast<std::size_t>(sizes[i])], 1e-9);
  }
  EXPECT_EQ(shifts, (std::set<double>{0, 1, 2, 3}));
  EXPECT_NEAR(total, 1, 1e-12);
}

TEST(SamplerEvents, RoundingTakesNothingFromTheLargestShifts) {
  SamplingPlan plan = PlanOf(0.9, 400, Adjacency::kAddRemove);
  plan.rows_per_user = 300;
  const Event event = Named("poisson").UserEvent(plan, 0, NoiseMultiplier(2));
  const std::vector<double> sizes = event.numbers("shift");
  const std::vector<double> chances = event.numbers("probability");
  double largest = 0;
  double chance = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] <= largest) continue;
    largest = sizes[i];
    chance = chances[i];
  }
  EXPECT_EQ(largest, 300);
  EXPECT_GE(chance, std::pow(0.9, 300));
}

TEST(SamplerEvents, WhatNoTheoremCoversIsRefused) {
  const auto refused = [](const std::string& name, SamplingPlan plan, auto change) {
    EXPECT_NO_THROW(Named(name).CheckPlan(plan)) << name;
    change(plan);
    EXPECT_THROW(Named(name).CheckPlan(plan), Error) << name;
  };
  const SamplingPlan add_remove = PlanOf(0.25, 400, Adjacency::kAddRemove);
  const SamplingPlan replace_one = PlanOf(0.25, 400, Adjacency::kReplaceOne);
  refused("poisson", add_remove, [](SamplingPlan& plan) { plan.micro_batch = 2; });
  refused("poisson", add_remove, [](SamplingPlan& plan) { plan.rate.reset(); });
  refused("poisson", add_remove, [](SamplingPlan& plan) { plan.rate = SamplingRate(0); });
  refused("fixed", replace_one, [](SamplingPlan& plan) { plan.adjacency = Adjacency::kAddRemove; });
  refused("fixed", replace_one, [](SamplingPlan& plan) { plan.adjacency = Adjacency::kZeroOut; });
  refused("fixed", replace_one, [](SamplingPlan& plan) { plan.records = 0; });
  refused("fixed", replace_one, [](SamplingPlan& plan) { plan.batch = 401; });
  refused("allocation", add_remove,
          [](SamplingPlan& plan) { plan.adjacency = Adjacency::kReplaceOne; });
  refused("allocation", add_remove, [](SamplingPlan& plan) { plan.rows_per_user = 2; });
  refused("allocation", add_remove, [](SamplingPlan& plan) { plan.micro_batch = 2; });
  refused("allocation", add_remove, [](SamplingPlan& plan) { plan.noise_is_gaussian = false; });
  refused("allocation", add_remove, [](SamplingPlan& plan) { plan.noise_is_constant = false; });
  const SamplingPlan zero_out = PlanOf(0.25, 400, Adjacency::kZeroOut);
  for (const char* name : {"cyclic", "ordered"}) {
    refused(name, zero_out, [](SamplingPlan& plan) { plan.rows_per_user = 2; });
    refused(name, zero_out, [](SamplingPlan& plan) { plan.micro_batch = 2; });
    refused(name, zero_out, [](SamplingPlan& plan) { plan.noise_is_constant = false; });
    refused(name, zero_out, [](SamplingPlan& plan) { plan.rate.reset(); });
  }
  refused("cyclic", add_remove,
          [](SamplingPlan& plan) { plan.adjacency = Adjacency::kReplaceOne; });
  refused("ordered", replace_one,
          [](SamplingPlan& plan) { plan.adjacency = Adjacency::kAddRemove; });
  refused("ordered", zero_out, [](SamplingPlan& plan) { plan.records = 0; });
}

// The share of records in a batch, over many steps, is the rate that is charged.
TEST(SamplerEvents, HaveTheRateThatIsDrawn) {
  constexpr std::int64_t kRecords = 400;
  constexpr std::int64_t kSteps = 400;
  for (const char* name : {"poisson", "fixed", "allocation", "cyclic", "ordered"}) {
    SamplingPlan plan = PlanOf(0.25, kRecords, Adjacency::kAddRemove);
    plan.steps = kSteps;
    plan.noise_bands = 2;
    RandomSource random(7);
    const auto batches = Named(name).Make(plan, kRecords, random);
    double drawn = 0;
    for (std::int64_t step = 0; step < kSteps; ++step) {
      const auto stream =
          random.Stream({.step = static_cast<std::uint64_t>(step), .rank = 0, .tensor = 0});
      drawn += static_cast<double>(batches->Batch(step, *stream).size());
    }
    const double rate = Named(name).Rate(plan, 0).value();
    EXPECT_EQ(rate, 0.25) << name;
    // Six deviations of independent coins; the other samplers have less.
    const double count = kRecords * kSteps;
    EXPECT_NEAR(drawn / count, rate, 6 * std::sqrt(rate * (1 - rate) / count)) << name;
  }
}

TEST(SamplerEvents, EpochsOfAnAllocationAreDrawnAnew) {
  const SamplingPlan plan = PlanOf(0.25, 400, Adjacency::kAddRemove);
  RandomSource random(8);
  const auto batches = Named("allocation").Make(plan, 400, random);
  const auto stream = random.Stream({.step = 0, .rank = 0, .tensor = 0});
  std::vector<std::vector<std::uint64_t>> drawn;
  for (std::int64_t step = 0; step < 8; ++step) drawn.push_back(batches->Batch(step, *stream));
  for (std::size_t epoch = 0; epoch < 2; ++epoch) {
    std::multiset<std::uint64_t> all;
    for (std::size_t i = 0; i < 4; ++i) {
      const auto& batch = drawn[4 * epoch + i];
      all.insert(batch.begin(), batch.end());
    }
    EXPECT_EQ(all.size(), 400U);
    EXPECT_EQ(std::set<std::uint64_t>(all.begin(), all.end()).size(), 400U);
  }
  EXPECT_NE(drawn[0], drawn[4]);
}

// Of 4,000 batches of 8 a record is in 800 of them where 40 places were declared and in 400 where
// there are 80 records, with a standard deviation of at most 26: six of them are exceeded with a
// probability below 1e-6 for all records together.
TEST(SamplerEvents, FixedSizeBatchesCoverAnyNumberOfRecords) {
  SamplingPlan plan = PlanOf(0.2, 40, Adjacency::kReplaceOne);
  plan.batch = 8;
  RandomSource random(7);
  for (const std::uint64_t records : {0U, 1U, 7U, 8U, 39U, 40U, 41U, 80U}) {
    const auto sampler = Named("fixed").Make(plan, records, random);
    const auto stream = random.Stream({.step = records, .rank = 0, .tensor = 1});
    std::vector<int> counts(records);
    for (std::int64_t step = 0; step < 4000; ++step) {
      const std::vector<std::uint64_t> batch = sampler->Batch(step, *stream);
      ASSERT_LE(batch.size(), 8U);
      ASSERT_TRUE(records < 40 || batch.size() == 8);
      for (const std::uint64_t index : batch) ++counts.at(index);
    }
    const double expected = 4000 * 8.0 / static_cast<double>(std::max<std::uint64_t>(40, records));
    for (const int count : counts) EXPECT_NEAR(count, expected, 156) << records;
  }
}

}  // namespace
}  // namespace sordino
