// What several ranks charge, and how they stop.
#include <ATen/Functions.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/training/testing/distributed_cases.h"
#include "sordino/training/trainer.h"

namespace sordino {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::ThrowsMessage;

// A communicator whose rank goes at one of its operations.
class Failing : public Communicator {
 public:
  Failing(Communicator& inner, int operations) : inner_(inner), left_(operations) {}
  int Rank() const override { return inner_.Rank(); }
  int Size() const override { return inner_.Size(); }
  void AllReduceSum(at::Tensor& values) override {
    Count();
    inner_.AllReduceSum(values);
  }
  void ReduceScatterSum(const at::Tensor& values, at::Tensor& shard) override {
    Count();
    inner_.ReduceScatterSum(values, shard);
  }
  void AllGather(const at::Tensor& shard, at::Tensor& all) override {
    Count();
    inner_.AllGather(shard, all);
  }
  std::string Broadcast(const std::string& bytes) override {
    Count();
    return inner_.Broadcast(bytes);
  }
  std::vector<std::string> AllGatherBytes(const std::string& bytes) override {
    Count();
    return inner_.AllGatherBytes(bytes);
  }
  void Barrier() override {
    Count();
    inner_.Barrier();
  }
  bool has_failed() const { return has_failed_; }

 private:
  void Count() {
    if (left_-- == 0 || has_failed_) {
      has_failed_ = true;
      throw CommunicationError("the network is down.");
    }
  }
  Communicator& inner_;
  int left_;
  bool has_failed_ = false;
};

class DistributedCharges : public testing::TestWithParam<const char*> {};

// Whichever rank goes, at whichever operation of three steps: no rank has weights of a step that
// was not charged, and no step is charged twice.
TEST_P(DistributedCharges, ComeBeforeEveryRelease) {
  const OneThread one_thread;
  constexpr int kRanks = 3;
  RunCase run = CaseOf(GetParam());
  run.plan.steps = 3;
  const Dataset data = RandomFeatures(600, kFeatures, 3);
  std::vector<at::Tensor> after;  // the weights after each number of steps
  for (std::int64_t steps = 0; steps <= 3; ++steps) {
    after.push_back(RunOn(1, run, data, [&](Trainer& trainer) {
                      for (std::int64_t i = 0; i < steps; ++i) trainer.Step();
                    }).front());
  }
  int failures = 0;
  for (int failing = 0; failing < kRanks; ++failing) {
    for (int operation = 0;; ++operation) {
      std::vector<std::int64_t> charged;
      std::vector<at::Tensor> weights(kRanks);
      bool has_failed = false;
      std::mutex mutex;
      try {
        RunRanks(kRanks, [&](Communicator& inner) {
          const Net net;
          TakesTurns turns(inner, run.ComputesAlone());
          Failing communicator(turns, inner.Rank() == failing ? operation : 1'000'000);
          const auto keep = [&] {
            const std::lock_guard lock(mutex);
            weights[static_cast<std::size_t>(inner.Rank())] = net.Flat();
            has_failed = has_failed || communicator.has_failed();
          };
          try {
            TrainerOptions options = OptionsOf(run, &communicator, net);
            options.charge = [&](std::int64_t step, const Event&) { charged.push_back(step); };
            Trainer trainer(PlanOf(run), net.parameters, net.loss, data, run.optimizer, options);
            if (communicator.IsFirst()) {
              trainer.Run();
            } else {
              trainer.Serve();
            }
          } catch (...) {
            keep();
            throw;
          }
          keep();
        });
      } catch (const CommunicationError&) {
      }
      for (std::size_t i = 0; i < charged.size(); ++i) {
        EXPECT_EQ(charged[i], static_cast<std::int64_t>(i));
      }
      for (const at::Tensor& own : weights) {
        std::size_t steps = 0;
        while (steps < after.size() && !at::equal(own, after[steps])) ++steps;
        EXPECT_LE(steps, charged.size()) << "rank " << failing << ", operation " << operation;
      }
      if (!has_failed) break;  // there are no more operations
      ++failures;
    }
  }
  EXPECT_GE(failures, 3 * (2 + 3 * 5));  // the start, and five operations a step
}

INSTANTIATE_TEST_SUITE_P(Cases, DistributedCharges,
                         testing::Values("AdaptiveAdam", "EstimatedNorms", "AdaClip", "HeldOut",
                                         "Canaries", "CanaryRecords"),
                         [](const auto& tested) { return std::string(tested.param); });

TEST(DistributedCharge, ThatIsRefusedReleasesNothing) {
  const OneThread one_thread;
  const RunCase run = RunCases().front();
  const Dataset data = RandomFeatures(600, kFeatures, 3);
  const at::Tensor wanted = RunOn(1, run, data, [](Trainer& trainer) { trainer.Step(); }).front();
  std::atomic<int> same = 0;
  RunRanks(4, [&](Communicator& communicator) {
    const Net net;
    TrainerOptions options = OptionsOf(run, &communicator);
    options.charge = [](std::int64_t step, const Event&) {
      if (step == 1) throw Error("the budget is spent.");
    };
    Trainer trainer(PlanOf(run), net.parameters, net.loss, data, run.optimizer, options);
    if (communicator.IsFirst()) {
      trainer.Step();
      EXPECT_THAT([&] { trainer.Step(); }, ThrowsMessage<Error>("the budget is spent."));
      EXPECT_EQ(trainer.steps_done(), 1);
      EXPECT_THROW(trainer.Step(), Error);
    } else {
      trainer.Serve();
    }
    if (at::equal(net.Flat(), wanted)) ++same;
  });
  EXPECT_EQ(same, 4);
}

// An epoch of an allocation is charged when it begins, and once.
TEST(DistributedCharge, IsThatOfOneProcess) {
  RunCase run = RunCases().front();
  run.plan.sampling = "allocation";
  run.plan.steps = 7;
  const Dataset data = RandomFeatures(600, kFeatures, 3);
  const auto charges = [&](Communicator* communicator) {
    std::vector<std::string> events;
    const Net net;
    TrainerOptions options = OptionsOf(run, communicator);
    options.charge = [&](std::int64_t step, const Event& event) {
      events.push_back(std::to_string(step) + " " + event.ToString());
    };
    Trainer trainer(PlanOf(run), net.parameters, net.loss, data, run.optimizer, options);
    if (communicator == nullptr || communicator->IsFirst()) {
      trainer.Run();
    } else {
      trainer.Serve();
    }
    return events;
  };
  const std::vector<std::string> wanted = charges(nullptr);
  ASSERT_EQ(wanted.size(), 7U);
  RunRanks(2, [&](Communicator& communicator) {
    const std::vector<std::string> events = charges(&communicator);
    if (communicator.IsFirst()) {
      EXPECT_EQ(events, wanted);
    } else {
      EXPECT_TRUE(events.empty());
    }
  });
}

TEST(DistributedStep, StopsAllRanksWithTheSentenceOfTheOneThatCannot) {
  const RunCase run = RunCases().front();
  const Dataset data = RandomFeatures(600, kFeatures, 3);
  std::atomic<int> told = 0;
  std::atomic<int> charges = 0;
  RunRanks(3, [&](Communicator& communicator) {
    const Net net;
    TrainerOptions options = OptionsOf(run, &communicator);
    options.charge = [&](std::int64_t, const Event&) { ++charges; };
    const LossFunction loss = [&](const Batch& batch) {
      if (communicator.Rank() == 1) throw Error("this machine has no such operation.");
      return net.loss(batch);
    };
    Trainer trainer(PlanOf(run), net.parameters, loss, data, run.optimizer, options);
    try {
      if (communicator.IsFirst()) {
        trainer.Step();
      } else {
        trainer.Serve();
      }
    } catch (const Error& error) {
      if (std::string(error.what()) == "this machine has no such operation.") ++told;
    }
    EXPECT_TRUE(at::equal(net.Flat(), Net().Flat()));
  });
  EXPECT_EQ(told, 3);
  EXPECT_EQ(charges, 0);
}

// Numbers in what a model throws may come from private data: they do not leave the rank.
TEST(DistributedStep, TellsNoNumberThatAModelSaid) {
  const RunCase run = RunCases().front();
  const Dataset data = RandomFeatures(600, kFeatures, 3);
  std::atomic<int> told = 0;
  RunRanks(3, [&](Communicator& communicator) {
    const Net net;
    const LossFunction loss = [&](const Batch& batch) {
      if (communicator.Rank() == 1) throw std::runtime_error("value 7391 at frame #0\nframe #1");
      return net.loss(batch);
    };
    Trainer trainer(PlanOf(run), net.parameters, loss, data, run.optimizer,
                    OptionsOf(run, &communicator));
    try {
      if (communicator.IsFirst()) {
        trainer.Step();
      } else {
        trainer.Serve();
      }
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), AllOf(Not(HasSubstr("7391")), Not(HasSubstr("\n"))));
      ++told;
    }
  });
  EXPECT_EQ(told, 3);
}

// One sentence, on every rank, before anything is charged. One process does with 4.
TEST(DistributedTrainer, RefusesTooFewDirectionsForItsGrid) {
  const Dataset data = RandomFeatures(600, kFeatures, 3);
  const RunCase run = [] {
    RunCase estimated = RunCases().front();
    estimated.plan.norms = {"jl", {{"jl-directions", std::int64_t{4}}, {"jl-failure", 1e-9}}};
    return estimated;
  }();
  const Net net;
  Trainer alone(PlanOf(run), net.parameters, net.loss, data, run.optimizer,
                OptionsOf(run, nullptr));
  EXPECT_NO_THROW(alone.Step());
  std::atomic<int> told = 0;
  RunRanks(2, [&](Communicator& communicator) {
    const Net own;
    TrainerOptions options = OptionsOf(run, &communicator);
    options.charge = [](std::int64_t, const Event&) { ADD_FAILURE() << "a charge"; };
    try {
      const Trainer trainer(PlanOf(run), own.parameters, own.loss, data, run.optimizer, options);
      ADD_FAILURE() << "nothing was refused";
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), AllOf(HasSubstr("4 directions"), HasSubstr("use more")));
      ++told;
    }
  });
  EXPECT_EQ(told, 2);
}

TEST(DistributedTrainer, RefusesParametersOfSeveralTypes) {
  const Dataset data = RandomFeatures(600, kFeatures, 3);
  const RunCase run = RunCases().front();
  const auto alone = SingleProcess();
  Net net;
  net.parameters.push_back({"wide", at::zeros({3}, at::kDouble).set_requires_grad(true)});
  EXPECT_THAT(
      [&] {
        Trainer(PlanOf(run), net.parameters, net.loss, data, run.optimizer,
                OptionsOf(run, alone.get()));
      },
      ThrowsMessage<Error>(HasSubstr("'wide'")));
  EXPECT_THAT(
      [&] {
        Trainer::NonPrivate(PlanOf(run), net.parameters, net.loss, data, run.optimizer,
                            OptionsOf(run, alone.get()));
      },
      ThrowsMessage<Error>(HasSubstr("'wide'")));
}

}  // namespace
}  // namespace sordino
