#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/base/testing/test_folder.h"
#include "sordino/ledger/ledger.h"
#include "sordino/models/safetensors.h"
#include "sordino/runs/testing/points_config.h"
#include "sordino/runs/testing/run_files.h"
#include "sordino/runs/train_settings.h"
#include "sordino/runs/training_run.h"
#include "sordino/training/testing/trainer_cases.h"

namespace sordino {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// Calls a function after a step.
class AfterStep : public RunObserver {
 public:
  AfterStep(std::int64_t step, std::function<void()> act) : step_(step), act_(std::move(act)) {}
  void OnStep(const StepReport& report) override {
    if (report.step == step_) act_();
  }
  void OnNotice(const std::string& sentence) override { notices.push_back(sentence); }
  std::vector<std::string> notices;

 private:
  std::int64_t step_;
  std::function<void()> act_;
};

class TrainingResume : public ::testing::Test {
 protected:
  TrainingResume() {
    setenv("SORDINO_STATE", (root_ / "state").c_str(), 1);
    WritePoints(root_ / "train.csv", 400);
  }
  ~TrainingResume() override { unsetenv("SORDINO_STATE"); }

  TrainConfig Config(const std::string& name) const {
    TrainConfig config = PointsConfig(root_ / "train.csv", 400, "mlp", /*epsilon=*/4, root_ / name);
    config.training.batch = 40;
    config.training.steps = 40;
    config.training.optimizer = "adam";
    config.training.learning_rate = 0.05;
    config.training.average_decay = 0.9;
    config.run.evaluate_every = 10;
    return config;
  }

  RunResult Train(const TrainConfig& config) {
    PreparedRun run = PrepareRun(config);
    RunObserver silent;
    return RunTraining(run, silent);
  }
  RunResult StopAfter(const TrainConfig& config, std::int64_t step) {
    PreparedRun run = PrepareRun(config);
    // Asked for while the step before is told, seen after this one.
    AfterStep stop(step - 1, [] { raise(SIGINT); });
    return RunTraining(run, stop);
  }
  RunResult Resume(const std::string& name) {
    PreparedRun run = PrepareResume(root_ / name);
    RunObserver silent;
    return RunTraining(run, silent);
  }
  fs::path MakeLedger(double epsilon) {
    fs::path file = root_ / "shared.db";
    Ledger::Create(file, {.epsilon = Epsilon(epsilon), .delta = Delta(1e-5)});
    return file;
  }
  std::uint64_t Charged(const fs::path& file) {
    return Ledger::Open(file, {.witness = WitnessUse::kNone, .read_only = true})
        .Total()
        .TotalCount();
  }
  std::string Model(const std::string& name) const {
    return ReadRunFile(root_ / name / "model.safetensors");
  }
  std::string Weights(const std::string& name) const { return WeightsOfRun(root_ / name); }

  const TestFolder root_;
};

TEST_F(TrainingResume, AnInterruptedSeededRunEqualsTheUninterruptedOneBitForBit) {
  TrainConfig whole = Config("whole");
  whole.run.insecure_seed = 7;
  Train(whole);
  TrainConfig parts = Config("parts");
  parts.run.insecure_seed = 7;
  const RunResult first = StopAfter(parts, 17);
  EXPECT_TRUE(first.interrupted);
  EXPECT_EQ(first.steps, 17);
  EXPECT_NE(Weights("parts"), Weights("whole"));
  const RunResult last = Resume("parts");
  EXPECT_EQ(last.steps, 40);
  EXPECT_EQ(last.facts.lost_steps, 0);
  // The whole file: metadata, epsilon and statement too.
  EXPECT_EQ(Model("parts"), Model("whole"));
  EXPECT_EQ(Charged(root_ / "parts" / "ledger.db"), 40U);
  EXPECT_FALSE(fs::exists(root_ / "parts" / "checkpoints"));
}

TEST_F(TrainingResume, AnOldCheckpointGoesOnBitForBitAndIsChargedAgain) {
  TrainConfig whole = Config("whole");
  whole.run.insecure_seed = 7;
  Train(whole);
  TrainConfig parts = Config("parts");
  parts.run.insecure_seed = 7;
  parts.run.checkpoint_every = 10;
  StopAfter(parts, 17);
  // As if the crash had come before this one was written.
  ASSERT_EQ(fs::remove_all(root_ / "parts" / "checkpoints" / "step-000000017"), 3U);
  const RunResult last = Resume("parts");
  EXPECT_EQ(last.steps, 40);
  EXPECT_EQ(last.facts.lost_steps, 7);
  EXPECT_EQ(Weights("parts"), Weights("whole"));
  EXPECT_EQ(Charged(root_ / "parts" / "ledger.db"), 47U);
  EXPECT_GT(last.epsilon.upper, 4);
  EXPECT_THAT(ReadRunFile(root_ / "parts" / "statement.txt"),
              HasSubstr("7 steps that had been charged"));
}

TEST_F(TrainingResume, AnOldCheckpointDoesNotTakeTheBudgetBack) {
  TrainConfig config = Config("run");
  config.run.checkpoint_every = 10;
  StopAfter(config, 17);
  fs::remove_all(root_ / "run" / "checkpoints" / "step-000000017");
  const RunResult last = Resume("run");
  // Seven steps are gone: the epsilon that was asked for is kept, and the run ends before its last.
  EXPECT_EQ(last.steps, 33);
  EXPECT_TRUE(last.stopped_by_ledger);
  EXPECT_LE(last.epsilon.upper, 4);
  EXPECT_EQ(Charged(root_ / "run" / "ledger.db"), 40U);
  EXPECT_THROW(PrepareResume(root_ / "nowhere"), Error);
  EXPECT_THAT([&] { Resume("run"); }, ThrowsMessage<Error>(HasSubstr("not admit a single step")));
}

TEST_F(TrainingResume, PrivateRunsThatGoOnDrawFreshNoise) {
  const RunResult stopped = StopAfter(Config("one"), 17);
  ASSERT_EQ(stopped.steps, 17);
  fs::copy(root_ / "one", root_ / "two", fs::copy_options::recursive);
  Resume("one");
  setenv("SORDINO_STATE", (root_ / "another machine").c_str(), 1);
  Resume("two");
  EXPECT_NE(Weights("one"), Weights("two"));
}

// Its steps would be made twice, and each statement would count them once.
TEST_F(TrainingResume, ACopyOfARunIsNotResumedAfterTheRun) {
  StopAfter(Config("one"), 17);
  fs::copy(root_ / "one", root_ / "two", fs::copy_options::recursive);
  Resume("one");
  EXPECT_THAT([&] { Resume("two"); }, ThrowsMessage<Error>(HasSubstr("older copy")));
}

TEST_F(TrainingResume, SaysWhereNobodyRemembersTheRun) {
  std::ofstream(root_ / "no folder") << "";
  setenv("SORDINO_STATE", (root_ / "no folder").c_str(), 1);
  PreparedRun run = PrepareRun(Config("one"));
  AfterStep stop(17, [] { raise(SIGINT); });
  RunTraining(run, stop);
  EXPECT_THAT(stop.notices, Contains(HasSubstr("could both be resumed")));
  PreparedRun again = PrepareResume(root_ / "one");
  AfterStep rest(0, [] {});
  RunTraining(again, rest);
  EXPECT_THAT(rest.notices, Contains(HasSubstr("could both be resumed")));
}

// A kill between the last files: the model is written last, so the run can still be resumed.
TEST_F(TrainingResume, ARunThatWasKilledWhileItWroteItsEndWritesItAgain) {
  TrainConfig config = Config("run");
  config.run.checkpoint_every = 10;
  config.run.insecure_seed = 7;
  fs::path saved = root_ / "saved";
  PreparedRun run = PrepareRun(config);
  AfterStep copy(39, [&] { fs::copy(root_ / "run", saved, fs::copy_options::recursive); });
  RunTraining(run, copy);
  fs::copy(root_ / "run" / "statement.txt", saved, fs::copy_options::overwrite_existing);
  fs::remove(saved / ".lock");
  PreparedRun again = PrepareResume(saved);
  EXPECT_EQ(again.resume->checkpoint.facts.step, 30);
  RunObserver silent;
  const RunResult result = RunTraining(again, silent);
  EXPECT_EQ(result.steps, 40);
  EXPECT_EQ(result.facts.lost_steps, 10);
  EXPECT_THAT(ReadRunFile(saved / "statement.txt"), HasSubstr("10 steps that had been charged"));
  EXPECT_EQ(Weights("saved"), Weights("run"));
}

TEST_F(TrainingResume, ThePlannedStatementOfARunThatGoesOnCountsWhatWasLost) {
  TrainConfig config = Config("run");
  config.run.checkpoint_every = 10;
  config.run.insecure_seed = 7;
  StopAfter(config, 17);
  fs::remove_all(root_ / "run" / "checkpoints" / "step-000000017");
  PreparedRun run = PrepareResume(root_ / "run");
  std::string statement;
  std::string event;
  AfterStep read(11, [&] {
    statement = ReadRunFile(root_ / "run" / "statement.txt");
    event = ReadRunFile(root_ / "run" / "event.txt");
  });
  RunTraining(run, read);
  EXPECT_THAT(statement, HasSubstr("PLANNED"));
  EXPECT_THAT(statement, HasSubstr("7 steps that had been charged"));
  EXPECT_THAT(event, HasSubstr("47*"));
}

TEST_F(TrainingResume, ARunThatEndedOrIsAnotherOneIsASentence) {
  Train(Config("ended"));
  EXPECT_THAT([&] { Resume("ended"); }, ThrowsMessage<Error>(HasSubstr("has ended")));
  EXPECT_THAT([&] { Resume("nowhere"); }, ThrowsMessage<Error>(HasSubstr("not the folder")));
  StopAfter(Config("run"), 17);
  TrainConfig changed = ReadTrainConfig(root_ / "run" / "config.toml");
  changed.training.batch = 50;
  std::ofstream(root_ / "run" / "config.toml") << WriteTrainConfig(changed);
  EXPECT_THAT([&] { Resume("run"); }, ThrowsMessage<Error>(HasSubstr("was changed")));
}

TEST_F(TrainingResume, TwoCannotGoOnWithOneRun) {
  StopAfter(Config("run"), 17);
  const PreparedRun held = PrepareResume(root_ / "run");
  EXPECT_THAT([&] { PrepareResume(root_ / "run"); }, ThrowsMessage<Error>(HasSubstr("in use")));
}

TEST_F(TrainingResume, AnOlderLedgerIsRefused) {
  TrainConfig config = Config("run");
  StopAfter(config, 10);
  fs::copy_file(root_ / "run" / "ledger.db", root_ / "old.db");
  {
    PreparedRun run = PrepareResume(root_ / "run");
    AfterStep stop(20, [] { raise(SIGINT); });
    RunTraining(run, stop);
  }
  fs::copy_file(root_ / "old.db", root_ / "run" / "ledger.db",
                fs::copy_options::overwrite_existing);
  setenv("SORDINO_STATE", (root_ / "another machine").c_str(), 1);
  EXPECT_THAT([&] { Resume("run"); }, ThrowsMessage<Error>(HasSubstr("older copy")));
}

TEST_F(TrainingResume, RunsThatShareALedgerAreChargedTogether) {
  const fs::path file = MakeLedger(8);
  TrainConfig config = Config("one");
  config.run.ledger = file.string();
  const RunResult one = Train(config);
  config.run.out = (root_ / "two").string();
  const RunResult two = Train(config);
  EXPECT_FALSE(fs::exists(root_ / "two" / "ledger.db"));
  EXPECT_EQ(Charged(file), 80U);
  EXPECT_GT(two.facts.ledger_epsilon.upper, 1.05 * two.epsilon.upper);
  EXPECT_LT(two.facts.ledger_epsilon.upper, 0.9 * (one.epsilon.upper + two.epsilon.upper));
  EXPECT_THAT(ReadRunFile(root_ / "two" / "statement.txt"), HasSubstr(two.facts.ledger_head));
}

TEST_F(TrainingResume, ALedgerThatRefusesEndsTheRunWithTheModelSoFar) {
  const fs::path file = MakeLedger(5);
  TrainConfig config = Config("one");
  config.run.ledger = file.string();
  Train(config);
  config.run.out = (root_ / "two").string();
  PreparedRun run = PrepareRun(config);
  AfterStep watch(-1, [] {});
  const RunResult two = RunTraining(run, watch);
  EXPECT_TRUE(two.stopped_by_ledger);
  EXPECT_GT(two.steps, 0);
  EXPECT_LT(two.steps, 40);
  ASSERT_EQ(watch.notices.size(), 1U);
  EXPECT_THAT(watch.notices[0],
              HasSubstr("admits " + std::to_string(two.steps) + " of the 40 steps"));
  EXPECT_EQ(Charged(file), static_cast<std::uint64_t>(40 + two.steps));
  EXPECT_TRUE(fs::exists(root_ / "two" / "model.safetensors"));
  EXPECT_THAT(ReadRunFile(root_ / "two" / "statement.txt"), HasSubstr("stopped by the ledger"));

  config.run.out = (root_ / "three").string();
  EXPECT_THAT([&] { Train(config); }, ThrowsMessage<Error>(HasSubstr("not admit a single step")));
  EXPECT_FALSE(fs::exists(root_ / "three"));
}

// Between the look at the ledger and the first charge.
TEST_F(TrainingResume, ARunThatIsLateForTheLastStepLeavesNothing) {
  const fs::path file = MakeLedger(4);
  TrainConfig config = Config("run");
  config.run.ledger = file.string();
  PreparedRun run = PrepareRun(config);
  class Late : public RunObserver {
   public:
    explicit Late(fs::path ledger) : ledger_(std::move(ledger)) {}
    void OnStart() override {
      Ledger other = Ledger::Open(ledger_);
      const Event all = Event::Pure(Epsilon(4));
      ASSERT_TRUE(
          other.BeginRun({.what = "another", .plan = all}, {.event = all}).verdict.admitted);
    }

   private:
    fs::path ledger_;
  };
  Late late(file);
  EXPECT_THAT([&] { RunTraining(run, late); },
              ThrowsMessage<Error>(HasSubstr("does not admit a single step")));
  EXPECT_FALSE(fs::exists(root_ / "run"));
  EXPECT_EQ(Charged(file), 1U);
}

TEST_F(TrainingResume, AFirstRunThatTakesEverythingLeavesNothingForAnother) {
  const fs::path file = MakeLedger(4);
  TrainConfig config = Config("one");
  config.run.ledger = file.string();
  PreparedRun run = PrepareRun(config);
  AfterStep watch(-1, [] {});
  EXPECT_EQ(RunTraining(run, watch).steps, 40);
  ASSERT_EQ(watch.notices.size(), 1U);
  EXPECT_THAT(watch.notices[0], HasSubstr("counts whole"));
  config.run.out = (root_ / "two").string();
  EXPECT_THAT([&] { Train(config); }, ThrowsMessage<Error>(HasSubstr("counts whole")));
}

// What was made before was paid for, and nothing is made after.
TEST_F(TrainingResume, ALedgerThatVanishesEndsTheRunWithTheModelSoFar) {
  const fs::path file = MakeLedger(8);
  TrainConfig config = Config("run");
  config.run.ledger = file.string();
  config.training.steps = 4000;
  PreparedRun run = PrepareRun(config);
  AfterStep remove(3, [&] { fs::rename(file, root_ / "moved.db"); });
  EXPECT_THAT([&] { RunTraining(run, remove); },
              ThrowsMessage<Error>(HasSubstr("moved, removed or replaced")));
  const std::string steps =
      ReadSafetensors(root_ / "run" / "model.safetensors").metadata.at("steps");
  EXPECT_EQ(steps, "8");  // the first block
  EXPECT_EQ(Charged(root_ / "moved.db"), 8U);
}

TEST_F(TrainingResume, ADescriptionOfTheDataNamesTheirLedger) {
  const fs::path file = MakeLedger(8);
  std::ofstream(root_ / "train.csv.sordino.toml") << "ledger = \"shared.db\"\n";
  Train(Config("one"));
  EXPECT_EQ(Charged(file), 40U);

  TrainConfig other = Config("two");
  Ledger::Create(root_ / "other.db", {.epsilon = Epsilon(8), .delta = Delta(1e-5)});
  other.run.ledger = (root_ / "other.db").string();
  EXPECT_THROW(Train(other), Error);
  TrainConfig open = Config("three");
  open.run.non_private = true;
  EXPECT_THAT([&] { Train(open); }, ThrowsMessage<Error>(HasSubstr("leave out --non-private")));
  open.run.non_private = false;
  open.privacy.epsilon.reset();
  open.privacy.noise = 0;
  EXPECT_THAT([&] { Train(open); }, ThrowsMessage<Error>(HasSubstr("leave out --noise 0")));
  fs::remove(file);
  EXPECT_THROW(Train(Config("four")), Error);
  EXPECT_FALSE(fs::exists(root_ / "four"));
}

TEST_F(TrainingResume, ASeededRunIsMarkedInTheLedger) {
  const fs::path file = MakeLedger(8);
  TrainConfig config = Config("run");
  config.run.ledger = file.string();
  config.run.insecure_seed = 3;
  Train(config);
  const Ledger ledger = Ledger::Open(file, {.read_only = true});
  EXPECT_FALSE(ParseRunJson(ledger.entries()[1].detail).is_private);
}

TEST_F(TrainingResume, MetricsOfTheStepsThatWereLostAreGone) {
  TrainConfig config = Config("run");
  config.run.checkpoint_every = 10;
  config.run.insecure_seed = 1;
  StopAfter(config, 27);
  fs::remove_all(root_ / "run" / "checkpoints" / "step-000000027");
  Resume("run");
  std::istringstream metrics(ReadRunFile(root_ / "run" / "metrics.jsonl"));
  std::vector<std::string> lines;
  for (std::string line; std::getline(metrics, line);) lines.push_back(line);
  ASSERT_EQ(lines.size(), 4U);  // 10, 20, 30, 40
  EXPECT_THAT(lines[1], HasSubstr("\"step\":20"));
  EXPECT_THAT(lines[2], HasSubstr("\"step\":30"));
}

}  // namespace
}  // namespace sordino
