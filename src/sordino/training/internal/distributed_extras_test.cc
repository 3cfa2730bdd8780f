// Estimated norms, held-out records and canaries on several ranks. What all of them draw alike in a
// private run is tested without a seed, which would give them the same bits from any source.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <string>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/training/testing/distributed_cases.h"
#include "sordino/training/trainer.h"

namespace sordino {
namespace {

// Gradients of one large coordinate and a small one of their own: estimates from the same
// directions are equal to a percent, and so are the coordinates of the sum, whichever rank they
// come from. Those of others differ by a quarter; six steps of three ranks are not alike by chance.
TEST(DistributedDirections, AreThoseOfAllRanksAndOfOneStep) {
  constexpr std::int64_t kRecords = 100;
  Dataset data = RandomFeatures(kRecords, kRecords + 1, 1);
  data.inputs.zero_();
  data.inputs.slice(1, 1, kRecords + 1).copy_(at::eye(kRecords) * 0.2);
  data.inputs.select(1, 0).fill_(50);
  PlanOptions options = FullBatch(kRecords, 6);
  options.norms = {"jl", {{"jl-directions", std::int64_t{8}}, {"jl-failure", 0.01}}};
  const PrivacyPlan plan(options, NoiseMultiplier(1e-5), Delta(0.1));
  RunRanks(3, [&](Communicator& all) {
    TakesTurns communicator(all);
    Weights weights(kRecords + 1);
    Trainer trainer(plan, weights.Named(), weights.Linear(), data, {.learning_rate = kRecords},
                    {.communicator = &communicator});
    if (!communicator.IsFirst()) return trainer.Serve();
    at::Tensor last = weights.value.detach().clone();
    std::vector<double> scales;
    trainer.Run([&](std::int64_t) {
      const at::Tensor clipped = (last - weights.value.detach()).slice(0, 1, kRecords + 1);
      scales.push_back(clipped.mean().item<double>());
      EXPECT_LT((clipped.max() - clipped.min()).item<double>(), 0.1 * scales.back());
      last = weights.value.detach().clone();
      return true;
    });
    // The next step has others.
    const auto [least, most] = std::minmax_element(scales.begin(), scales.end());
    EXPECT_GT(*most / *least, 1.02);
  });
}

// Each is a chunk, and the update is that of one process but for rounding.
TEST(DistributedTrainer, CoversMoreRecordsThanWereDeclared) {
  const PrivacyPlan plan(FullBatch(20, 1), NoiseMultiplier(1e-3), Delta(1e-5));
  const Dataset all = RandomFeatures(90, 5, 4);
  const auto update = [&](std::int64_t records, int ranks) {
    at::Tensor moved;
    RunRanks(ranks, [&](Communicator& each) {
      TakesTurns communicator(each);
      Weights weights(5);
      Trainer trainer(plan, weights.Named(), weights.SquaredError(), FirstRecords(all, records),
                      {.learning_rate = 20}, {.insecure_seed = 8, .communicator = &communicator});
      if (!communicator.IsFirst()) return trainer.Serve();
      trainer.Run();
      moved = weights.value.detach().clone();
    });
    return moved;
  };
  for (const std::int64_t records : {19, 20, 21, 89}) {
    const at::Tensor three = update(records, 3);
    EXPECT_TRUE(at::equal(three, update(records, 1))) << records;
    EXPECT_LE((three - update(records + 1, 3)).norm().item<double>(), 1.01) << records;
  }
}

// A rule that lowers the noise at every measurement but the first.
HeldOutOptions AlwaysRight() {
  return {.is_right = [](const Batch& batch) { return at::ones_like(batch[0].select(1, 0)); },
          .rule = {.factor = 0.5, .gain = 1e6}};
}

// Full batches show who is trained on; every held-out record counts as right,
// and the noise is far below 1.
TEST(DistributedHeldOutRecords, AreTheSameOnAllRanksAndCountedOnce) {
  constexpr std::int64_t kRecords = 1500;
  Dataset data = RandomFeatures(kRecords, kRecords, 1);
  data.inputs.copy_(at::eye(kRecords));
  PlanOptions options = FullBatch(kRecords, 4);
  options.held_out = {.share = 0.7, .every = 1, .count_noise = NoiseMultiplier(0.01)};
  const PrivacyPlan plan(options, NoiseMultiplier(1e-4), Delta(1e-5));
  RunRanks(3, [&](Communicator& communicator) {
    Weights weights(kRecords);
    TrainerOptions trainer_options{.communicator = &communicator};
    trainer_options.held_out = AlwaysRight();
    Trainer trainer(plan, weights.Named(), weights.Linear(), data,
                    {.learning_rate = plan.Divisor(0)}, trainer_options);
    if (!communicator.IsFirst()) return trainer.Serve();
    at::Tensor last = weights.value.detach().clone();
    std::vector<at::Tensor> members;
    trainer.Run([&](std::int64_t) {
      members.push_back((last - weights.value.detach()).round());
      last = weights.value.detach().clone();
      return true;
    });
    const double trained = members.front().sum().item<double>();
    EXPECT_NEAR(trained, 0.3 * kRecords, 7 * std::sqrt(0.21 * kRecords));
    for (const at::Tensor& batch : members) {
      EXPECT_TRUE(at::equal(batch, members.front()));
      EXPECT_LE(batch.max().item<double>(), 1);
    }
    const std::vector<HeldOutMeasurement> measured = trainer.measurements();
    ASSERT_EQ(measured.size(), 3U);
    for (const HeldOutMeasurement& one : measured) {
      EXPECT_NEAR(one.count, kRecords - trained, 0.1);
      EXPECT_NE(one.count, std::round(one.count));  // it has noise
    }
    EXPECT_EQ(measured.back().noise, 0.25e-4);
  });
}

// The noise of the steps after a measurement is lower on all ranks: updates without gradients show
// it in each shard.
TEST(DistributedHeldOutRecords, LowerTheNoiseOfEveryRank) {
  constexpr std::int64_t kWeights = 20'000;
  const Dataset data = RandomFeatures(40, 1, 2);
  PlanOptions options = FullBatch(data.size(), 4);
  options.held_out = {.share = 0.5, .every = 1, .count_noise = NoiseMultiplier(2)};
  const PrivacyPlan plan(options, NoiseMultiplier(3), Delta(1e-5));
  RunRanks(4, [&](Communicator& communicator) {
    Weights weights(kWeights);
    TrainerOptions trainer_options{.communicator = &communicator};
    trainer_options.held_out = AlwaysRight();
    if (communicator.IsFirst()) {
      // No place in the budget at the last one.
      trainer_options.held_out->admits = [](const PrivacyPlan&, std::int64_t step) {
        return step < 3;
      };
    }
    Trainer trainer(plan, weights.Named(), weights.NoGradient(), data, {.learning_rate = 1},
                    trainer_options);
    if (!communicator.IsFirst()) return trainer.Serve();
    const std::vector<at::Tensor> noise = Updates(trainer, weights);
    const std::vector<double> wanted = {3, 3, 1.5, 1.5};
    for (std::size_t i = 0; i < noise.size(); ++i) {
      const double unit = wanted[i] * 1.01 / plan.Divisor(0);
      for (const at::Tensor& shard : noise[i].split(kWeights / 4)) {
        // Seven deviations of the estimate.
        EXPECT_NEAR(shard.square().mean().sqrt().item<double>() / unit, 1,
                    7 / std::sqrt(2.0 * kWeights / 4));
      }
    }
  });
}

// Each rank adds the canaries of its shard. In a run that is not seeded they would differ from
// those that rank 0 has saved if ranks threw coins of their own.
TEST(DistributedCanaries, AreThoseOfRankZeroOnEveryShard) {
  constexpr std::int64_t kWeights = 300;
  constexpr std::int64_t kCanaries = 90;
  const Dataset data = RandomFeatures(10, 1, 2);
  PlanOptions options = FullBatch(data.size() + kCanaries, 3);
  const PrivacyPlan plan(options, NoiseMultiplier(1e-4), Delta(1e-5));
  RunRanks(3, [&](Communicator& communicator) {
    Weights weights(kWeights);
    Trainer trainer(plan, weights.Named(), weights.NoGradient(), data,
                    {.learning_rate = plan.Divisor(0)},
                    {.canaries = kCanaries, .communicator = &communicator});
    if (!communicator.IsFirst()) return trainer.Serve();
    at::Tensor last = weights.value.detach().clone();
    std::vector<at::Tensor> seen;
    trainer.Run([&](std::int64_t) {
      seen.push_back(last - weights.value.detach());
      last = weights.value.detach().clone();
      return true;
    });
    at::Tensor wanted = at::zeros({kWeights});
    const NamedTensors state = trainer.SaveState();
    const auto named = [&](const char* name) {
      for (const auto& [key, value] : state) {
        if (key == name) return value;
      }
      return at::Tensor();
    };
    wanted.index_copy_(0, named("canary.coordinates"), named("canary.in").to(at::kFloat));
    for (const at::Tensor& update : seen) {
      EXPECT_LT((update - wanted).abs().max().item<double>(), 0.01);
    }
    // With so little noise the attacks are right about all of them.
    const CanaryScores scores = trainer.canary_scores();
    ASSERT_EQ(scores.is_in.size(), static_cast<std::size_t>(kCanaries));
    for (std::size_t i = 0; i < scores.is_in.size(); ++i) {
      EXPECT_EQ(scores.is_in[i] != 0, scores.every_update[i] > 0) << i;
    }
  });
}

// Records and canaries are coordinates: the sum of a full batch says who is in it.
TEST(DistributedCanaries, ThatAreRecordsAreInTheBatchesOfAllRanks) {
  constexpr std::int64_t kRecords = 60;
  constexpr std::int64_t kCanaries = 70;
  Dataset data = RandomFeatures(kRecords, kRecords + kCanaries, 1);
  const at::Tensor all = at::eye(kRecords + kCanaries);
  data.inputs.copy_(all.narrow(0, 0, kRecords));
  CanaryRecords canaries;
  canaries.records = RandomFeatures(kCanaries, kRecords + kCanaries, 2);
  canaries.records.inputs.copy_(all.narrow(0, kRecords, kCanaries));
  canaries.other_labels = 1 - canaries.records.labels;
  PlanOptions options = FullBatch(kRecords + kCanaries, 3);
  const PrivacyPlan plan(options, NoiseMultiplier(1e-4), Delta(1e-5));
  RunRanks(3, [&](Communicator& communicator) {
    Weights weights(kRecords + kCanaries);
    TrainerOptions trainer_options{.communicator = &communicator};
    trainer_options.canary_records = canaries;
    Trainer trainer(plan, weights.Named(), weights.Linear(), data,
                    {.learning_rate = plan.Divisor(0)}, trainer_options);
    if (!communicator.IsFirst()) return trainer.Serve();
    trainer.Step();
    const std::vector<char> is_in = trainer.canary_scores().is_in;
    ASSERT_EQ(is_in.size(), static_cast<std::size_t>(kCanaries));
    at::Tensor wanted = at::ones({kRecords + kCanaries});
    for (std::int64_t i = 0; i < kCanaries; ++i) {
      wanted[kRecords + i] = static_cast<float>(is_in[static_cast<std::size_t>(i)]);
    }
    EXPECT_LT((weights.value.detach() + wanted).abs().max().item<double>(), 0.01);
    trainer.Run();
    EXPECT_LT((weights.value.detach() + 3 * wanted).abs().max().item<double>(), 0.03);
  });
}

class DistributedAudit : public testing::TestWithParam<const char*> {};

// What is released beside the model does not depend on the number of ranks either.
TEST_P(DistributedAudit, IsThatOfOneProcessOnAnyNumberOfRanks) {
  const RunCase run = CaseOf(GetParam());
  const Dataset data = RandomFeatures(600, kFeatures, 3);
  const auto near = [](const std::vector<double>& some, const std::vector<double>& others) {
    const at::Tensor first = at::tensor(some, at::kDouble);
    return (first - at::tensor(others, at::kDouble)).norm().item<double>() <=
           1e-3 * first.norm().item<double>();
  };
  CanaryScores wanted;
  {
    const OneThread one_thread;
    const Net net;
    Trainer alone(PlanOf(run), net.parameters, net.loss, data, run.optimizer,
                  OptionsOf(run, nullptr, net));
    alone.Run();
    wanted = alone.canary_scores();
  }
  ASSERT_EQ(wanted.is_in.size(), 40U);
  CanaryScores first;
  for (const int ranks : {1, 2, 3, 4, 8}) {
    CanaryScores scores;
    RunOn(ranks, run, data, [&](Trainer& trainer) {
      trainer.Run();
      scores = trainer.canary_scores();
    });
    if (ranks == 1) {
      EXPECT_EQ(scores.is_in, wanted.is_in);
      EXPECT_TRUE(near(wanted.every_update, scores.every_update));
      EXPECT_TRUE(near(wanted.last_model, scores.last_model));
      first = scores;
    }
    EXPECT_EQ(scores.is_in, first.is_in);
    EXPECT_EQ(scores.every_update, first.every_update) << ranks << " ranks";
    EXPECT_EQ(scores.last_model, first.last_model) << ranks << " ranks";
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, DistributedAudit,
                         testing::Values("Canaries", "CanariesAdaClipReplaceOne", "CanaryRecords",
                                         "CanaryRecordsReplaceOne"),
                         [](const auto& tested) { return std::string(tested.param); });

// A budget that cannot be asked ends all ranks after the release of the step, and nothing goes on
// from there. Records that a rank cannot measure count as wrong, and nobody is told.
TEST(DistributedHeldOutRecords, ThatFailTellNobodyAndABudgetThatFailsStopsAll) {
  const RunCase run = CaseOf("HeldOut");
  const Dataset data = RandomFeatures(600, kFeatures, 3);
  for (const bool in_the_budget : {false, true}) {
    std::atomic<int> told = 0;
    std::atomic<int> charges = 0;
    RunRanks(3, [&](Communicator& communicator) {
      const Net net;
      TrainerOptions options = OptionsOf(run, &communicator, net);
      options.charge = [&](std::int64_t, const Event&) { ++charges; };
      if (in_the_budget) {
        options.held_out->admits = [](const PrivacyPlan&, std::int64_t) -> bool {
          throw Error("this machine cannot.");
        };
      } else if (communicator.Rank() == 0) {  // who has the first records
        options.held_out->is_right = [](const Batch&) -> at::Tensor {
          throw Error("this machine cannot.");
        };
      }
      Trainer trainer(PlanOf(run), net.parameters, net.loss, data, run.optimizer, options);
      try {
        if (communicator.IsFirst()) {
          trainer.Run();
        } else {
          trainer.Serve();
        }
      } catch (const Error& error) {
        if (std::string(error.what()) == "this machine cannot.") ++told;
        if (communicator.IsFirst()) {
          EXPECT_THROW(trainer.SaveState(), Error);
        }
      }
    });
    // Whether the budget admits something is asked of rank 0, after the second step at the
    // earliest.
    EXPECT_EQ(told, in_the_budget ? 1 : 0);
    EXPECT_EQ(charges, in_the_budget ? 2 : PlanOf(run).steps());
  }
}

}  // namespace
}  // namespace sordino
