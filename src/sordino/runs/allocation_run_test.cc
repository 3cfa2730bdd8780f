// Runs with random allocation: what is charged, handed back and begun again is whole epochs.
#include <ATen/Functions.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "sordino/accounting/calibration.h"
#include "sordino/accounting/failures.h"
#include "sordino/base/error.h"
#include "sordino/base/testing/test_folder.h"
#include "sordino/models/safetensors.h"
#include "sordino/runs/run_ledger.h"
#include "sordino/runs/testing/points_config.h"
#include "sordino/runs/testing/run_files.h"
#include "sordino/runs/training_run.h"
#include "sordino/training/testing/trainer_cases.h"

namespace sordino {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// A run of 40 steps in 4 epochs.
class AllocationRun : public ::testing::Test {
 protected:
  AllocationRun() {
    setenv("SORDINO_STATE", (root_ / "state").c_str(), 1);
    WritePoints(root_ / "train.csv", 400);
  }
  ~AllocationRun() override { unsetenv("SORDINO_STATE"); }

  TrainConfig Config(const std::string& name) const {
    TrainConfig config =
        PointsConfig(root_ / "train.csv", 400, "logistic", /*epsilon=*/4, root_ / name);
    config.privacy.sampling = "allocation";
    config.training.batch = 40;
    config.training.epochs = 4;
    return config;
  }
  TrainConfig WithNoise(const std::string& name) const {
    TrainConfig config = Config(name);
    config.privacy.epsilon.reset();
    config.privacy.noise = 1.25;
    return config;
  }

  // Stops the run after a step.
  class Stop : public RunObserver {
   public:
    explicit Stop(std::int64_t step) : step_(step) {}
    void OnStep(const StepReport& report) override {
      // Seen after the step that comes next.
      if (report.step == step_ - 1) raise(SIGINT);
    }

   private:
    std::int64_t step_;
  };
  static RunResult Run(PreparedRun run, std::int64_t stop_after = -1) {
    Stop observer(stop_after);
    return RunTraining(run, observer);
  }

  Event Charged(const fs::path& file) const {
    return Ledger::Open(file, {.witness = WitnessUse::kNone, .read_only = true}).Total();
  }
  std::string Flat(const fs::path& file) const {
    std::string text = ReadRunFile(file);
    for (char& c : text) {
      if (c == '\n') c = ' ';
    }
    return text;
  }
  at::Tensor Weights(const std::string& name) const {
    std::vector<at::Tensor> all;
    for (const auto& [key, value] : ReadSafetensors(root_ / name / "model.safetensors").tensors) {
      all.push_back(value.flatten());
    }
    return at::cat(all);
  }

  TestFolder root_;
};

TEST_F(AllocationRun, IsChargedEpochByEpochAndSaysHowItWasDone) {
  PreparedRun run = PrepareRun(Config("run"));
  EXPECT_EQ(run.plan.steps(), 40);
  RunObserver silent;
  const RunResult result = RunTraining(run, silent);
  EXPECT_EQ(result.steps, 40);
  EXPECT_LE(result.epsilon.upper, 4);
  EXPECT_GT(result.epsilon.upper, 3.9);
  EXPECT_EQ(Charged(root_ / "run" / kLedgerFile), run.plan.event());
  EXPECT_EQ(run.plan.event().TotalCount(), 4U);
  EXPECT_EQ(ReadRunFile(root_ / "run" / "event.txt"), run.plan.event().ToString() + "\n");
  const std::string statement = Flat(root_ / "run" / "statement.txt");
  EXPECT_THAT(statement, HasSubstr("one of 10 batches an epoch (expected batch 40)"));
  EXPECT_THAT(statement, HasSubstr("each record was in exactly one batch"));
  EXPECT_THAT(statement, HasSubstr("Nobody learns which records were in which batch"));
}

TEST_F(AllocationRun, AnEpochThatWasBegunCountsWholeAndTheOthersAreHandedBack) {
  PreparedRun run = PrepareRun(WithNoise("run"));
  const Event two = run.plan.EventOf(20);
  const double epsilon = run.plan.Epsilon(20).upper;
  const RunResult stopped = Run(std::move(run), 17);
  EXPECT_EQ(stopped.steps, 17);
  EXPECT_EQ(Charged(root_ / "run" / kLedgerFile), two);
  EXPECT_EQ(stopped.epsilon.upper, epsilon);
  EXPECT_EQ(ReadRunFile(root_ / "run" / "event.txt"), two.ToString() + "\n");
}

TEST_F(AllocationRun, ARunThatGoesOnInsideAnEpochPaysForANewOne) {
  Run(PrepareRun(WithNoise("run")), 17);
  PreparedRun again = PrepareResume(root_ / "run");
  const Event epoch = again.plan.StepEvent(0);
  const RunResult result = Run(std::move(again));
  EXPECT_EQ(result.steps, 40);
  EXPECT_EQ(result.facts.lost_steps, 3);
  EXPECT_EQ(Charged(root_ / "run" / kLedgerFile), Event::Repeat(epoch, 5));
  EXPECT_EQ(ReadRunFile(root_ / "run" / "event.txt"), Event::Repeat(epoch, 5).ToString() + "\n");
  EXPECT_GE(result.epsilon.upper, SpentEpsilon(Event::Repeat(epoch, 5), Delta(1e-5)).lower);
  EXPECT_THAT(Flat(root_ / "run" / "statement.txt"),
              HasSubstr("3 steps that had been charged are not part of the run"));
}

TEST_F(AllocationRun, ARunThatGoesOnBetweenEpochsPaysForNothingTwice) {
  const RunResult stopped = Run(PrepareRun(WithNoise("run")), 20);
  ASSERT_EQ(stopped.steps, 20);
  EXPECT_EQ(Charged(root_ / "run" / kLedgerFile).TotalCount(), 2U);
  const RunResult result = Run(PrepareResume(root_ / "run"));
  EXPECT_EQ(result.steps, 40);
  EXPECT_EQ(result.facts.lost_steps, 0);
  EXPECT_EQ(Charged(root_ / "run" / kLedgerFile).TotalCount(), 4U);
}

// The epoch that is paid for twice is missing at the end.
TEST_F(AllocationRun, TheBudgetEndsARunAtTheEndOfAnEpoch) {
  TrainConfig config = WithNoise("run");
  const double all = PrepareRun(config).plan.Epsilon(40).upper;
  const fs::path file = root_ / "shared.db";
  Ledger::Create(file, {.epsilon = Epsilon(1.0001 * all), .delta = Delta(1e-5)});
  config.run.ledger = file.string();
  Run(PrepareRun(config), 17);
  const RunResult result = Run(PrepareResume(root_ / "run"));
  EXPECT_EQ(result.steps, 30);
  EXPECT_TRUE(result.stopped_by_ledger);
  EXPECT_EQ(Charged(file).TotalCount(), 4U);
}

TEST_F(AllocationRun, ACrashInsideAnEpochIsChargedAgain) {
  TrainConfig config = WithNoise("run");
  config.run.checkpoint_every = 4;
  Run(PrepareRun(config), 17);
  fs::remove_all(root_ / "run" / "checkpoints" / "step-000000017");
  const RunResult result = Run(PrepareResume(root_ / "run"));
  EXPECT_EQ(result.steps, 40);
  EXPECT_EQ(result.facts.lost_steps, 4);  // 16 of 20
  EXPECT_EQ(Charged(root_ / "run" / kLedgerFile).TotalCount(), 5U);
}

TEST_F(AllocationRun, AnInterruptedSeededRunEqualsTheUninterruptedOneBitForBit) {
  TrainConfig whole = WithNoise("whole");
  whole.run.insecure_seed = 7;
  Run(PrepareRun(whole));
  TrainConfig parts = WithNoise("parts");
  parts.run.insecure_seed = 7;
  Run(PrepareRun(parts), 17);
  EXPECT_FALSE(Weights("parts").equal(Weights("whole")));
  Run(PrepareResume(root_ / "parts"));
  EXPECT_TRUE(Weights("parts").equal(Weights("whole")));
}

TEST_F(AllocationRun, ANamedLedgerAdmitsWholeEpochs) {
  TrainConfig config = WithNoise("run");
  config.training.batch = 200;  // two batches an epoch
  config.training.epochs = 8;
  const double all = PrepareRun(config).plan.Epsilon(16).upper;
  const fs::path file = root_ / "shared.db";
  Ledger::Create(file, {.epsilon = Epsilon(0.95 * all), .delta = Delta(1e-5)});
  config.run.ledger = file.string();
  const RunResult result = Run(PrepareRun(config));
  EXPECT_EQ(result.steps % 2, 0);
  EXPECT_GT(result.steps, 0);
  EXPECT_LT(result.steps, 16);
  EXPECT_TRUE(result.stopped_by_ledger);
  EXPECT_EQ(Charged(file).TotalCount(), static_cast<std::uint64_t>(result.steps / 2));
}

TEST(AllocationConfig, AnEpochIsAWholeNumberOfSteps) {
  TrainConfig config;
  config.data.source = "mnist";
  config.model.name = "cnn-mnist";
  config.privacy.epsilon = 3;
  config.privacy.sampling = "allocation";
  config.training.batch = 256;
  config.training.epochs = 2;
  DatasetDeclaration data;
  data.records = 60'000;
  const TrainConfig completed = Completed(config, data);
  EXPECT_EQ(completed.training.steps, 468);
  EXPECT_EQ(completed.training.batch, 60'000.0 / 234);
  EXPECT_EQ(completed.privacy.rate, 1.0 / 234);
  EXPECT_EQ(completed.run.evaluate_every, 234);
  const TrainConfig twice = Completed(completed, data);
  EXPECT_EQ(twice.training.batch, completed.training.batch);
  EXPECT_EQ(twice.training.steps, completed.training.steps);
  const PrivacyPlan plan(PlanOptionsOf(completed, data), NoiseMultiplier(1), Delta(1e-5));
  EXPECT_EQ(plan.event().ToString(), "add-remove: 2*allocation(234, gaussian(1))");
  config.training.batch.reset();
  config.privacy.rate = 0.01;
  EXPECT_EQ(Completed(config, data).training.steps, 200);
}

}  // namespace
}  // namespace sordino
