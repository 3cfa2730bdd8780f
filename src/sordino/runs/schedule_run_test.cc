// Schedules that come from theory or from a file, from the settings to the event that is charged.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "sordino/accounting/accountant.h"
#include "sordino/base/error.h"
#include "sordino/base/testing/processor_time.h"
#include "sordino/base/testing/test_folder.h"
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

constexpr std::int64_t kScheduledSteps = 30;

class StopAtTen : public RunObserver {
 public:
  void OnStep(const StepReport& report) override {
    if (report.step == 10) std::raise(SIGINT);
  }
};

class ScheduleRun : public ::testing::Test {
 protected:
  ScheduleRun() {
    setenv("SORDINO_STATE", (root_ / "state").c_str(), 1);
    WritePoints(root_ / "train.csv", 300);
  }
  ~ScheduleRun() override { unsetenv("SORDINO_STATE"); }

  TrainConfig Config(const std::string& name) const {
    TrainConfig config =
        PointsConfig(root_ / "train.csv", 300, "logistic", /*epsilon=*/2, root_ / name);
    config.privacy.sampling = "full";  // whose composition has a closed form
    config.training.steps = kScheduledSteps;
    return config;
  }
  fs::path WriteSchedule(std::int64_t steps) const {
    fs::path file = root_ / "schedule.csv";
    std::ofstream out(file);
    out << "step,noise,clip,learning-rate\n";
    for (std::int64_t step = 1; step <= steps; ++step) {
      const auto t = static_cast<double>(step);
      out << step << ',' << 3 - t / 20 << ',' << 1 + t / 32 << ',' << 1 / t << '\n';
    }
    return file;
  }
  static std::string MistakeOf(const TrainConfig& config) {
    try {
      PrepareRun(config);
    } catch (const Error& error) {
      return error.what();
    }
    return "no mistake";
  }
  std::string Weights(const std::string& name) const { return WeightsOfRun(root_ / name); }
  std::string Read(const std::string& run, const char* file) const {
    return ReadRunFile(root_ / run / file);
  }

  const TestFolder root_;
};

// The calibration is of the whole composition, so nothing of the budget is left over or exceeded.
void ExpectSpends(const PrivacyPlan& plan, double epsilon) {
  const Interval spent = plan.Epsilon(plan.steps());
  EXPECT_LE(spent.upper, epsilon);
  EXPECT_GT(spent.lower, 0.99 * epsilon);
}

TEST_F(ScheduleRun, OptimalNoiseHasTheShapeOfTheoryAndTheScaleOfTheBudget) {
  for (const char* sampling : {"poisson", "full"}) {
    TrainConfig config = Config("optimal");
    config.privacy.sampling = sampling;
    if (std::string(sampling) == "poisson") config.training.batch = 30;
    config.privacy.noise_schedule = "optimal";
    config.privacy.kappa = 20;
    const PrivacyPlan plan = PrepareRun(config).plan;
    ExpectSpends(plan, 2);
    for (std::int64_t step = 1; step < plan.steps(); ++step) {
      EXPECT_NEAR(plan.StepNoise(step).value() / plan.StepNoise(step - 1).value(),
                  std::pow(0.95, 0.25), 1e-12)
          << sampling;
    }
    EXPECT_EQ(plan.event().TotalCount(), 30U) << sampling;
  }
}

TEST_F(ScheduleRun, OptimalMomentumFollowsTheOptimizer) {
  TrainConfig config = Config("momentum");
  config.training.optimizer = {"debiased-momentum", {{"momentum", 0.5}}};
  config.privacy.noise_schedule = "optimal-momentum";
  config.privacy.decay = 0.9;
  const PreparedRun run = PrepareRun(config);
  EXPECT_EQ(run.config.privacy.noise_schedule, "optimal-momentum:0.5:0.9");
  EXPECT_EQ(run.config.privacy.decay, std::nullopt);
  ExpectSpends(run.plan, 2);
  // Completing twice is completing once.
  EXPECT_EQ(PrepareRun(run.config).config.privacy.noise_schedule, "optimal-momentum:0.5:0.9");
}

TEST_F(ScheduleRun, AFileGivesNoiseClipAndLearningRateOfEachStep) {
  const std::string file = "file:" + WriteSchedule(kScheduledSteps).string();
  TrainConfig config = Config("file");
  config.training.steps.reset();  // as many as the file has
  config.privacy.noise_schedule = file;
  config.privacy.clip_schedule = file;
  config.training.schedule = file;
  const PrivacyPlan plan = PrepareRun(config).plan;
  ASSERT_EQ(plan.steps(), kScheduledSteps);
  ExpectSpends(plan, 2);
  for (std::int64_t step = 0; step < plan.steps(); ++step) {
    const auto t = static_cast<double>(step + 1);
    EXPECT_NEAR(plan.StepNoise(step).value(), plan.noise().value() * (3 - t / 20), 1e-12);
    EXPECT_NEAR(plan.StepClip(step).value(), 1 + t / 32, 1e-12);
  }
  // With --noise 1 the file is the noise itself.
  config.privacy.epsilon.reset();
  config.privacy.noise = 1;
  EXPECT_NEAR(PrepareRun(config).plan.StepNoise(0).value(), 2.95, 1e-12);
}

TEST_F(ScheduleRun, StatementEventAndLedgerAgree) {
  TrainConfig config = Config("whole");
  config.privacy.noise_schedule = "file:" + WriteSchedule(kScheduledSteps).string();
  PreparedRun run = PrepareRun(config);
  RunObserver silent;
  const RunResult result = RunTraining(run, silent);
  const Event event = Event::Parse(Read("whole", "event.txt"));
  EXPECT_EQ(event.ToString(), run.plan.event().ToString());
  EXPECT_EQ(event.TotalCount(), static_cast<std::uint64_t>(kScheduledSteps));
  EXPECT_LE(result.epsilon.upper, 2);
  EXPECT_THAT(Read("whole", "statement.txt"), HasSubstr("noise by file:"));
  EXPECT_TRUE(fs::exists(root_ / "whole" / "schedules" / "noise.csv"));
}

TEST_F(ScheduleRun, IsResumedFromItsOwnCopyOfTheFile) {
  const fs::path file = WriteSchedule(kScheduledSteps);
  const auto config = [&](const std::string& name) {
    TrainConfig own = Config(name);
    own.privacy.noise_schedule = "file:" + file.string();
    own.privacy.clip_schedule = "file:" + file.string();
    own.training.optimizer = {"debiased-momentum", {{"momentum", 0.8}}};
    own.run.insecure_seed = 5;
    return own;
  };
  RunObserver silent;
  PreparedRun whole = PrepareRun(config("whole"));
  RunTraining(whole, silent);
  PreparedRun stopped = PrepareRun(config("stopped"));
  StopAtTen stop;
  RunTraining(stopped, stop);
  fs::remove(file);
  PreparedRun resumed = PrepareResume(root_ / "stopped");
  RunTraining(resumed, silent);
  EXPECT_EQ(Weights("stopped"), Weights("whole"));
}

TEST_F(ScheduleRun, ACopyThatWasChangedIsRefused) {
  TrainConfig config = Config("changed");
  config.privacy.noise_schedule = "file:" + WriteSchedule(kScheduledSteps).string();
  PreparedRun run = PrepareRun(config);
  StopAtTen stop;
  RunTraining(run, stop);
  std::ofstream(root_ / "changed" / "schedules" / "noise.csv", std::ios::app) << "# more\n";
  EXPECT_THROW(PrepareResume(root_ / "changed"), Error);
}

TEST_F(ScheduleRun, WhatCannotBeScheduledIsRefusedBeforeAnythingIsSpent) {
  const auto mistake = [&](const std::function<void(TrainConfig&)>& change) {
    TrainConfig config = Config("mistake");
    change(config);
    std::string text = MistakeOf(config);
    EXPECT_FALSE(fs::exists(root_ / "mistake"));
    return text;
  };
  const std::string file = "file:" + WriteSchedule(29).string();
  EXPECT_THAT(mistake([&](auto& c) { c.privacy.noise_schedule = file; }),
              HasSubstr("is for 29 steps, and the run has 30"));
  EXPECT_THAT(mistake([&](auto& c) { c.training.schedule = file; }), HasSubstr("is for 29 steps"));
  EXPECT_THAT(mistake([&](auto& c) {
                c.privacy.sampling = "poisson";
                c.privacy.rate_schedule = file;
              }),
              HasSubstr("no column 'rate'"));
  EXPECT_THAT(mistake([](auto& c) { c.privacy.noise_schedule = "optimal"; }), HasSubstr("--kappa"));
  EXPECT_THAT(mistake([](auto& c) { c.privacy.kappa = 4; }), HasSubstr("--kappa is for"));
  EXPECT_THAT(mistake([](auto& c) {
                c.privacy.noise_schedule = "optimal";
                c.privacy.kappa = 4;
                c.privacy.decay = 0.5;
              }),
              HasSubstr("--kappa and --decay"));
  EXPECT_THAT(mistake([](auto& c) {
                c.privacy.noise_schedule = "optimal-momentum";
                c.privacy.kappa = 4;
              }),
              HasSubstr("debiased-momentum"));
  EXPECT_THAT(mistake([](auto& c) { c.privacy.noise_schedule = "optimal:0.001"; }),
              HasSubstr("it may be at most 1e+09"));
}

// Every step has a noise of its own, and Poisson sampling leaves no closed form.
TEST(LongSchedule, OfTenThousandDifferentStepsIsCalibratedInSeconds) {
  PlanOptions options;
  options.records = 60'000;
  options.batch = 600;
  options.steps = 10'000;
  options.noise_schedule = Schedule::Parse("optimal:0.9995");
  const double begin = ProcessorSeconds();
  const auto plan = PrivacyPlan::ForBudget(options, Epsilon(3), Delta(1e-5));
  const double seconds = ProcessorSeconds() - begin;
  ASSERT_TRUE(plan.has_value());
  std::set<double> noises;
  for (std::int64_t step = 0; step < options.steps; ++step) {
    noises.insert(plan->StepNoise(step).value());
  }
  EXPECT_EQ(noises.size(), 10'000U);
  ExpectSpends(*plan, 3);
  EXPECT_LT(seconds, 100);  // 10 on a core of Neoverse V1
}

}  // namespace
}  // namespace sordino
