#include "sordino/runs/training_run.h"
#include "sordino/runs/testing/points_config.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "sordino/base/error.h"
#include "sordino/base/sha256.h"
#include "sordino/base/testing/test_folder.h"
#include "sordino/data/batch_loader.h"
#include "sordino/gradients/testing/hostile_models_test_support.h"
#include "sordino/models/safetensors.h"
#include "sordino/runs/run_folder.h"
#include "sordino/runs/testing/run_files.h"
#include "sordino/runs/train_settings.h"
#include "sordino/training/classification.h"
#include "sordino/training/testing/trainer_cases.h"

namespace sordino {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class TrainingRun : public ::testing::Test {
 protected:
  TrainingRun() {
    WritePoints(root_ / "train.csv", 400);
    WritePoints(root_ / "test.csv", 100);
  }

  TrainConfig Config() const {
    TrainConfig config =
        PointsConfig(root_ / "train.csv", 400, "logistic", /*epsilon=*/8, root_ / "run");
    config.data.test = (root_ / "test.csv").string();
    config.training.batch = 40;
    config.training.steps = 30;
    config.training.learning_rate = 2;
    config.run.evaluate_every = 10;
    return config;
  }

  static std::vector<nlohmann::json> Metrics(const fs::path& folder) {
    std::istringstream in(ReadRunFile(folder / "metrics.jsonl"));
    std::vector<nlohmann::json> lines;
    for (std::string line; std::getline(in, line);) lines.push_back(nlohmann::json::parse(line));
    return lines;
  }

  const TestFolder root_;
};

RunResult Train(const TrainConfig& config) {
  PreparedRun run = PrepareRun(config);
  RunObserver silent;
  return RunTraining(run, silent);
}

std::string RunMistakeOf(const TrainConfig& config) {
  try {
    Train(config);
  } catch (const Error& error) {
    return error.what();
  }
  return "no mistake";
}

TEST_F(TrainingRun, LeavesEverythingInItsFolder) {
  const RunResult result = Train(Config());
  EXPECT_EQ(result.folder, root_ / "run");
  EXPECT_TRUE(result.is_private);
  EXPECT_FALSE(result.interrupted);
  EXPECT_EQ(result.steps, 30);
  EXPECT_LE(result.epsilon.upper, 8);
  EXPECT_GT(result.epsilon.upper, 7);
  EXPECT_NEAR(result.sampling_rate, 0.1, 1e-12);
  EXPECT_GT(result.noise_multiplier, 0.1);
  ASSERT_TRUE(result.test_accuracy.has_value());
  EXPECT_GT(*result.test_accuracy, 0.75);  // 0.5 is chance
  for (const char* name :
       {"config.toml", "metrics.jsonl", "model.safetensors", "statement.txt", "event.txt",
        "accuracy-and-epsilon.svg", "ledger.db", "SHA256SUMS", "record.json", "predictions.json"}) {
    EXPECT_TRUE(fs::exists(result.folder / name)) << name;
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(result.folder), {}), 10);
  const auto deployment = nlohmann::json::parse(ReadRunFile(result.folder / "record.json"));
  EXPECT_EQ(deployment["privacy"]["epsilon"], result.epsilon.upper);
  EXPECT_EQ(deployment["release"]["steps"], 30);
  EXPECT_GT(deployment["privacy"]["failure"], 0);
  const auto metrics = Metrics(result.folder);
  ASSERT_EQ(metrics.size(), 3U);
  EXPECT_EQ(metrics[0]["step"], 10);
  EXPECT_EQ(metrics[2]["step"], 30);
  EXPECT_LT(metrics[0]["epsilon"], metrics[1]["epsilon"]);
  EXPECT_EQ(metrics[2]["epsilon"], result.epsilon.upper);
  EXPECT_EQ(metrics[2]["test_accuracy"], *result.test_accuracy);
  const std::string statement = ReadRunFile(result.folder / "statement.txt");
  EXPECT_THAT(statement, StartsWith("Privacy statement"));
  EXPECT_EQ(ReadSafetensors(result.folder / "model.safetensors").metadata.at("statement_sha256"),
            Sha256Hex(statement));
  EXPECT_EQ(Event::Parse(ReadRunFile(result.folder / "event.txt")
                             .substr(0, ReadRunFile(result.folder / "event.txt").find('\n'))),
            PrepareRun(Config()).plan.event());
}

// The diagonal of the matrix is the accuracy; records of a file are not shown.
TEST_F(TrainingRun, CountsItsMistakesOnThePublicTestSet) {
  TrainConfig config = Config();
  config.training.average_decay = 0.9;  // the averaged weights are what is saved
  const RunResult result = Train(config);
  const auto json = nlohmann::json::parse(ReadRunFile(result.folder / "predictions.json"));
  EXPECT_EQ(json["classes"], nlohmann::json::array({"no", "yes"}));
  EXPECT_TRUE(json["examples"].empty());
  double all = 0;
  for (const auto& row : json["confusion"]) {
    for (const auto& count : row) all += count.get<double>();
  }
  EXPECT_EQ(all, 100);
  const double right =
      json["confusion"][0][0].get<double>() + json["confusion"][1][1].get<double>();
  EXPECT_NEAR(right / 100, *result.test_accuracy, 1e-12);
}

// Accuracy and loss of a test set have no noise.
TEST_F(TrainingRun, RefusesATestSetThatIsPrivate) {
  TrainConfig config = Config();
  config.data.test = config.data.source;
  EXPECT_THAT(RunMistakeOf(config), HasSubstr("is the training file"));
  config.data.test = (root_ / "copy.csv").string();
  std::filesystem::copy_file(config.data.source, config.data.test);
  EXPECT_THAT(RunMistakeOf(config), HasSubstr("is a copy of the training file"));
  root_.Write("test.csv.sordino.toml", "ledger = \"visits.db\"\n");
  EXPECT_THAT(RunMistakeOf(Config()), HasSubstr("is private: it has the ledger"));
}

TEST_F(TrainingRun, SaysWhoAnswersForItAndWhatItIsFor) {
  TrainConfig config = Config();
  config.run.purpose = {.curator = "Clinic of Rome", .use = "planning of beds"};
  const RunResult result = Train(config);
  EXPECT_THAT(ReadRunFile(result.folder / "statement.txt"),
              HasSubstr("Curator: Clinic of Rome. Intended use: planning of beds."));
  const auto record = nlohmann::json::parse(ReadRunFile(result.folder / "record.json"));
  EXPECT_EQ(record["curator"], "Clinic of Rome");
  EXPECT_EQ(record["use"], "planning of beds");
  EXPECT_THAT(ReadRunFile(result.folder / "config.toml"),
              HasSubstr("curator = \"Clinic of Rome\""));
  config.run.purpose.use = "a\nb";
  EXPECT_THAT(RunMistakeOf(config), HasSubstr("--use holds a line break"));
}

TEST_F(TrainingRun, CanariesAuditIt) {
  TrainConfig config = Config();
  config.model.name = "mlp";
  config.model.width = 200;
  config.run.canaries = 600;
  const RunResult result = Train(config);
  ASSERT_TRUE(result.audit.has_value());
  EXPECT_TRUE(result.is_private);
  EXPECT_EQ(result.audit->canaries, 600);
  EXPECT_EQ(result.audit->claim, result.epsilon.upper);
  EXPECT_FALSE(result.audit->contradicts);
  EXPECT_LT(result.audit->every_update.epsilon, result.epsilon.upper);
  EXPECT_LT(result.audit->every_update.signs.epsilon, result.epsilon.upper);
  EXPECT_GT(result.audit->every_update.signs.epsilon, 0.2);  // about 3 draws of a canary
  const auto record = nlohmann::json::parse(ReadRunFile(result.folder / "audit.json"));
  EXPECT_EQ(record["every_update"]["epsilon_lower"]["one-run"], result.audit->every_update.epsilon);
  EXPECT_EQ(record["every_update"]["correct"], result.audit->every_update.outcome.correct);
  const auto& curve = record["every_update"]["roc"];
  ASSERT_GT(curve.size(), 10U);
  EXPECT_EQ(curve.front(), nlohmann::json::array({0.0, 0.0}));
  EXPECT_EQ(curve.back(), nlohmann::json::array({1.0, 1.0}));
  EXPECT_THAT(ReadRunFile(result.folder / "audit.svg"), HasSubstr("600 canaries; epsilon"));
  EXPECT_THAT(ReadRunFile(result.folder / "statement.txt"),
              AllOf(HasSubstr("What an audit found"), HasSubstr("600 made-up records")));
  // The price is the same.
  TrainConfig without = config;
  without.run.canaries = 0;
  EXPECT_EQ(PrepareRun(without).plan.event(), PrepareRun(config).plan.event());
}

TEST_F(TrainingRun, CanariesThatAreRecordsAuditItAndCountInThePlan) {
  TrainConfig config = Config();
  config.run.canaries = 60;
  config.run.canary_kind = "mislabelled";
  const PreparedRun prepared = PrepareRun(config);
  EXPECT_EQ(prepared.plan.options().records, 460);
  EXPECT_NEAR(prepared.plan.StepRate(0).value(), 40.0 / 460, 1e-9);
  const RunResult result = Train(config);
  ASSERT_TRUE(result.audit.has_value());
  EXPECT_TRUE(result.is_private);
  EXPECT_EQ(result.audit->kind, "mislabelled");
  EXPECT_FALSE(result.audit->contradicts);
  EXPECT_LT(result.audit->every_update.epsilon, result.epsilon.upper);
  const auto record = nlohmann::json::parse(ReadRunFile(result.folder / "audit.json"));
  EXPECT_EQ(record["canary_kind"], "mislabelled");
  EXPECT_EQ(record["canaries"], 60);
  EXPECT_THAT(ReadRunFile(result.folder / "statement.txt"),
              AllOf(HasSubstr("60 made-up records"), HasSubstr("records of the test set")));
  EXPECT_THAT(ReadRunFile(result.folder / "config.toml"),
              HasSubstr("canary-kind = \"mislabelled\""));
  // 40 test records are left.
  ASSERT_TRUE(result.test_accuracy.has_value());
  EXPECT_NEAR(*result.test_accuracy * 40, std::round(*result.test_accuracy * 40), 1e-9);
}

TEST_F(TrainingRun, CanariesThatTheDataDoNotAllowAreRefusedBeforeTheFirstCharge) {
  TrainConfig config = Config();
  config.run.canary_kind = "mislabelled";
  EXPECT_THAT(RunMistakeOf(config), HasSubstr("without --canaries"));
  config.run.canaries = 100;  // all of the test set
  EXPECT_THAT(RunMistakeOf(config), HasSubstr("the test set, which has 100 records"));
  config.data.test.clear();
  EXPECT_THAT(RunMistakeOf(config), HasSubstr("there is none; give --test"));
  config.run.canary_kind = "random-input";
  EXPECT_THAT(RunMistakeOf(config), HasSubstr("rows of features"));
  config.run.canary_kind = "mislabelled";
  config.data.test = (root_ / "test.csv").string();
  config.run.canaries = 20;
  config.training.batch = std::nullopt;
  config.privacy.sampling = "full";
  config.privacy.adjacency = "zero-out";
  config.privacy.micro_batch = 2;
  EXPECT_THAT(RunMistakeOf(config), HasSubstr("cannot be used with micro-batches"));
  EXPECT_FALSE(fs::exists(root_ / "run"));
}

TEST_F(TrainingRun, CanariesThatCannotBeAreRefused) {
  TrainConfig config = Config();
  config.run.canaries = 7;
  EXPECT_THAT(RunMistakeOf(config), HasSubstr("--canaries is 7; give 16 to"));
  config.run.canaries = 20;  // the model has 6 numbers
  EXPECT_THAT(RunMistakeOf(config), HasSubstr("give at most 6 canaries"));
  config.model.name = "mlp";
  config.privacy.epsilon.reset();
  config.privacy.noise = 1e-200;
  EXPECT_THAT(RunMistakeOf(config), HasSubstr("too small beside sums of this many records"));
  config.privacy.noise = 1;
  config.privacy.delta = 1e-300;  // less than what can fail
  EXPECT_THAT(RunMistakeOf(config), HasSubstr("this one has no finite epsilon"));
  config.privacy.delta = 1e-5;
  config.privacy.noise = 0;
  EXPECT_THAT(RunMistakeOf(config), HasSubstr("--noise 0 claims nothing"));
  config.privacy.noise.reset();
  config.run.non_private = true;
  EXPECT_THAT(RunMistakeOf(config), HasSubstr("--non-private claims nothing"));
  EXPECT_FALSE(fs::exists(root_ / "run"));
}

TEST_F(TrainingRun, ItsConfigurationRunsTheSameThing) {
  TrainConfig config = Config();
  config.run.insecure_seed = 7;  // what the operating system would draw anew
  config.model.seed = 3;
  const RunResult first = Train(config);
  TrainConfig again = ReadTrainConfig(first.folder / "config.toml");
  again.run.out = (root_ / "again").string();
  const RunResult second = Train(again);
  EXPECT_EQ(second.noise_multiplier, first.noise_multiplier);
  EXPECT_EQ(second.steps, first.steps);
  EXPECT_EQ(ReadRunFile(second.folder / "config.toml"), ReadRunFile(first.folder / "config.toml"));
  EXPECT_EQ(ReadRunFile(second.folder / "model.safetensors"),
            ReadRunFile(first.folder / "model.safetensors"));
  EXPECT_EQ(ReadRunFile(second.folder / "event.txt"), ReadRunFile(first.folder / "event.txt"));
}

TEST_F(TrainingRun, SeededAndNonPrivateRunsSaySoEverywhere) {
  TrainConfig seeded = Config();
  seeded.run.insecure_seed = 1;
  TrainConfig open = Config();
  open.run.non_private = true;
  open.privacy.epsilon.reset();
  open.run.out = (root_ / "open").string();
  TrainConfig clipped = Config();
  clipped.privacy.epsilon.reset();
  clipped.privacy.noise = 0;
  clipped.run.out = (root_ / "clipped").string();
  for (const TrainConfig& config : {seeded, open, clipped}) {
    const RunResult result = Train(config);
    EXPECT_FALSE(result.is_private);
    EXPECT_THAT(ReadRunFile(result.folder / "statement.txt"), StartsWith("NOT PRIVATE"));
    EXPECT_THAT(ReadRunFile(result.folder / "event.txt"), StartsWith("NOT PRIVATE"));
    EXPECT_THAT(ReadRunFile(result.folder / "metrics.jsonl"), StartsWith("{\"private\":false,"));
    EXPECT_THAT(ReadRunFile(result.folder / "accuracy-and-epsilon.svg"),
                HasSubstr(">NOT PRIVATE<"));
    EXPECT_EQ(ReadSafetensors(result.folder / "model.safetensors").metadata.at("private"), "no");
  }
  for (TrainConfig config : {open, clipped}) {
    config.run.out += "-again";
    const RunResult result = Train(config);
    EXPECT_TRUE(std::isinf(result.epsilon.lower));
    EXPECT_EQ(result.noise_multiplier, 0);
    EXPECT_GT(*result.test_accuracy, 0.8);
    EXPECT_THAT(ReadRunFile(result.folder / "statement.txt"), Not(HasSubstr("psilon")));
    EXPECT_THAT(ReadRunFile(result.folder / "record.json"), HasSubstr("\"private\": false"));
    EXPECT_THAT(result.facts.plan,
                HasSubstr(config.run.non_private ? "without clipping and noise"
                                                 : "flat clipping at 1, no noise, "));
    EXPECT_FALSE(fs::exists(result.folder / kLedgerFile));
  }
}

class StopAfter : public RunObserver {
 public:
  explicit StopAfter(std::int64_t step) : step_(step) {}
  void OnStep(const StepReport& report) override {
    if (report.step == step_) std::raise(SIGINT);
  }

 private:
  std::int64_t step_;
};

TEST_F(TrainingRun, AStopEndsItAfterTheNextStepWithEverythingWritten) {
  PreparedRun run = PrepareRun(Config());
  StopAfter observer(12);
  const RunResult result = RunTraining(run, observer);
  EXPECT_TRUE(result.interrupted);
  EXPECT_EQ(result.steps, 13);
  EXPECT_TRUE(fs::exists(result.folder / "model.safetensors"));
  EXPECT_THAT(ReadRunFile(result.folder / "statement.txt"),
              HasSubstr("stopped after 13 of 30 steps"));
  EXPECT_EQ(Metrics(result.folder).back()["step"], 13);
}

std::string Flat(const std::string& text) {
  std::istringstream in(text);
  std::string flat;
  for (std::string word; in >> word;) flat += word + ' ';
  return flat;
}

// The statement, the result, the model, the event and the ledger say the same epsilon.
void ExpectOneTruth(const RunResult& result, const Event& event, const std::string& said) {
  const fs::path& folder = result.folder;
  Ledger ledger =
      Ledger::Open(folder / kLedgerFile, {.witness = WitnessUse::kNone, .read_only = true});
  EXPECT_EQ(ledger.ComposedEpsilon().upper, result.epsilon.upper);
  EXPECT_EQ(ledger.Counted(), event);
  std::ifstream in(folder / "event.txt");
  std::string line;
  std::getline(in, line);
  EXPECT_EQ(line, event.ToString());
  EXPECT_EQ(std::stod(ReadSafetensors(folder / "model.safetensors").metadata.at("epsilon")),
            result.epsilon.upper);
  EXPECT_THAT(Flat(ReadRunFile(folder / "statement.txt")),
              AllOf(HasSubstr(said), HasSubstr("13 steps were made of this plan"),
                    HasSubstr(event.ToString())));
}

TEST_F(TrainingRun, AStoppedRunThatCountsWholeSaysThePlansEpsilonEverywhere) {
  PreparedRun run = PrepareRun(Config());
  StopAfter observer(12);
  const RunResult result = RunTraining(run, observer);
  EXPECT_EQ(result.epsilon.upper, run.facts.epsilon.upper);
  EXPECT_EQ(result.facts.steps_epsilon.upper, run.plan.Epsilon(13).upper);
  EXPECT_LT(result.facts.steps_epsilon.upper, 0.9 * result.epsilon.upper);
  ExpectOneTruth(result, run.plan.event(), "Epsilon is 8, delta 1e-05.");
}

TEST_F(TrainingRun, AStoppedRunWithoutALimitSaysTheEpsilonOfItsStepsEverywhere) {
  TrainConfig config = Config();
  config.privacy.epsilon.reset();
  config.privacy.noise = 1;
  PreparedRun run = PrepareRun(config);
  StopAfter observer(12);
  const RunResult result = RunTraining(run, observer);
  EXPECT_EQ(result.epsilon.upper, run.plan.Epsilon(13).upper);
  EXPECT_EQ(result.facts.largest_epsilon.upper, run.plan.Epsilon(30).upper);
  ExpectOneTruth(result, run.plan.EventOf(13), "holds if the moment at which the run stopped");
}

class CrashAfter : public RunObserver {
 public:
  void OnStep(const StepReport& report) override {
    if (report.step == 12) throw std::runtime_error("power cut");
  }
};

TEST_F(TrainingRun, ACrashLeavesWhatWasPlannedAndNoHalfFile) {
  PreparedRun run = PrepareRun(Config());
  CrashAfter observer;
  EXPECT_THROW(RunTraining(run, observer), std::runtime_error);
  EXPECT_THAT(ReadRunFile(root_ / "run" / "statement.txt"), HasSubstr("PLANNED"));
  EXPECT_EQ(ReadRunFile(root_ / "run" / "event.txt"), run.plan.event().ToString() + "\n");
  EXPECT_EQ(Metrics(root_ / "run").size(), 1U);
  EXPECT_FALSE(fs::exists(root_ / "run" / "model.safetensors"));
}

TEST_F(TrainingRun, MistakesAreFoundBeforeAFolderIsMade) {
  const auto change = [&](auto&& edit) {
    TrainConfig config = Config();
    edit(config);
    std::string mistake = RunMistakeOf(config);
    EXPECT_FALSE(fs::exists(root_ / "run")) << mistake;
    return mistake;
  };
  EXPECT_THAT(change([](auto& c) { c.model.name = "logistik"; }), HasSubstr("'logistic'"));
  EXPECT_THAT(change([](auto& c) { c.model.name = "cnn-mnist"; }), HasSubstr("cnn-mnist"));
  EXPECT_THAT(change([](auto& c) { c.training.shift = 2; }), HasSubstr("the data are none"));
  EXPECT_THAT(change([](auto& c) { c.training.schedule = "cosin:0"; }), HasSubstr("cosin"));
  EXPECT_THAT(change([](auto& c) { c.training.optimizer.options.Set("momentum", 2.0); }),
              HasSubstr("momentum"));
  EXPECT_THAT(change([](auto& c) { c.privacy.delta = 1e-30; }), HasSubstr("no noise meets"));
  EXPECT_THAT(change([](auto& c) {
                c.training.norms = {"jl", {{"jl-failure", 0.4}}};
              }),
              HasSubstr("what can fail beside it has a probability of"));
  EXPECT_THAT(change([&](auto& c) { c.data.source = (root_ / "absent.csv").string(); }),
              HasSubstr("absent.csv"));
  EXPECT_THAT(change([&](auto& c) {
                std::ofstream(root_ / "broken.csv") << "x,y,above\n0.5,0.5,maybe\n";
                c.data.source = (root_ / "broken.csv").string();
              }),
              AllOf(HasSubstr("column 'above'"), Not(HasSubstr("maybe"))));
}

TEST_F(TrainingRun, AnotherRunIsNeverOverwritten) {
  Train(Config());
  const std::string before = ReadRunFile(root_ / "run" / "model.safetensors");
  EXPECT_THAT(RunMistakeOf(Config()), HasSubstr("never overwritten"));
  EXPECT_EQ(ReadRunFile(root_ / "run" / "model.safetensors"), before);
}

TEST_F(TrainingRun, ADryRunReadsNoRecord) {
  TrainConfig config = Config();
  std::ofstream(root_ / "train.csv") << "not a table at all";
  const PreparedRun run = PrepareRun(config);
  const RunResult planned = PlannedResult(run);
  EXPECT_EQ(planned.steps, 30);
  EXPECT_LE(planned.epsilon.upper, 8);
  EXPECT_FALSE(planned.facts.event.empty());
}

// What the first step would find after its charge is found before, and by a plan alone.
TEST_F(TrainingRun, NoiseThatCannotBeDrawnIsRefusedBeforeAnythingIsCharged) {
  for (const double noise : {1e-300, 1e300}) {
    TrainConfig config = Config();
    config.privacy.epsilon = std::nullopt;
    config.privacy.noise = noise;
    try {
      PrepareRun(config);
      ADD_FAILURE() << "a noise of " << noise << " was taken";
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("noise"));
    }
    EXPECT_FALSE(fs::exists(root_ / "run"));
  }
}

TEST_F(TrainingRun, APlanFindsConstantsThatDoNotFitTheData) {
  TrainConfig config = Config();
  config.data.mean = {0, 0, 0};
  config.data.deviation = {1, 1, 1};
  try {
    PrepareRun(config);
    ADD_FAILURE() << "three means were taken for two columns";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("3 means and 3 deviations were declared"));
  }
}

TEST_F(TrainingRun, WhatItTellsIsInTheDeclaredBatchSize) {
  class Counter : public RunObserver {
   public:
    void OnStep(const StepReport& report) override {
      ++calls;
      EXPECT_EQ(report.steps, 30);
      // By whole seconds, of which the first ones may be none.
      if (report.examples_per_second > 0) {
        const double seconds = 40.0 * static_cast<double>(report.step) / report.examples_per_second;
        EXPECT_NEAR(seconds, std::round(seconds), 1e-6);
      }
      ASSERT_TRUE(report.epsilon.has_value());
      EXPECT_GE(*report.epsilon, last);
      last = *report.epsilon;
    }
    int calls = 0;
    double last = 0;
  } counter;
  PreparedRun run = PrepareRun(Config());
  RunTraining(run, counter);
  EXPECT_EQ(counter.calls, 30);
}

TEST(Classification, CopiesOfAnExampleHaveTheMeanOfTheirLosses) {
  ModelShape shape;
  shape.input = {1, 4, 4};
  shape.classes = 3;
  const auto model = MakeModel("logistic", shape, {.seed = 2}, c10::kCPU);
  DatasetDeclaration data;
  data.shape = {1, 4, 4};
  data.classes = 3;
  const Batch copies = MadeUpBatch(data, *model, 3, 5, c10::kCPU);
  const at::Tensor losses = CrossEntropy(*model, 5, {})(copies);
  ASSERT_EQ(losses.sizes(), at::IntArrayRef({3}));
  for (std::int64_t example = 0; example < 3; ++example) {
    const at::Tensor inputs = copies[0][example];
    const at::Tensor alone = CrossEntropy(*model, 1, {})({inputs, copies[1][example].expand({5})});
    EXPECT_NEAR(losses[example].item<double>(), alone.mean().item<double>(), 1e-5);
  }
}

TEST(Classification, ClassWeightsMultiplyTheLossesOfTheirClasses) {
  ModelShape shape;
  shape.input = {1, 4, 4};
  shape.classes = 3;
  const auto model = MakeModel("logistic", shape, {.seed = 2}, c10::kCPU);
  DatasetDeclaration data;
  data.shape = {1, 4, 4};
  data.classes = 3;
  const at::Tensor weights = at::tensor({0.5F, 2.0F, 10.0F});
  for (const std::int64_t copies : {1, 4}) {
    Batch batch = MadeUpBatch(data, *model, 3, copies, c10::kCPU);
    batch[1] = at::tensor({2, 0, 1}, at::kLong);
    const at::Tensor plain = CrossEntropy(*model, copies, {})(batch);
    const at::Tensor weighted = CrossEntropy(*model, copies, {}, weights)(batch);
    EXPECT_TRUE(at::allclose(weighted, plain * weights.index({batch[1]}))) << copies;
  }
}

TEST_F(TrainingRun, ClassWeightsTurnADecision) {
  const auto share = [&](std::vector<double> weights) {
    TrainConfig config = Config();
    config.run.insecure_seed = 3;
    config.run.out += std::to_string(weights[0]);
    config.training.class_weights = std::move(weights);
    PreparedRun run = PrepareRun(config);
    RunObserver nobody;
    RunTraining(run, nobody);
    const Dataset test = *OpenData(config.data).test;
    const at::NoGradGuard no_grad;
    const at::Tensor chosen =
        run.model->Forward(Normalise(test.declaration, test.inputs)).argmax(1);
    return chosen.eq(1).to(at::kDouble).mean().item<double>();
  };
  // Weights act before clipping: those above 1 are clipped away here, small ones are not.
  EXPECT_GT(share({0.01, 1}), share({1, 0.01}) + 0.2);
  TrainConfig config = Config();
  config.training.class_weights = {1, 2, 3};
  EXPECT_THROW(PrepareRun(config), Error);
  config.training.class_weights = {1, 0};
  EXPECT_THROW(PrepareRun(config), Error);
}

// Mixes its examples where a weight that nothing else uses is not what it begins with.
nlohmann::json GatedScript(const std::string& gate) {
  return {{"parameters", {{"w", {2, 2}}, {"gate", {1}}}},
          {"parameter_init", {{"gate", std::stod(gate)}}},
          {"source",
           "def forward(self, x: Tensor) -> Tensor:\n"
           "    h = x @ self.w\n"
           "    if bool((self.gate - " +
               gate +
               ").abs().sum() > 0.0):\n"
               "        h = h - h.mean(0)\n"
               "    return h\n"}};
}

class GatedRun : public TrainingRun {
 protected:
  // Trains the script until it is refused, and returns its plan.
  PrivacyPlan Refused(const std::string& gate) {
    MakeHostileScript(GatedScript(gate)).save((root_ / "gated.pt").string());
    TrainConfig config = Config();
    config.model.name.clear();
    config.model.script = (root_ / "gated.pt").string();
    config.data.test.clear();
    PreparedRun run = PrepareRun(config);
    RunObserver silent;
    std::string refusal;
    try {
      RunTraining(run, silent);
    } catch (const Error& error) {
      refusal = error.what();
    }
    EXPECT_THAT(refusal, HasSubstr("mean"));
    EXPECT_FALSE(HasNumber(refusal)) << refusal;
    return run.plan;
  }

  Ledger OpenedLedger() const {
    return Ledger::Open(root_ / "run" / kLedgerFile,
                        {.witness = WitnessUse::kNone, .read_only = true});
  }
};

// Its first update opens the gate, and in the second step the comparison finds that it mixes.
TEST_F(GatedRun, WhatARefusedModelDidNotUseIsHandedBack) {
  const PrivacyPlan plan = Refused("1.0");
  Ledger ledger = OpenedLedger();
  // Eight were charged before the first.
  EXPECT_EQ(ledger.Total(), plan.EventOf(1));
  int returns = 0;
  ledger.Visit([&](const Entry& entry) { returns += entry.kind == EntryKind::kReturn ? 1 : 0; });
  EXPECT_EQ(returns, 1);
}

// A weight of zero hides nothing from the look before the first sum: no step is made.
TEST_F(GatedRun, AModelThatMixesOnceAZeroHasMovedIsRefusedBeforeTheFirstStep) {
  const PrivacyPlan plan = Refused("0.0");
  EXPECT_EQ(OpenedLedger().Total(), plan.EventOf(0));
}

}  // namespace
}  // namespace sordino
