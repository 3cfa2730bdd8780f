// A real rank of a real training is killed at each of the twelve phases of a step.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "sordino/base/testing/test_folder.h"
#include "sordino/distributed/communicator.h"
#include "sordino/distributed/process_group.h"
#include "sordino/distributed/testing/rank_processes.h"
#include "sordino/ledger/ledger.h"
#include "sordino/runs/checkpoint.h"
#include "sordino/runs/distributed_run.h"
#include "sordino/runs/testing/points_config.h"
#include "sordino/runs/testing/run_files.h"
#include "sordino/runs/train_settings.h"
#include "sordino/runs/training_run.h"
#include "sordino/torch_cli/testing/killed_phase.h"
#include "sordino/torch_cli/testing/points_table.h"

namespace sordino {
namespace {

namespace fs = std::filesystem;

constexpr int kStep = 3;  // in which it is killed: three steps were made
constexpr std::int64_t kSteps = 6;

class KilledRanks : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (!HasProcessGroups()) GTEST_SKIP() << "this libtorch has no process groups";
    setenv("SORDINO_STATE", (root_ / "state").c_str(), 1);
    std::ofstream(root_ / "train.csv") << PointsTable(200);
  }
  void TearDown() override { unsetenv("SORDINO_STATE"); }

  TrainConfig Config(const std::string& name) const {
    TrainConfig config = PointsConfig(root_ / "train.csv", 200, "mlp", /*epsilon=*/8, root_ / name);
    config.model.width = 8;
    config.privacy.clipping = "adaptive";  // it has counts
    config.training.batch = 40;
    config.training.steps = kSteps;
    config.training.threads = 1;
    config.run.checkpoint_every = 1;
    config.run.insecure_seed = 5;
    return config;
  }
  static RunResult TrainAlone(PreparedRun run) {
    const auto alone = SingleProcess();
    ShareRun(run, *alone);
    RunObserver silent;
    return RunTraining(run, silent);
  }
  std::int64_t Charged(const std::string& name) const {
    return static_cast<std::int64_t>(
        Ledger::Open(root_ / name / "ledger.db", {.witness = WitnessUse::kNone, .read_only = true})
            .Total()
            .TotalCount());
  }

  const TestFolder root_;
};

// Both ranks die before one half of the operations and after the other half.
TEST_P(KilledRanks, LeaveARunThatWasChargedForWhatItReleasedAndResumes) {
  const int phase = GetParam();
  const int operation = phase / 2;
  const int victim = (operation + phase % 2) % 2;
  const fs::path file = root_ / "killed.toml";
  std::ofstream(file) << WriteTrainConfig(Config("killed"));
  TestProcess parent({SORDINO_KILLED_RANK, "2", file.string(), (root_ / "killed").string(),
                      std::to_string(victim), std::to_string(kStep), std::to_string(phase)},
                     {}, root_ / "output");
  const ProcessEnd end = parent.Wait();
  EXPECT_EQ(end.code, 4) << end.err;
  EXPECT_FALSE(fs::exists(root_ / "killed" / "model.safetensors"));

  const std::int64_t charged = Charged("killed");
  const std::optional<Checkpoint> newest =
      ReadNewestCheckpoint(root_ / "killed" / kCheckpointFolder);
  ASSERT_TRUE(newest);
  // No rank has the weights of the step in hand, and whoever may have drawn its noise has seen that
  // it was charged.
  EXPECT_LE(newest->facts.step, kStep);
  EXPECT_GE(charged, operation >= kAnnounceCharge ? kStep + 1 : newest->facts.step);

  const RunResult resumed = TrainAlone(PrepareResume(root_ / "killed"));
  EXPECT_EQ(resumed.steps, kSteps);
  EXPECT_EQ(resumed.facts.lost_steps, charged - newest->facts.step);
  EXPECT_EQ(Charged("killed"), kSteps + resumed.facts.lost_steps);
  TrainAlone(PrepareRun(Config("whole")));
  EXPECT_EQ(WeightsOfRun(root_ / "killed"), WeightsOfRun(root_ / "whole"));
}

INSTANTIATE_TEST_SUITE_P(Phases, KilledRanks, ::testing::Range(0, kStepPhases));

}  // namespace
}  // namespace sordino
