// Whole runs on several ranks, which are threads here (distributed/testing/threads_communicator.h).
#include "sordino/runs/distributed_run.h"

#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/base/testing/test_folder.h"
#include "sordino/distributed/testing/threads_communicator.h"
#include "sordino/ledger/ledger.h"
#include "sordino/runs/run_ledger.h"
#include "sordino/runs/testing/points_config.h"
#include "sordino/runs/testing/run_files.h"
#include "sordino/training/testing/trainer_cases.h"

namespace sordino {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class StopsAfter : public RunObserver {
 public:
  explicit StopsAfter(std::int64_t step) : step_(step) {}
  void OnStep(const StepReport& report) override {
    // Asked for while the step before is told, seen after this one.
    if (report.step == step_ - 1) raise(SIGINT);
  }

 private:
  std::int64_t step_;
};

class DistributedRuns : public ::testing::Test {
 protected:
  DistributedRuns() {
    setenv("SORDINO_STATE", (root_ / "state").c_str(), 1);
    WritePoints(root_ / "train.csv", 400);
    WritePoints(root_ / "test.csv", 50);
  }
  ~DistributedRuns() override {
    unsetenv("SORDINO_STATE");
    at::set_num_threads(threads_);
  }

  TrainConfig Config(const std::string& name) const {
    TrainConfig config = PointsConfig(root_ / "train.csv", 400, "mlp", /*epsilon=*/4, root_ / name);
    config.data.test = (root_ / "test.csv").string();
    config.training.batch = 60;
    config.training.steps = 20;
    config.training.optimizer = "adam";
    config.training.learning_rate = 0.05;
    config.training.average_decay = 0.9;
    config.run.evaluate_every = 10;
    return config;
  }
  TrainConfig Seeded(const std::string& name) const {
    TrainConfig config = Config(name);
    config.run.insecure_seed = 7;
    return config;
  }

  // `elsewhere` changes what the other ranks have prepared.
  RunResult TrainOn(int ranks, const std::function<PreparedRun()>& prepare, RunObserver& observer,
                    const std::function<void(PreparedRun&)>& elsewhere = {}) {
    RunResult result;
    RunRanks(ranks, [&](Communicator& communicator) {
      if (communicator.IsFirst()) {
        PreparedRun run = prepare();
        ShareRun(run, communicator);
        result = RunTraining(run, observer);
      } else {
        PreparedRun run = ReceiveRun(communicator);
        if (elsewhere) elsewhere(run);
        ServeTraining(run);
      }
    });
    return result;
  }
  RunResult TrainOn(int ranks, const TrainConfig& config) {
    RunObserver silent;
    return TrainOn(
        ranks, [&] { return PrepareRun(config); }, silent);
  }
  std::uint64_t Charged(const fs::path& file) const {
    return Ledger::Open(file, {.has_witness = false, .read_only = true})
        .filter()
        .Total()
        .TotalCount();
  }
  // What every rank is told.
  std::vector<std::string> Refusals(const TrainConfig& config) {
    std::vector<std::string> told(2);
    RunRanks(2, [&](Communicator& communicator) {
      try {
        if (!communicator.IsFirst()) {
          ReceiveRun(communicator);
          return;
        }
        std::optional<PreparedRun> run;
        try {
          run.emplace(PrepareRun(config));
        } catch (const Error& error) {
          ShareRefusal(error.what(), communicator);
          throw;
        }
        ShareRun(*run, communicator);
      } catch (const Error& error) {
        told[static_cast<std::size_t>(communicator.Rank())] = error.what();
      }
    });
    return told;
  }

  const TestFolder root_;
  const int threads_ = at::get_num_threads();
};

TEST_F(DistributedRuns, ReleaseTheSameFileOnAnyNumberOfRanks) {
  TrainOn(1, Seeded("one"));
  const std::string wanted = ReadRunFile(root_ / "one" / "model.safetensors");
  for (const int ranks : {2, 5}) {
    const std::string name = std::to_string(ranks);
    const RunResult result = TrainOn(ranks, Seeded(name));
    EXPECT_EQ(result.steps, 20);
    EXPECT_TRUE(result.test_accuracy.has_value());
    EXPECT_EQ(ReadRunFile(root_ / name / "model.safetensors"), wanted);
    EXPECT_EQ(Charged(root_ / name / "ledger.db"), 20U);
  }
}

TEST_F(DistributedRuns, GoOnWithAnotherNumberOfRanks) {
  TrainOn(2, Seeded("whole"));
  StopsAfter stop(9);
  const RunResult first = TrainOn(
      2, [&] { return PrepareRun(Seeded("parts")); }, stop);
  EXPECT_TRUE(first.interrupted);
  EXPECT_EQ(first.steps, 9);
  RunObserver silent;
  const RunResult last = TrainOn(
      3, [&] { return PrepareResume(root_ / "parts"); }, silent);
  EXPECT_EQ(last.steps, 20);
  EXPECT_EQ(last.facts.lost_steps, 0);
  EXPECT_EQ(WeightsOfRun(root_ / "parts"), WeightsOfRun(root_ / "whole"));
  EXPECT_EQ(Charged(root_ / "parts" / "ledger.db"), 20U);
}

TEST_F(DistributedRuns, ArePrivateAndNeverTheSame) {
  const RunResult result = TrainOn(3, Config("one"));
  EXPECT_TRUE(result.is_private);
  EXPECT_LE(result.epsilon.upper, 4);
  EXPECT_EQ(Charged(root_ / "one" / "ledger.db"), 20U);
  TrainOn(3, Config("two"));
  EXPECT_NE(WeightsOfRun(root_ / "one"), WeightsOfRun(root_ / "two"));
}

// The ledger admits a part of the plan: all ranks end there, and the model of it is kept.
TEST_F(DistributedRuns, EndWhereTheLedgerRefuses) {
  const fs::path file = root_ / "shared.db";
  Ledger::Create(file, {.epsilon = Epsilon(3), .delta = Delta(1e-5)});
  TrainConfig config = Config("run");
  config.run.ledger = file.string();
  const RunResult result = TrainOn(2, config);
  EXPECT_TRUE(result.stopped_by_ledger);
  EXPECT_GT(result.steps, 0);
  EXPECT_LT(result.steps, 20);
  EXPECT_EQ(Charged(file), static_cast<std::uint64_t>(result.steps));
}

TEST_F(DistributedRuns, OnOtherDataAreRefusedBeforeAnythingIsCharged) {
  WritePoints(root_ / "other.csv", 399);
  const TrainConfig config = Config("run");
  RunObserver silent;
  try {
    TrainOn(
        3, [&] { return PrepareRun(config); }, silent,
        [&](PreparedRun& run) {
          if (run.communicator->Rank() == 2) {
            run.config.data.source = (root_ / "other.csv").string();
          }
        });
    ADD_FAILURE() << "nothing was refused";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("rank 2 has other data than rank 0"));
  }
  EXPECT_FALSE(fs::exists(root_ / "run"));
}

TEST_F(DistributedRuns, WithoutPrivacySayThatTheyAreNotPrivate) {
  TrainConfig config = Config("run");
  config.run.non_private = true;
  config.privacy.epsilon.reset();
  const RunResult result = TrainOn(2, config);
  EXPECT_FALSE(result.is_private);
  EXPECT_EQ(result.steps, 20);
  EXPECT_GT(result.test_accuracy.value_or(0), 0.9);
  EXPECT_THAT(ReadRunFile(root_ / "run/statement.txt"), HasSubstr("NOT PRIVATE"));
  EXPECT_EQ(ReadRunFile(root_ / "run/event.txt"), "NOT PRIVATE\n");
  EXPECT_FALSE(fs::exists(root_ / "run" / kLedgerFile));
}

TEST_F(DistributedRuns, OfWhatCannotBeSharedAreRefusedOnEveryRank) {
  const auto expect = [&](const char* what, const auto& change) {
    TrainConfig config = Config("run");
    change(config);
    for (const std::string& told : Refusals(config)) EXPECT_THAT(told, HasSubstr(what));
    EXPECT_FALSE(fs::exists(root_ / "run"));
  };
  expect("canaries", [](TrainConfig& config) { config.run.canaries = 8; });
  expect("held-out records",
         [](TrainConfig& config) { config.privacy.noise_schedule = "adaptive"; });
  expect("'jl'", [](TrainConfig& config) { config.training.norms = "jl"; });
  expect("'adaclip'", [](TrainConfig& config) { config.privacy.clipping = "adaclip"; });
}

}  // namespace
}  // namespace sordino
