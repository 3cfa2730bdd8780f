// Training with random allocation: what the plan states, who is in which batch, what is charged.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sordino/accounting/calibration.h"
#include "sordino/base/error.h"
#include "sordino/training/testing/trainer_cases.h"
#include "sordino/training/trainer.h"

namespace sordino {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

PlanOptions Allocated(std::int64_t records, double batch, std::int64_t steps) {
  PlanOptions options;
  options.sampling = "allocation";
  options.records = records;
  options.batch = batch;
  options.steps = steps;
  return options;
}

TEST(AllocationPlan, HasTheEventOfTheEpochsThatItTouches) {
  const auto event = [](std::int64_t steps) {
    return PrivacyPlan(Allocated(60'000, 600, steps), NoiseMultiplier(1.5), Delta(1e-5))
        .event()
        .ToString();
  };
  EXPECT_EQ(event(100), "add-remove: allocation(100, gaussian(1.5))");
  EXPECT_EQ(event(1), "add-remove: allocation(100, gaussian(1.5))");
  EXPECT_EQ(event(300), "add-remove: 3*allocation(100, gaussian(1.5))");
  EXPECT_EQ(event(301), "add-remove: 4*allocation(100, gaussian(1.5))");
  const PrivacyPlan plan(Allocated(60'000, 600, 500), NoiseMultiplier(1.5), Delta(1e-5));
  const auto epochs = [&](std::int64_t first, std::int64_t last) {
    return plan.EventOf(first, last).TotalCount();
  };
  EXPECT_EQ(epochs(0, 0), 0U);
  EXPECT_EQ(epochs(99, 100), 1U);
  EXPECT_EQ(epochs(99, 101), 2U);
  EXPECT_EQ(epochs(100, 200), 1U);
  EXPECT_EQ(epochs(150, 451), 4U);
  EXPECT_EQ(plan.StepsPerEvent(), 100);
  EXPECT_EQ(plan.UnitShare(), 1);
}

TEST(AllocationPlan, HasAWholeNumberOfBatchesThatShareTheDeclaredRecords) {
  const PrivacyPlan plan(Allocated(60'000, 256, 1), NoiseMultiplier(1), Delta(1e-5));
  EXPECT_EQ(plan.StepsPerEvent(), 234);
  EXPECT_EQ(plan.options().batch, 60'000.0 / 234);
  EXPECT_EQ(plan.Divisor(0), 60'000.0 / 234);
  EXPECT_EQ(plan.StepRate(0).value(), 1.0 / 234);
  PlanOptions undeclared = Allocated(0, 50, 1);
  undeclared.rate = SamplingRate(0.1);
  const PrivacyPlan unknown(undeclared, NoiseMultiplier(1), Delta(1e-5));
  EXPECT_EQ(unknown.StepsPerEvent(), 10);
  EXPECT_EQ(unknown.Divisor(0), 50);
  EXPECT_EQ(unknown.sampling().MaxRecords(), 1000);
}

TEST(AllocationPlan, PaysForBatchesThatAreTooLargeAsPoissonSamplingDoes) {
  const PlanOptions allocated = Allocated(60'000, 600, 250);
  PlanOptions sampled = allocated;
  sampled.sampling = "poisson";
  const PrivacyPlan plan(allocated, NoiseMultiplier(1), Delta(1e-5));
  const PrivacyPlan poisson(sampled, NoiseMultiplier(1), Delta(1e-5));
  EXPECT_EQ(plan.LargestBatch(), poisson.LargestBatch());
  // All steps of the epochs that it touches.
  sampled.steps = 300;
  EXPECT_EQ(plan.Failure(250), PrivacyPlan(sampled, NoiseMultiplier(1), Delta(1e-5)).Failure(300));
  EXPECT_GT(plan.Failure(250), poisson.Failure(250));
}

TEST(AllocationPlan, FindsTheLeastNoiseForABudgetAndNeedsLessThanPoissonSampling) {
  PlanOptions options = Allocated(10'000, 100, 1000);
  const std::optional<PrivacyPlan> plan = PrivacyPlan::ForBudget(options, Epsilon(1), Delta(1e-6));
  ASSERT_TRUE(plan.has_value());
  EXPECT_LE(plan->Epsilon(1000).upper, 1);
  EXPECT_GT(plan->Epsilon(1000).upper, 0.98);
  // What the accountant says of the same event, less what failures cost.
  EXPECT_GE(plan->Epsilon(1000).upper, SpentEpsilon(plan->event(), Delta(1e-6)).lower);
  EXPECT_EQ(plan->Epsilon(901).upper, plan->Epsilon(1000).upper);
  EXPECT_LT(plan->Epsilon(900).upper, plan->Epsilon(1000).upper);
  options.sampling = "poisson";
  const std::optional<PrivacyPlan> poisson =
      PrivacyPlan::ForBudget(options, Epsilon(1), Delta(1e-6));
  EXPECT_LT(plan->noise().value(), poisson->noise().value());
}

TEST(AllocationPlan, RefusesWhatTheAnalysisDoesNotCover) {
  const auto mistake = [](const std::function<void(PlanOptions&)>& change) -> std::string {
    PlanOptions options = Allocated(1000, 10, 100);
    change(options);
    try {
      PrivacyPlan(options, NoiseMultiplier(1), Delta(1e-5));
    } catch (const Error& error) {
      return error.what();
    }
    return "(accepted)";
  };
  EXPECT_EQ(mistake([](auto&) {}), "(accepted)");
  EXPECT_EQ(mistake([](auto& o) { o.clip_schedule = Schedule::Parse("linear:0.5"); }),
            "(accepted)");
  EXPECT_EQ(mistake([](auto& o) { o.adjacency = Adjacency::kZeroOut; }), "(accepted)");
  EXPECT_THAT(mistake([](auto& o) { o.adjacency = Adjacency::kReplaceOne; }),
              HasSubstr("under add-remove and zero-out only"));
  EXPECT_THAT(mistake([](auto& o) { o.noise = "laplace"; }), HasSubstr("for Gaussian noise only"));
  EXPECT_THAT(mistake([](auto& o) { o.noise_schedule = Schedule::Parse("linear:0.5"); }),
              HasSubstr("for steps of equal noise"));
  EXPECT_THAT(mistake([](auto& o) { o.rate_schedule = Schedule::Parse("linear:0.5"); }),
              HasSubstr("schedule of the sampling rate needs poisson sampling"));
  EXPECT_THAT(mistake([](auto& o) { o.rows_per_user = 2; }), HasSubstr("one row per user"));
  EXPECT_THAT(mistake([](auto& o) { o.micro_batch = 2; }), HasSubstr("no bounded sensitivity"));
  EXPECT_THAT(mistake([](auto& o) { o.rate = SamplingRate(0.3); }),
              HasSubstr("not one over a whole number of batches"));
  EXPECT_THAT(mistake([](auto& o) { o.records = 0; }), HasSubstr("number of batches"));
  EXPECT_THAT(mistake([](auto& o) { o.rate = SamplingRate(1e-8); }), HasSubstr("at most 1e+07"));
}

// Record i moves weight i alone, by its clipping norm, so an update shows who was in the batch.
class EpochMembership {
 public:
  static constexpr std::int64_t kRecords = 60;
  static constexpr std::int64_t kBatches = 7;
  static constexpr std::int64_t kEpochs = 5;

  explicit EpochMembership(std::optional<std::uint64_t> seed)
      : plan_(Allocated(kRecords, 60.0 / 7, kEpochs * kBatches), NoiseMultiplier(0.01),
              Delta(1e-5)),
        weights_(kRecords) {
    Dataset data = RandomFeatures(kRecords, kRecords, 1);
    data.inputs = at::eye(kRecords);
    TrainerOptions options;
    options.insecure_seed = seed;
    options.charge = [this](std::int64_t, const Event& event) { charged.push_back(event); };
    trainer_ =
        std::make_unique<Trainer>(plan_, weights_.Named(), weights_.Linear(), data,
                                  OptimizerOptions{.learning_rate = plan_.Divisor(0)}, options);
  }

  // Who is in the batch of the next step.
  std::vector<bool> Step() {
    const at::Tensor before = weights_.value.detach().clone();
    trainer_->Step();
    const at::Tensor moved = before - weights_.value.detach();
    std::vector<bool> in(kRecords);
    for (std::int64_t i = 0; i < kRecords; ++i) {
      const auto value = moved[i].item<double>();
      EXPECT_LT(std::abs(value - std::round(value)), 0.1);
      in[static_cast<std::size_t>(i)] = value > 0.5;
    }
    return in;
  }
  // The batch that each record is in; -1 where it is in none or in two.
  std::vector<std::int64_t> Epoch() {
    std::vector<std::int64_t> place(kRecords, -1);
    std::vector<int> times(kRecords, 0);
    for (std::int64_t batch = 0; batch < kBatches; ++batch) {
      const std::vector<bool> in = Step();
      for (std::size_t i = 0; i < in.size(); ++i) {
        if (in[i] && ++times[i] == 1) place[i] = batch;
      }
    }
    for (std::size_t i = 0; i < place.size(); ++i) {
      if (times[i] != 1) place[i] = -1;
    }
    return place;
  }

  Trainer& trainer() { return *trainer_; }
  const PrivacyPlan& plan() const { return plan_; }
  std::vector<Event> charged;

 private:
  PrivacyPlan plan_;
  Weights weights_;
  std::unique_ptr<Trainer> trainer_;
};

TEST(AllocationTrainer, EachRecordIsInExactlyOneBatchOfEveryEpoch) {
  for (const std::optional<std::uint64_t> seed :
       {std::optional<std::uint64_t>(3), std::optional<std::uint64_t>()}) {
    EpochMembership run(seed);
    std::vector<std::vector<std::int64_t>> epochs;
    for (std::int64_t epoch = 0; epoch < EpochMembership::kEpochs; ++epoch) {
      epochs.push_back(run.Epoch());
      EXPECT_THAT(epochs.back(), Each(::testing::Ge(0)));
      // Two allocations are equal with probability 7^-60.
      for (std::int64_t before = 0; before < epoch; ++before) {
        EXPECT_NE(epochs.back(), epochs[static_cast<std::size_t>(before)]);
      }
    }
  }
}

// 300 places in 7 batches, over 20 seeds: the statistic of the sum has 120 degrees of freedom and
// is above 200 with probability 7e-6; the seeds are fixed.
TEST(AllocationTrainer, EveryBatchOfAnEpochIsAsLikely) {
  double statistic = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    EpochMembership run(seed);
    std::vector<double> count(EpochMembership::kBatches, 0);
    for (std::int64_t epoch = 0; epoch < EpochMembership::kEpochs; ++epoch) {
      for (const std::int64_t place : run.Epoch()) ++count[static_cast<std::size_t>(place)];
    }
    const double wanted =
        static_cast<double>(EpochMembership::kRecords * EpochMembership::kEpochs) /
        EpochMembership::kBatches;
    for (const double seen : count) statistic += (seen - wanted) * (seen - wanted) / wanted;
  }
  EXPECT_LT(statistic, 200);
  EXPECT_GT(statistic, 60);  // below with probability 4e-7
}

TEST(AllocationTrainer, TheFirstStepOfAnEpochPaysForAllOfIt) {
  EpochMembership run(3);
  run.trainer().Run();
  ASSERT_EQ(run.charged.size(), static_cast<std::size_t>(run.plan().steps()));
  for (std::size_t step = 0; step < run.charged.size(); ++step) {
    EXPECT_EQ(run.charged[step],
              step % EpochMembership::kBatches == 0 ? run.plan().StepEvent(0) : Event::None());
  }
  EXPECT_EQ(Event::Compose(run.charged), run.plan().event());
}

TEST(AllocationTrainer, AnEpochThatIsGoneOnWithIsAllocatedAndChargedAnew) {
  EpochMembership first(std::nullopt);
  std::vector<bool> seen(EpochMembership::kRecords, false);
  for (int step = 0; step < 4; ++step) {
    const std::vector<bool> in = first.Step();
    for (std::size_t i = 0; i < in.size(); ++i) seen[i] = seen[i] || in[i];
  }
  EpochMembership second(std::nullopt);
  second.trainer().RestoreState(first.trainer().SaveState(), 4);
  int again = 0;
  std::vector<int> times(EpochMembership::kRecords, 0);
  for (std::int64_t step = 4; step < EpochMembership::kBatches; ++step) {
    const std::vector<bool> in = second.Step();
    for (std::size_t i = 0; i < in.size(); ++i) {
      if (in[i]) ++times[i];
      if (in[i] && seen[i]) ++again;
    }
  }
  // Within the part that is left no record comes twice; beside the part before, some do: each of
  // the 60 with probability 4/7 * 3/7, so none of them with probability 4e-8.
  EXPECT_THAT(times, Each(::testing::Le(1)));
  EXPECT_GT(again, 0);
  EXPECT_EQ(second.charged,
            (std::vector<Event>{second.plan().StepEvent(4), Event::None(), Event::None()}));
  second.Step();
  EXPECT_EQ(second.charged.back(), second.plan().StepEvent(7));
}

}  // namespace
}  // namespace sordino
