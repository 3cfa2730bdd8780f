// Training without privacy on several ranks.
#include "sordino/training/internal/ordinary_gradients.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/gradients/fixed_point_sum.h"
#include "sordino/training/testing/distributed_cases.h"

namespace sordino {
namespace {

using ::testing::HasSubstr;

RunCase OrdinaryCase() {
  RunCase run{.name = "Ordinary", .plan = PoissonPlan(600, 200, 4)};
  run.optimizer = {.algorithm = {"sgd", {{"momentum", 0.9}}}, .learning_rate = 0.3};
  return run;
}

Trainer OrdinaryTrainer(const RunCase& run, const Net& net, const Dataset& data,
                        Communicator* communicator) {
  return Trainer::NonPrivate(PlanOf(run), net.parameters, net.loss, data, run.optimizer,
                             OptionsOf(run, communicator));
}

// As RunOn, without privacy; the weights of rank 0, which all ranks have.
at::Tensor RunOrdinary(int ranks, const RunCase& run, const Dataset& data,
                       const std::function<void(Trainer&)>& lead) {
  const OneThread one_thread;
  std::vector<at::Tensor> weights(static_cast<std::size_t>(ranks));
  RunRanks(ranks, [&](Communicator& communicator) {
    const Net net(communicator.IsFirst() ? 7 : 8);
    {
      Trainer trainer = OrdinaryTrainer(run, net, data, &communicator);
      EXPECT_FALSE(trainer.is_private());
      if (communicator.IsFirst()) {
        lead(trainer);
      } else {
        trainer.Serve();
      }
    }
    weights[static_cast<std::size_t>(communicator.Rank())] = net.Flat();
  });
  for (const at::Tensor& other : weights) EXPECT_TRUE(at::equal(other, weights.front()));
  return weights.front();
}

void ExpectClose(const at::Tensor& weights, const at::Tensor& wanted) {
  const double moved = (wanted - Net().Flat()).norm().item<double>();
  EXPECT_GT(moved, 0.01);
  EXPECT_LT((weights - wanted).norm().item<double>(), 1e-5 * moved);
}

TEST(OrdinaryRanks, MakeTheStepsOfOneProcess) {
  const Dataset data = RandomFeatures(600, kFeatures, 3);
  RunCase run = OrdinaryCase();
  const Net net;
  OrdinaryTrainer(run, net, data, nullptr).Run();
  for (const int ranks : {1, 2, 3, 16}) {
    for (const std::int64_t physical_batch : {0, 7}) {
      run.physical_batch = physical_batch;
      ExpectClose(RunOrdinary(ranks, run, data, [](Trainer& trainer) { trainer.Run(); }),
                  net.Flat());
    }
  }
}

TEST(OrdinaryRanks, GoOnFromEachOthersStates) {
  const Dataset data = RandomFeatures(600, kFeatures, 3);
  const RunCase run = OrdinaryCase();
  NamedTensors saved;
  const at::Tensor wanted = RunOrdinary(2, run, data, [&](Trainer& trainer) {
    trainer.Step();
    trainer.Step();
    saved = trainer.SaveState();
    trainer.Run();
  });
  ExpectClose(RunOrdinary(3, run, data,
                          [&](Trainer& trainer) {
                            trainer.RestoreState(saved, 2);
                            trainer.Run();
                          }),
              wanted);
  const Net net;
  Trainer alone = OrdinaryTrainer(run, net, data, nullptr);
  alone.RestoreState(saved, 2);
  alone.Run();
  ExpectClose(net.Flat(), wanted);
}

// Half of the batches have nobody, and others fewer than there are ranks: steps are counted, and
// updates are those of one process.
TEST(OrdinaryRanks, MakeNoUpdateOfAnEmptyBatch) {
  const Dataset data = RandomFeatures(600, kFeatures, 3);
  RunCase run = OrdinaryCase();
  run.plan = PoissonPlan(600, 0.7, 30);
  const Net net;
  Trainer alone = OrdinaryTrainer(run, net, data, nullptr);
  alone.Run();
  const std::int64_t updates = alone.optimizer().steps_done();
  EXPECT_LT(updates, 30);
  EXPECT_GT(updates, 0);
  NamedTensors saved;
  const at::Tensor weights = RunOrdinary(3, run, data, [&](Trainer& trainer) {
    trainer.Run();
    EXPECT_EQ(trainer.steps_done(), 30);
    EXPECT_EQ(trainer.optimizer().steps_done(), updates);
    saved = trainer.SaveState();
  });
  ExpectClose(weights, net.Flat());
  RunOrdinary(2, run, data, [&](Trainer& trainer) { trainer.RestoreState(saved, 30); });
}

TEST(OrdinaryRanks, TellNobodyOfACharge) {
  const Dataset data = RandomFeatures(600, kFeatures, 3);
  const RunCase run = OrdinaryCase();
  RunRanks(2, [&](Communicator& communicator) {
    const Net net;
    TrainerOptions options = OptionsOf(run, &communicator);
    options.charge = [](std::int64_t, const Event&) { FAIL() << "a step was charged"; };
    Trainer trainer =
        Trainer::NonPrivate(PlanOf(run), net.parameters, net.loss, data, run.optimizer, options);
    if (!communicator.IsFirst()) return trainer.Serve();
    trainer.Run();
  });
}

TEST(ShardOfSum, AddsUpAllRanksExactly) {
  for (const double scale : {1e-40, 1.0, 1e30}) {
    RunRanks(3, [&](Communicator& communicator) {
      const auto rank = static_cast<double>(communicator.Rank());
      // Values that float32 cannot add up: what is left of them is the smallest one.
      const at::Tensor own = at::full({2, 100}, scale * (rank == 0 ? 1 : rank == 1 ? -1 : 0x1p-30));
      const at::Tensor shard = ShardOfSum({own, at::zeros({3})}, communicator);
      ASSERT_EQ(shard.numel(), ShardSize(203, 3));
      EXPECT_EQ(shard.scalar_type(), at::kFloat);
      const at::Tensor wanted = at::full({1}, scale * 0x1p-30);
      const std::int64_t begin = communicator.Rank() * shard.numel();
      for (std::int64_t i = 0; i < shard.numel(); ++i) {
        const double value = begin + i < 200 ? wanted.item<double>() : 0;
        EXPECT_NEAR(shard[i].item<double>(), value, 1e-6 * value);
      }
    });
  }
}

TEST(ShardOfSum, OfWhatIsNotFiniteIsRefusedOnEveryRank) {
  for (const double bad :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    RunRanks(2, [&](Communicator& communicator) {
      const at::Tensor own = at::full({5}, communicator.IsFirst() ? 1 : bad);
      EXPECT_THAT([&] { ShardOfSum({own}, communicator); },
                  ::testing::ThrowsMessage<Error>(HasSubstr("not finite")));
    });
  }
}

}  // namespace
}  // namespace sordino
