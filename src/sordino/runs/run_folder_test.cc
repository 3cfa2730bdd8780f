#include "sordino/runs/run_folder.h"

#include <ATen/ops/equal.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "sordino/base/durable_file.h"
#include "sordino/base/error.h"
#include "sordino/base/sha256.h"
#include "sordino/base/testing/test_folder.h"
#include "sordino/models/safetensors.h"
#include "sordino/runs/internal/run_inputs.h"
#include "sordino/runs/testing/run_files.h"

namespace sordino {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class RunFolderTest : public ::testing::Test {
 protected:
  const TestFolder root_;
};

TrainConfig Config() {
  TrainConfig config;
  config.data.source = "a/b/my data.csv";
  config.model.name = "mlp";
  return config;
}

DatasetDeclaration Points() {
  DatasetDeclaration data;
  data.name = "points";
  data.kind = InputKind::kFeatures;
  data.shape = {3};
  data.classes = 2;
  data.class_names = {"no, never", "\"yes\""};
  data.normalisation.mean = {0.1, 0.2, 1.0 / 3};
  data.normalisation.deviation = {1, 2, 3};
  return data;
}

ModelRecord Record() {
  ModelRecord record;
  record.name = "mlp";
  record.data = Points();
  record.epsilon = {1, 1.25};
  record.delta = 1e-6;
  record.steps = 9;
  record.statement = "abc";
  return record;
}

TEST_F(RunFolderTest, DraftsOfAProcessThatWasKilledAreClearedAway) {
  { const RunFolder made(root_ / "run"); }
  WriteWholeFile(root_ / "run" / "config.toml", "");
  std::ofstream(root_ / "run" / "statement.txt.4711.tmp") << "half a";
  { const RunFolder again = RunFolder::Reopen(root_ / "run", 0); }
  EXPECT_FALSE(fs::exists(root_ / "run" / "statement.txt.4711.tmp"));
  EXPECT_TRUE(fs::exists(root_ / "run" / "config.toml"));
}

TEST_F(RunFolderTest, AFolderThatHoldsSomethingIsNeverChosen) {
  TrainConfig config = Config();
  config.run.out = (root_ / "new").string();
  EXPECT_EQ(ChooseRunFolder(config, 0), root_ / "new");
  fs::create_directories(root_ / "new");
  EXPECT_EQ(ChooseRunFolder(config, 0), root_ / "new");  // empty: nothing is lost
  std::ofstream(root_ / "new" / "x") << "x";
  EXPECT_THROW(ChooseRunFolder(config, 0), Error);
  config.run.out = (root_ / "new" / "x").string();
  EXPECT_THROW(ChooseRunFolder(config, 0), Error);
}

TEST_F(RunFolderTest, WithoutANameItIsNamedByTimeDataAndModel) {
  const fs::path before = fs::current_path();
  fs::current_path(root_);
  const fs::path folder = ChooseRunFolder(Config(), 1'700'000'000);
  EXPECT_EQ(folder, fs::path("runs/20231114-221320-my-data.csv-mlp"));
  fs::create_directories(folder);
  EXPECT_EQ(ChooseRunFolder(Config(), 1'700'000'000).string(), folder.string() + "-2");
  fs::current_path(before);
}

TEST_F(RunFolderTest, MetricsGrowByWholeLinesThatAreThereAtOnce) {
  RunFolder folder(root_ / "run");
  MetricsRow row;
  row.step = 5;
  row.epsilon = {0.4, 0.5};
  row.test_accuracy = 0.25;
  folder.AppendMetrics(row);
  const auto first = nlohmann::json::parse(ReadRunFile(root_ / "run" / "metrics.jsonl"));
  EXPECT_EQ(first["epsilon"], 0.5);  // what is spent is the upper end
  EXPECT_EQ(first["test_accuracy"], 0.25);
  EXPECT_EQ(first["test_loss"], nullptr);
  row.is_private = false;
  row.epsilon.reset();
  folder.AppendMetrics(row);
  const std::string text = ReadRunFile(root_ / "run" / "metrics.jsonl");
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2);
  EXPECT_THAT(text.substr(text.find('\n') + 1), StartsWith("{\"private\":false,"));
}

TEST_F(RunFolderTest, AFolderThatCannotBeMadeIsAMistake) {
  std::ofstream(root_ / "file") << "x";
  EXPECT_THROW(RunFolder(root_ / "file" / "run"), Error);
}

TEST_F(RunFolderTest, OneRunAtATimeHoldsAFolder) {
  const auto holds = [&](const std::function<void()>& open) {
    try {
      open();
      ADD_FAILURE() << "two runs in one folder";
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("is in use by another run;"));
      EXPECT_EQ(std::string(error.what()).find(". "), std::string::npos) << error.what();
    }
  };
  {
    RunFolder first(root_ / "run");
    first.Write("config.toml", "x");
    holds([&] { RunFolder(root_ / "run"); });
    holds([&] { RunFolder::Reopen(root_ / "run", 3); });
    RunFolder moved = std::move(first);
    holds([&] { RunFolder::Reopen(root_ / "run", 3); });
  }
  EXPECT_FALSE(fs::exists(root_ / "run" / ".lock"));  // it left nothing behind
  EXPECT_NO_THROW(RunFolder::Reopen(root_ / "run", 3));
  EXPECT_THROW(RunFolder(root_ / "run"), Error) << "a run is never overwritten";
}

TEST_F(RunFolderTest, AProcessThatDiesLeavesTheFolderToTheNext) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    RunFolder folder(root_ / "run");
    folder.Write("config.toml", "x");
    static_cast<void>(!write(ready[1], "x", 1));
    while (true) pause();
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  EXPECT_THROW(RunFolder::Reopen(root_ / "run", 0), Error);
  ASSERT_EQ(kill(child, SIGKILL), 0);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  close(ready[0]);
  close(ready[1]);
  EXPECT_TRUE(fs::exists(root_ / "run" / ".lock"));
  EXPECT_NO_THROW(RunFolder::Reopen(root_ / "run", 0));
}

// A program that is started from a run, and outlives it, does not hold its folder.
TEST_F(RunFolderTest, TheLockIsNotInherited) {
  pid_t child = -1;
  {
    RunFolder folder(root_ / "run");
    folder.Write("config.toml", "x");
    child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      execl("/bin/sleep", "sleep", "30", nullptr);
      _exit(1);
    }
    // Wait until the program has begun: its command line is no longer that of this one.
    const fs::path command = fs::path("/proc") / std::to_string(child) / "cmdline";
    for (int i = 0; i < 60'000 && ReadRunFile(command).find("sleep") != 0; ++i) usleep(1000);
    ASSERT_EQ(ReadRunFile(command).find("sleep"), 0U);
  }
  EXPECT_NO_THROW(RunFolder::Reopen(root_ / "run", 0));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

MetricsRow RowAt(std::int64_t step) {
  MetricsRow row;
  row.step = step;
  row.epsilon = {0.1, 0.1 * static_cast<double>(step)};
  row.test_accuracy = 1.0 / static_cast<double>(step);
  row.seconds = 0.7 * static_cast<double>(step);
  return row;
}

TEST_F(RunFolderTest, MetricsComeBackAsTheyWereWritten) {
  const fs::path run = root_ / "run";
  EXPECT_TRUE(ReadMetrics(run).empty());
  RunFolder folder(run);
  EXPECT_TRUE(ReadMetrics(run).empty());
  for (const std::int64_t step : {3, 6, 9}) folder.AppendMetrics(RowAt(step));
  MetricsRow plain;
  plain.is_private = false;
  plain.step = 12;
  plain.test_loss = 1.0 / 3;
  folder.AppendMetrics(plain);
  const std::vector<MetricsRow> rows = ReadMetrics(run);
  ASSERT_EQ(rows.size(), 4U);
  for (std::size_t i = 0; i < 3; ++i) {
    const MetricsRow wanted = RowAt(static_cast<std::int64_t>(3 * i + 3));
    EXPECT_TRUE(rows[i].is_private);
    EXPECT_EQ(rows[i].step, wanted.step);
    ASSERT_TRUE(rows[i].epsilon.has_value());
    EXPECT_EQ(rows[i].epsilon->upper, wanted.epsilon->upper);
    EXPECT_EQ(rows[i].epsilon->lower, 0);
    EXPECT_EQ(rows[i].test_accuracy, wanted.test_accuracy);
    EXPECT_EQ(rows[i].test_loss, std::nullopt);
    EXPECT_EQ(rows[i].seconds, wanted.seconds);
  }
  EXPECT_FALSE(rows[3].is_private);
  EXPECT_EQ(rows[3].epsilon, std::nullopt);
  EXPECT_EQ(rows[3].test_loss, 1.0 / 3);
}

TEST_F(RunFolderTest, MetricsBehindTheLastStepAreCutOff) {
  const fs::path run = root_ / "run";
  std::string first_two;
  {
    RunFolder folder(run);
    folder.Write("config.toml", "x");
    for (const std::int64_t step : {3, 6}) folder.AppendMetrics(RowAt(step));
    first_two = ReadRunFile(run / "metrics.jsonl");
    for (const std::int64_t step : {9, 12}) folder.AppendMetrics(RowAt(step));
  }
  {
    RunFolder folder = RunFolder::Reopen(run, 8);
    EXPECT_EQ(ReadRunFile(run / "metrics.jsonl"), first_two);
    folder.AppendMetrics(RowAt(10));
  }
  EXPECT_EQ(ReadRunFile(run / "metrics.jsonl"), first_two + MetricsLine(RowAt(10)) + "\n");
  // A crash in the middle of a line.
  std::ofstream(run / "metrics.jsonl", std::ios::app) << MetricsLine(RowAt(12)).substr(0, 40);
  EXPECT_EQ(ReadMetrics(run).size(), 3U);
  {
    RunFolder folder = RunFolder::Reopen(run, 1000);
    folder.AppendMetrics(RowAt(12));
  }
  ASSERT_EQ(ReadMetrics(run).size(), 4U);
  EXPECT_EQ(ReadMetrics(run).back().step, 12);
  // A last line that is whole but for its end may be a part of a longer one.
  std::ofstream(run / "metrics.jsonl", std::ios::app) << MetricsLine(RowAt(15));
  EXPECT_EQ(ReadMetrics(run).size(), 4U);
  RunFolder::Reopen(run, 0);
  EXPECT_EQ(ReadRunFile(run / "metrics.jsonl"), "");
  fs::remove(run / "metrics.jsonl");
  EXPECT_NO_THROW(RunFolder::Reopen(run, 5)) << "a crash before the first line";
}

TEST_F(RunFolderTest, LinesThatAreNoRowsAreLeftOut) {
  const fs::path run = root_ / "run";
  fs::create_directories(run);
  std::string text;
  for (const char* line :
       {"", "null", "[]", "{}", "{\"step\":1}", "{\"private\":1,\"step\":1,\"seconds\":1}",
        "{\"private\":true,\"step\":1.5,\"seconds\":1}",
        "{\"private\":true,\"step\":1,\"seconds\":\"x\"}", "\xff\xfe", "{\"step\":"}) {
    text += std::string(line) + "\n";
  }
  WriteWholeFile(run / "metrics.jsonl", text + MetricsLine(RowAt(4)) + "\n");
  const std::vector<MetricsRow> rows = ReadMetrics(run);
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].step, 4);
}

TEST_F(RunFolderTest, AFolderThatIsNoRunIsNotReopened) {
  fs::create_directories(root_ / "other");
  for (const char* name : {"other", "absent"}) {
    try {
      RunFolder::Reopen(root_ / name, 0);
      ADD_FAILURE() << "opened " << name;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("has no config.toml;"));
    }
  }
  EXPECT_FALSE(fs::exists(root_ / "absent"));
  EXPECT_TRUE(fs::is_empty(root_ / "other"));
}

TEST_F(RunFolderTest, WhatAModelTakesIsReadBackFromItsFile) {
  const DatasetDeclaration back = DeclarationFromMetadata(ModelMetadata(Record()), "f");
  const DatasetDeclaration data = Points();
  EXPECT_EQ(back.kind, data.kind);
  EXPECT_EQ(back.shape, data.shape);
  EXPECT_EQ(back.classes, data.classes);
  EXPECT_EQ(back.class_names, data.class_names);
  EXPECT_EQ(back.normalisation.mean, data.normalisation.mean);
  EXPECT_EQ(back.normalisation.deviation, data.normalisation.deviation);
  for (const char* key : {"kind", "input", "classes", "class_names", "vocabulary", "mean"}) {
    auto metadata = ModelMetadata(Record());
    metadata.erase(key);
    EXPECT_THROW(DeclarationFromMetadata(metadata, "f"), Error) << key;
    metadata[key] = "[[";
    EXPECT_THROW(DeclarationFromMetadata(metadata, "f"), Error) << key;
    metadata[key] = "-1";
    EXPECT_THROW(DeclarationFromMetadata(metadata, "f"), Error) << key;
  }
}

TEST_F(RunFolderTest, TheFileOfTheModelSaysWhetherItIsPrivate) {
  auto metadata = ModelMetadata(Record());
  EXPECT_EQ(metadata.at("private"), "yes");
  EXPECT_EQ(metadata.at("epsilon"), "1.25");
  EXPECT_EQ(metadata.at("statement_sha256"), Sha256Hex("abc"));
  for (const RunPrivacy privacy : {RunPrivacy::kNonPrivate, RunPrivacy::kSeeded}) {
    ModelRecord record = Record();
    record.privacy = privacy;
    metadata = ModelMetadata(record);
    EXPECT_EQ(metadata.begin()->first, "NOT PRIVATE");
    EXPECT_EQ(metadata.at("private"), "no");
    EXPECT_FALSE(metadata.contains("epsilon"));
  }
}

TEST_F(RunFolderTest, AModelComesBackWithItsWeights) {
  TrainConfig config = Config();
  config.data.source = "digits";
  config.model.seed = 5;
  const auto model = MakeConfiguredModel(config, ModelShapeOf(Points()), c10::kCPU);
  ModelRecord record = Record();
  config.model.seed = 6;  // other weights, if they came from the seed
  record.inputs = KeepInputs(root_ / "", config);
  EXPECT_THROW(OpenRun(root_ / "", c10::kCPU), Error);  // a run that did not end
  SaveModel(root_ / "model.safetensors", *model, record);
  const TrainedRun run = OpenRun(root_ / "", c10::kCPU);
  EXPECT_TRUE(run.is_private);
  const auto expected = model->Parameters();
  const auto loaded = run.model->Parameters();
  ASSERT_EQ(loaded.size(), expected.size());
  for (std::size_t i = 0; i < loaded.size(); ++i) {
    EXPECT_EQ(loaded[i].first, expected[i].first);
    EXPECT_TRUE(at::equal(loaded[i].second, expected[i].second)) << loaded[i].first;
  }
}

TEST_F(RunFolderTest, AFileWithoutAllWeightsIsRefused) {
  TrainConfig config = Config();
  config.data.source = "digits";
  const auto model = MakeConfiguredModel(config, ModelShapeOf(Points()), c10::kCPU);
  auto tensors = model->Parameters();
  for (auto& [name, tensor] : tensors) tensor = tensor.detach();
  const std::string missing = tensors.back().first;
  tensors.pop_back();
  ModelRecord record = Record();
  record.inputs = KeepInputs(root_ / "", config);
  auto metadata = ModelMetadata(record);
  metadata["weights_sha256"] = WeightsHash(tensors);
  WriteSafetensors(root_ / "model.safetensors", tensors, metadata);
  EXPECT_THAT([&] { OpenRun(root_ / "", c10::kCPU); },
              ::testing::ThrowsMessage<Error>(HasSubstr("'" + missing + "'")));
}

}  // namespace
}  // namespace sordino
