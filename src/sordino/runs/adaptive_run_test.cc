// Noise that a run lowers by private measurements, from the settings to what is claimed of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "sordino/accounting/accountant.h"
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
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Json = nlohmann::json;

constexpr double kRunEpsilon = 2;
constexpr std::int64_t kMostSteps = 60;

class StopAt : public RunObserver {
 public:
  explicit StopAt(std::int64_t step) : step_(step) {}
  void OnStep(const StepReport& report) override {
    if (report.step == step_) std::raise(SIGINT);
  }

 private:
  std::int64_t step_;
};

class AdaptiveRun : public ::testing::Test {
 protected:
  AdaptiveRun() {
    setenv("SORDINO_STATE", (root_ / "state").c_str(), 1);
    WritePoints(root_ / "train.csv", 500);
  }
  ~AdaptiveRun() override { unsetenv("SORDINO_STATE"); }

  // No count exceeds the best one by all 250 held-out records, 8 times the noise on the difference:
  // every measurement but the first lowers the noise, where the budget has place for it.
  TrainConfig Config(const std::string& name, const std::string& sampling = "poisson") const {
    TrainConfig config =
        PointsConfig(root_ / "train.csv", 500, "logistic", kRunEpsilon, root_ / name);
    config.privacy.sampling = sampling;
    if (sampling == "poisson") config.training.batch = 50;
    config.training.steps = kMostSteps;
    config.privacy.noise_schedule = "adaptive";
    config.privacy.validation_every = 5;
    config.privacy.validation_gain = 1;
    config.privacy.validation_share = 0.5;
    config.privacy.noise_factor = 0.8;
    config.run.evaluate_every = 1000;
    return config;
  }
  static RunResult Train(const TrainConfig& config, RunObserver& observer) {
    PreparedRun run = PrepareRun(config);
    return RunTraining(run, observer);
  }
  static RunResult Train(const TrainConfig& config) {
    RunObserver silent;
    return Train(config, silent);
  }
  RunResult Resume(const std::string& name) const {
    PreparedRun run = PrepareResume(root_ / name);
    RunObserver silent;
    return RunTraining(run, silent);
  }
  std::string Read(const std::string& run, const char* file) const {
    return ReadRunFile(root_ / run / file);
  }
  // The statement on one line.
  std::string Statement(const std::string& run) const {
    std::string text = Read(run, "statement.txt");
    std::replace(text.begin(), text.end(), '\n', ' ');
    return text;
  }
  std::string Weights(const std::string& name) const { return WeightsOfRun(root_ / name); }
  std::string MistakeOf(const std::function<void(TrainConfig&)>& change) const {
    TrainConfig config = Config("mistake");
    change(config);
    std::string text = "no mistake";
    try {
      PrepareRun(config);
    } catch (const Error& error) {
      text = error.what();
    }
    EXPECT_FALSE(fs::exists(root_ / "mistake"));
    return text;
  }

  const TestFolder root_;
};

// Steps and measurements that an event stands for.
std::uint64_t ReleasesOf(std::int64_t steps) {
  return static_cast<std::uint64_t>(steps + std::min(steps, kMostSteps - 1) / 5);
}

TEST_F(AdaptiveRun, EndsWhenItsEpsilonIsSpentAndClaimsIt) {
  for (const std::string sampling : {"poisson", "full"}) {
    const RunResult result = Train(Config(sampling, sampling));
    EXPECT_LT(result.steps, kMostSteps);
    EXPECT_GT(result.steps, 10);
    EXPECT_FALSE(result.interrupted);
    EXPECT_FALSE(result.stopped_by_ledger);
    EXPECT_EQ(result.epsilon.upper, kRunEpsilon);
    EXPECT_FALSE(fs::exists(root_ / sampling / kCheckpointFolder));

    // Everything is in the event and in the ledger, with measurements, and within the budget.
    const Event event = Event::Parse(Read(sampling, "event.txt"));
    EXPECT_EQ(event.TotalCount(), ReleasesOf(result.steps));
    EXPECT_LE(CertifiedEpsilon(event, std::log(1e-5)).value.upper, kRunEpsilon);
    Ledger ledger = Ledger::Open(root_ / sampling / "ledger.db", {.read_only = true});
    EXPECT_LE(ledger.filter().UsedShare(), 1);
    EXPECT_GT(ledger.filter().UsedShare(), 0.85);
    EXPECT_EQ(ledger.Total().TotalCount(), ReleasesOf(result.steps));
    EXPECT_NEAR(CertifiedEpsilon(ledger.Total(), std::log(1e-5)).value.upper,
                CertifiedEpsilon(event, std::log(1e-5)).value.upper, 1e-9);
    EXPECT_EQ(ledger.filter().whole_run(), std::nullopt);
    EXPECT_EQ(FilterName(ledger.budget().filter), sampling == "full" ? "gaussian" : "renyi");

    const std::string statement = Statement(sampling);
    EXPECT_THAT(statement, HasSubstr("the next one would have passed its epsilon"));
    EXPECT_THAT(statement, HasSubstr("It holds whatever the run chose and wherever it stopped"));
    EXPECT_THAT(statement, HasSubstr("Nobody learns which records were in which batch"));
    EXPECT_THAT(statement, Not(HasSubstr("no accountant can prove")));
    const Json record = Json::parse(Read(sampling, "record.json"));
    EXPECT_EQ(record["privacy"]["epsilon"], kRunEpsilon);
    EXPECT_THAT(record["privacy"]["accounting"].get<std::string>(),
                StartsWith("fully adaptive composition"));
    EXPECT_EQ(record["release"]["state"], "finished");
    const Json levels = record["release"]["adaptive_noise"]["measurements"];
    ASSERT_EQ(levels.size(), static_cast<std::size_t>(result.steps / 5));
    // The noise falls while the budget has place for the steps up to the next measurement.
    EXPECT_GE(result.facts.adaptive->Lowered(), 1);
    const auto noise = [&](std::size_t i) { return levels[i]["noise_multiplier"].get<double>(); };
    EXPECT_EQ(noise(0), result.noise_multiplier);
    EXPECT_NEAR(noise(1), 0.8 * noise(0), 1e-9);
    for (std::size_t i = 1; i < levels.size(); ++i) {
      EXPECT_TRUE(noise(i) == noise(i - 1) || std::abs(noise(i) / noise(i - 1) - 0.8) < 1e-12);
    }
  }
}

TEST_F(AdaptiveRun, MakesAllStepsWhereNothingLowersTheNoise) {
  TrainConfig config = Config("steady");
  config.privacy.validation_gain = 0;
  config.privacy.noise_factor = 0.999999;
  const RunResult result = Train(config);
  EXPECT_GE(result.steps, kMostSteps - 1);
  EXPECT_EQ(result.epsilon.upper, kRunEpsilon);
}

TEST_F(AdaptiveRun, IsTheSameForASeedAndAfterAnInterruption) {
  const auto config = [&](const std::string& name) {
    TrainConfig own = Config(name);
    own.privacy.validation_gain = 0.02;
    own.run.insecure_seed = 5;
    return own;
  };
  const RunResult whole = Train(config("whole"));
  EXPECT_LT(whole.steps, kMostSteps);
  Train(config("again"));
  EXPECT_EQ(Weights("again"), Weights("whole"));
  for (const std::int64_t step : {3, 5, 14, 18}) {
    const std::string name = "stopped" + std::to_string(step);
    StopAt stop(step);
    const RunResult first = Train(config(name), stop);
    EXPECT_TRUE(first.interrupted);
    EXPECT_EQ(first.epsilon.upper, kRunEpsilon);
    EXPECT_THAT(Statement(name),
                HasSubstr("It holds whatever the run chose and wherever it stopped"));
    const RunResult second = Resume(name);
    EXPECT_EQ(second.steps, whole.steps) << step;
    EXPECT_FALSE(second.interrupted);
    EXPECT_EQ(Weights(name), Weights("whole")) << step;
    EXPECT_EQ(Event::Parse(Read(name, "event.txt").substr(12)).TotalCount(),
              ReleasesOf(whole.steps));
    EXPECT_EQ(Json::parse(Read(name, "record.json"))["release"]["adaptive_noise"],
              Json::parse(Read("whole", "record.json"))["release"]["adaptive_noise"]);
  }
}

// The newest checkpoint is lost: its steps are made again, and the budget has paid for both.
TEST_F(AdaptiveRun, StepsThatACrashTookStayCharged) {
  TrainConfig config = Config("crashed");
  config.run.checkpoint_every = 6;
  StopAt stop(8);
  Train(config, stop);
  fs::remove_all(root_ / "crashed" / kCheckpointFolder / "step-000000008");
  fs::remove_all(root_ / "crashed" / kCheckpointFolder / "step-000000009");
  const RunResult result = Resume("crashed");
  EXPECT_GT(result.facts.lost_steps, 1);
  EXPECT_LE(result.facts.lost_steps, 3);
  Ledger ledger = Ledger::Open(root_ / "crashed" / "ledger.db", {.read_only = true});
  EXPECT_LE(ledger.filter().UsedShare(), 1);
  EXPECT_EQ(ledger.Total().TotalCount(),
            ReleasesOf(result.steps) + static_cast<std::uint64_t>(result.facts.lost_steps));
}

// The budget of all runs is the ledger's, also where it is smaller than what the run may claim, and
// a run that chooses as it goes never counts as the plan that it began with.
TEST_F(AdaptiveRun, ANamedLedgerEndsItToo) {
  Budget budget;
  budget.epsilon = Epsilon(1);
  budget.delta = Delta(1e-5);
  const fs::path file = root_ / "data.db";
  Ledger::Create(file, budget);
  TrainConfig config = Config("small");
  config.run.ledger = file.string();
  const RunResult result = Train(config);
  EXPECT_TRUE(result.stopped_by_ledger);
  EXPECT_TRUE(result.interrupted);
  EXPECT_LT(result.steps, kMostSteps);
  EXPECT_EQ(result.epsilon.upper, kRunEpsilon);
  Ledger after = Ledger::Open(file, {.read_only = true});
  EXPECT_LE(after.filter().UsedShare(), 1);
  EXPECT_EQ(after.filter().whole_run(), std::nullopt);
  EXPECT_EQ(after.Total().TotalCount(), ReleasesOf(result.steps));
}

TEST_F(AdaptiveRun, WhatCannotBeMeasuredOrPaidForIsRefusedBeforeAnythingIsSpent) {
  EXPECT_EQ(MistakeOf([](auto&) {}), "no mistake");
  EXPECT_THAT(MistakeOf([](auto& c) {
                c.privacy.epsilon.reset();
                c.privacy.noise = 1;
              }),
              HasSubstr("give --epsilon"));
  EXPECT_THAT(MistakeOf([](auto& c) { c.run.non_private = true; }), HasSubstr("give --epsilon"));
  EXPECT_THAT(MistakeOf([](auto& c) { c.run.canaries = 1000; }), HasSubstr("--canaries"));
  EXPECT_THAT(MistakeOf([](auto& c) { c.privacy.noise_schedule = "constant"; }),
              HasSubstr("--noise-factor is for --noise-schedule adaptive"));
  EXPECT_THAT(MistakeOf([](auto& c) { c.privacy.noise_schedule = "adaptive:0.5"; }),
              HasSubstr("--noise-factor is for"));
  EXPECT_THAT(MistakeOf([](auto& c) { c.privacy.clip_schedule = "adaptive"; }),
              HasSubstr("--clipping adaptive"));
  EXPECT_THAT(MistakeOf([](auto& c) { c.privacy.noise_factor = 1; }), HasSubstr("--noise-factor"));
  EXPECT_THAT(MistakeOf([](auto& c) { c.privacy.validation_share = 0; }),
              HasSubstr("--validation-share"));
  EXPECT_THAT(MistakeOf([](auto& c) { c.privacy.validation_budget = 1; }),
              HasSubstr("--validation-budget"));
  EXPECT_THAT(MistakeOf([](auto& c) { c.privacy.validation_gain = -0.1; }),
              HasSubstr("--validation-gain"));
  EXPECT_THAT(MistakeOf([](auto& c) { c.privacy.validation_every = kMostSteps; }),
              HasSubstr("--validation-every"));
  EXPECT_THAT(MistakeOf([](auto& c) { c.privacy.sampling = "fixed"; }),
              HasSubstr("poisson or full sampling"));
  EXPECT_THAT(MistakeOf([](auto& c) { c.privacy.adjacency = "zero-out"; }),
              HasSubstr("the adjacency add-remove"));
  EXPECT_THAT(MistakeOf([](auto& c) { c.privacy.noise_kind = "laplace"; }),
              HasSubstr("Gaussian noise"));
  EXPECT_THAT(MistakeOf([](auto& c) { c.privacy.delta = 1e-200; }), HasSubstr("no noise meets"));
  EXPECT_THAT(MistakeOf([](auto& c) {
                c.data.columns.declared = {"x:numeric:0:1", "y:target:0:1", "above:ignore"};
              }),
              Not(HasSubstr("no mistake")));
}

TEST_F(AdaptiveRun, SettingsAreWrittenAndReadBack) {
  const PreparedRun run = PrepareRun(Config("settings"));
  const TrainConfig again = ParseTrainConfig(WriteTrainConfig(run.config), "settings");
  EXPECT_EQ(again.privacy.validation_share, 0.5);
  EXPECT_EQ(again.privacy.validation_budget, 0.1);
  EXPECT_EQ(again.privacy.validation_every, 5);
  EXPECT_EQ(again.privacy.noise_factor, 0.8);
  EXPECT_EQ(PrepareRun(again).plan.event().ToString(), run.plan.event().ToString());
}

}  // namespace
}  // namespace sordino
