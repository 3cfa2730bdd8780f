#include "sordino/training/run_folder.h"

#include <ATen/ops/equal.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "sordino/base/error.h"
#include "sordino/models/safetensors.h"
#include "sordino/training/train_settings.h"

namespace sordino {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class RunFolderTest : public ::testing::Test {
 protected:
  RunFolderTest()
      : root_(fs::path(::testing::TempDir()) / ("sordino_run_" + std::to_string(getpid()))) {
    fs::remove_all(root_);
    fs::create_directories(root_);
  }
  ~RunFolderTest() override { fs::remove_all(root_); }

  static std::string Read(const fs::path& file) {
    std::ifstream in(file, std::ios::binary);
    std::ostringstream content;
    content << in.rdbuf();
    return content.str();
  }

  fs::path root_;
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

TEST_F(RunFolderTest, FilesAreWrittenWholeAndLeaveNothingBeside) {
  WriteWholeFile(root_ / "a.txt", "first");
  WriteWholeFile(root_ / "a.txt", "second, longer");
  EXPECT_EQ(Read(root_ / "a.txt"), "second, longer");
  EXPECT_EQ(std::distance(fs::directory_iterator(root_), {}), 1);
  EXPECT_THROW(WriteWholeFile(root_ / "absent" / "a.txt", "x"), std::runtime_error);
}

TEST_F(RunFolderTest, AFileThatCannotBeMovedKeepsTheOldOne) {
  fs::create_directories(root_ / "taken" / "full");
  EXPECT_THROW(WriteWholeFile(root_ / "taken", "x"), std::runtime_error);
  EXPECT_TRUE(fs::is_directory(root_ / "taken" / "full"));
  EXPECT_EQ(std::distance(fs::directory_iterator(root_), {}), 1);  // no draft is left
}

TEST_F(RunFolderTest, Sha256IsThatOfTheStandard) {
  EXPECT_EQ(Sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
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
  const auto first = nlohmann::json::parse(Read(root_ / "run" / "metrics.jsonl"));
  EXPECT_EQ(first["epsilon"], 0.5);  // what is spent is the upper end
  EXPECT_EQ(first["test_accuracy"], 0.25);
  EXPECT_EQ(first["test_loss"], nullptr);
  row.is_private = false;
  row.epsilon.reset();
  folder.AppendMetrics(row);
  const std::string text = Read(root_ / "run" / "metrics.jsonl");
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2);
  EXPECT_THAT(text.substr(text.find('\n') + 1), StartsWith("{\"private\":false,"));
}

TEST_F(RunFolderTest, AFolderThatCannotBeMadeIsAMistake) {
  std::ofstream(root_ / "file") << "x";
  EXPECT_THROW(RunFolder(root_ / "file" / "run"), Error);
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
  EXPECT_EQ(metadata.at("statement_sha256"), Sha256("abc"));
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
  config.model.seed = 5;
  const auto model = MakeConfiguredModel(config, ModelShapeOf(Points()), c10::kCPU);
  WriteWholeFile(root_ / "config.toml", WriteTrainConfig(config));
  EXPECT_THROW(OpenRun(root_, c10::kCPU), Error);  // a run that did not end
  SaveModel(root_ / "model.safetensors", *model, Record());
  config.model.seed = 6;  // other weights, if they came from the seed
  WriteWholeFile(root_ / "config.toml", WriteTrainConfig(config));
  const TrainedRun run = OpenRun(root_, c10::kCPU);
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
  const auto model = MakeConfiguredModel(Config(), ModelShapeOf(Points()), c10::kCPU);
  auto tensors = model->Parameters();
  for (auto& [name, tensor] : tensors) tensor = tensor.detach();
  tensors.pop_back();
  WriteWholeFile(root_ / "config.toml", WriteTrainConfig(Config()));
  WriteSafetensors(root_ / "model.safetensors", tensors, ModelMetadata(Record()));
  EXPECT_THROW(OpenRun(root_, c10::kCPU), Error);
}

}  // namespace
}  // namespace sordino
