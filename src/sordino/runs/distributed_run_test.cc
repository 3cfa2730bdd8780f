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
#include "sordino/models/safetensors.h"
#include "sordino/runs/run_ledger.h"
#include "sordino/runs/testing/points_config.h"
#include "sordino/runs/testing/run_files.h"
#include "sordino/training/testing/takes_turns.h"
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
    RunRanks(ranks, [&](Communicator& all) {
      TakesTurns communicator(all, computes_alone_);
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
    return Ledger::Open(file, {.witness = WitnessUse::kNone, .read_only = true})
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
  bool computes_alone_ = false;  // a rank, while others wait
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

// The sums are those of a private run, whose total does not depend on the number of ranks.
TEST_F(DistributedRuns, WithoutNoiseClipWhateverTheNumberOfRanks) {
  const auto weights = [&](int ranks) {
    TrainConfig config = Config("run-" + std::to_string(ranks));
    config.privacy.epsilon.reset();
    config.privacy.noise = 0;
    config.privacy.clipping = {"global-layerwise", {{"clip-threshold", 20.0}}};
    config.run.insecure_seed = 5;
    const RunResult result = TrainOn(ranks, config);
    EXPECT_FALSE(result.is_private);
    EXPECT_FALSE(fs::exists(result.folder / kLedgerFile));
    return ReadSafetensors(result.folder / "model.safetensors").metadata.at("weights_sha256");
  };
  EXPECT_EQ(weights(2), weights(3));
}

TEST_F(DistributedRuns, OfWhatCannotBeSharedAreRefusedOnEveryRank) {
  TrainConfig config = Config("run");
  // One process does with them.
  config.training.norms = {"jl", {{"jl-directions", std::int64_t{4}}, {"jl-failure", 1e-9}}};
  for (const std::string& told : Refusals(config)) EXPECT_THAT(told, HasSubstr("4 directions"));
  EXPECT_FALSE(fs::exists(root_ / "run"));
}

// Runs that measure, or that are measured, beside their steps.
struct MeasuredRun {
  const char* name;
  std::function<void(TrainConfig&)> change;
};

std::vector<MeasuredRun> MeasuredRuns() {
  return {
      {"EstimatedNorms",
       [](TrainConfig& config) {
         config.training.norms = {"jl", {{"jl-directions", std::int64_t{32}}}};
       }},
      {"AdaClip", [](TrainConfig& config) { config.privacy.clipping = "adaclip"; }},
      {"AdaptiveNoise",
       [](TrainConfig& config) {
         config.privacy.noise_schedule = "adaptive";
         config.privacy.validation_every = 4;
         config.privacy.validation_gain = 0.5;
       }},
      {"Canaries", [](TrainConfig& config) { config.run.canaries = 30; }},
      {"CanaryRecords",
       [](TrainConfig& config) {
         config.run.canaries = 30;
         config.run.canary_kind = "mislabelled";
       }},
  };
}

class DistributedMeasures : public DistributedRuns,
                            public ::testing::WithParamInterface<MeasuredRun> {
 protected:
  DistributedMeasures() { computes_alone_ = std::string(GetParam().name) == "EstimatedNorms"; }

  TrainConfig Changed(const std::string& name) const {
    TrainConfig config = Seeded(name);
    GetParam().change(config);
    return config;
  }
  // Empty for a file that is not there.
  std::string File(const std::string& run, const char* name) const {
    return fs::exists(root_ / run / name) ? ReadRunFile(root_ / run / name) : "";
  }
};

TEST_P(DistributedMeasures, AreTheSameOnAnyNumberOfRanks) {
  TrainOn(1, Changed("one"));
  const std::string wanted = File("one", "model.safetensors");
  EXPECT_NE(wanted, "");
  EXPECT_EQ(File("one", "audit.json").empty(), Changed("one").run.canaries == 0);
  for (const int ranks : {2, 3}) {
    const std::string name = std::to_string(ranks);
    TrainOn(ranks, Changed(name));
    EXPECT_EQ(File(name, "model.safetensors"), wanted);
    EXPECT_EQ(File(name, "audit.json"), File("one", "audit.json"));
    EXPECT_EQ(File(name, "event.txt"), File("one", "event.txt"));
    EXPECT_EQ(Charged(root_ / name / "ledger.db"), Charged(root_ / "one" / "ledger.db"));
  }
}

TEST_P(DistributedMeasures, GoOnWithAnotherNumberOfRanks) {
  TrainOn(2, Changed("whole"));
  StopsAfter stop(9);
  EXPECT_TRUE(TrainOn(
                  2, [&] { return PrepareRun(Changed("parts")); }, stop)
                  .interrupted);
  RunObserver silent;
  TrainOn(
      3, [&] { return PrepareResume(root_ / "parts"); }, silent);
  EXPECT_EQ(WeightsOfRun(root_ / "parts"), WeightsOfRun(root_ / "whole"));
  EXPECT_EQ(File("parts", "audit.json"), File("whole", "audit.json"));
  EXPECT_EQ(File("parts", "event.txt"), File("whole", "event.txt"));
}

// Of the operating system on every rank.
TEST_P(DistributedMeasures, ArePartOfPrivateRuns) {
  TrainConfig config = Config("run");
  GetParam().change(config);
  const RunResult result = TrainOn(3, config);
  EXPECT_TRUE(result.is_private);
  EXPECT_FALSE(result.interrupted);
  EXPECT_LE(result.epsilon.upper, 4);
  EXPECT_EQ(result.audit.has_value(), config.run.canaries > 0);
  if (result.facts.adaptive) {
    EXPECT_FALSE(result.facts.adaptive->levels.empty());
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, DistributedMeasures, ::testing::ValuesIn(MeasuredRuns()),
                         [](const auto& tested) { return std::string(tested.param.name); });

TEST_F(DistributedRuns, WithOtherCanariesAreRefusedBeforeAnythingIsCharged) {
  WritePoints(root_ / "other.csv", 51);
  TrainConfig config = Config("run");
  config.run.canaries = 30;
  config.run.canary_kind = "mislabelled";
  RunObserver silent;
  try {
    TrainOn(
        2, [&] { return PrepareRun(config); }, silent,
        [&](PreparedRun& run) { run.config.data.test = (root_ / "other.csv").string(); });
    ADD_FAILURE() << "nothing was refused";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("rank 1 has other canaries than rank 0"));
  }
  EXPECT_FALSE(fs::exists(root_ / "run"));
}

}  // namespace
}  // namespace sordino
