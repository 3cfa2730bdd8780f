#include "sordino/runs/internal/run_inputs.h"

#include <ATen/Functions.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/api/module.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "sordino/base/durable_file.h"
#include "sordino/base/error.h"
#include "sordino/base/sha256.h"
#include "sordino/base/testing/test_folder.h"
#include "sordino/models/safetensors.h"
#include "sordino/runs/run_folder.h"
#include "sordino/runs/testing/run_files.h"
#include "sordino/runs/training_run.h"
#include "sordino/training/testing/trainer_cases.h"

namespace sordino {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// The current folder, for as long as it lives.
class WorkingFolder {
 public:
  explicit WorkingFolder(const fs::path& folder) : before_(fs::current_path()) {
    fs::current_path(folder);
  }
  ~WorkingFolder() { fs::current_path(before_); }
  WorkingFolder(const WorkingFolder&) = delete;
  WorkingFolder& operator=(const WorkingFolder&) = delete;

 private:
  fs::path before_;
};

class StopAfterTen : public RunObserver {
 public:
  void OnStep(const StepReport& report) override {
    if (report.step == 10) std::raise(SIGINT);
  }
};

// A run of a script, everything named by relative paths.
class RunInputs : public ::testing::Test {
 protected:
  RunInputs() : here_(root_ / "") {
    WritePoints("train.csv", 200);
    WriteScript("net.pt", "x @ self.w");
  }

  static void WriteScript(const fs::path& file, const std::string& body) {
    torch::jit::Module module("net");
    at::manual_seed(3);
    module.register_parameter("w", at::randn({2, 2}).requires_grad_(true), false);
    module.define("def forward(self, x):\n  return " + body + "\n");
    module.save(file.string());
  }

  static TrainConfig Config() {
    TrainConfig config;
    config.data.source = "train.csv";
    config.data.columns.declared = {"x:numeric:0:1", "y:numeric:0:1", "above:label:no|yes"};
    config.data.records = 200;
    config.model.script = "net.pt";
    config.privacy.epsilon = 8;
    config.privacy.delta = 1e-5;
    config.training.batch = 40;
    config.training.steps = 20;
    config.run.out = "run";
    return config;
  }
  template <typename Observer = RunObserver>
  static RunResult Train() {
    PreparedRun run = PrepareRun(Config());
    Observer observer;
    return RunTraining(run, observer);
  }
  static at::Tensor Predictions(const fs::path& folder) {
    const at::Tensor points = at::arange(20, at::kFloat).view({10, 2}).div(20);
    return OpenRun(folder, c10::kCPU).model->Forward(points);
  }
  static void Complains(const fs::path& folder, const std::string& about) {
    EXPECT_THAT([&] { OpenRun(folder, c10::kCPU); }, ThrowsMessage<Error>(HasSubstr(about)));
  }

  const TestFolder root_;
  const WorkingFolder here_;
};

TEST_F(RunInputs, AFolderThatWasMovedNeedsNothingElse) {
  Train();
  const at::Tensor before = Predictions("run");
  fs::create_directory("elsewhere");
  fs::rename("run", "elsewhere/moved");
  fs::remove("net.pt");
  fs::remove("train.csv");
  const WorkingFolder there("elsewhere");
  EXPECT_TRUE(at::equal(Predictions("moved"), before));
  EXPECT_EQ(KeptConfig("moved").ModelName(), "net");
}

TEST_F(RunInputs, ARunGoesOnFromAnotherFolder) {
  Train<StopAfterTen>();
  fs::create_directory("elsewhere");
  fs::remove("net.pt");
  const WorkingFolder there("elsewhere");
  PreparedRun run = PrepareResume("../run");
  RunObserver silent;
  EXPECT_EQ(RunTraining(run, silent).steps, 20);
}

TEST_F(RunInputs, AnotherOriginalChangesNothingAndAnotherCopyIsRefused) {
  Train();
  const at::Tensor before = Predictions("run");
  WriteScript("net.pt", "-(x @ self.w)");
  EXPECT_TRUE(at::equal(Predictions("run"), before));
  fs::copy_file("net.pt", "run/script/net.pt", fs::copy_options::overwrite_existing);
  Complains("run", "'run/script/net.pt' was changed");
  fs::remove("run/script/net.pt");
  Complains("run", "'run/script/net.pt' of the run is gone");
}

TEST_F(RunInputs, EveryOtherChangeIsFoundToo) {
  Train();
  const auto changed = [](const fs::path& file, const std::string& content,
                          const std::string& about) {
    const std::string before = ReadRunFile(file);
    WriteWholeFile(file, content);
    Complains("run", about);
    WriteWholeFile(file, before);
    EXPECT_NO_THROW(OpenRun("run", c10::kCPU));
  };
  const std::string config = ReadRunFile("run/config.toml");
  changed("run/config.toml", config + "\n", "'run/config.toml' was changed");
  changed("run/SHA256SUMS", Sha256Hex(config) + "  config.toml\n", "are those of another run");
  changed("run/SHA256SUMS", "", "has no SHA256SUMS");
  changed("run/SHA256SUMS", "config.toml\n", "SHA256SUMS' was changed");
  SafetensorsFile model = ReadSafetensors("run/model.safetensors");
  model.tensors.front().second = model.tensors.front().second.add(1);
  WriteSafetensors("other.safetensors", model.tensors, model.metadata);
  changed("run/model.safetensors", ReadRunFile("other.safetensors"),
          "weights in 'run/model.safetensors'");
  model.metadata.erase("weights_sha256");
  WriteSafetensors("other.safetensors", model.tensors, model.metadata);
  changed("run/model.safetensors", ReadRunFile("other.safetensors"), "weights_sha256");
}

TEST_F(RunInputs, ARunDoesNotGoOnWithAnotherScript) {
  Train<StopAfterTen>();
  WriteScript("run/script/net.pt", "-(x @ self.w)");
  EXPECT_THAT([] { PrepareResume("run"); },
              ThrowsMessage<Error>(HasSubstr("'run/script/net.pt' was changed")));
}

TEST_F(RunInputs, PrivateDataAreNeitherCopiedNorHashed) {
  Train();
  const std::string hash = Sha256Hex(ReadRunFile("train.csv"));
  for (const auto& entry : fs::recursive_directory_iterator("run")) {
    if (!entry.is_regular_file()) continue;
    const std::string content = ReadRunFile(entry.path());
    EXPECT_EQ(content.find(hash), std::string::npos) << entry.path();
    EXPECT_NE(Sha256Hex(content), hash) << entry.path();
  }
}

TEST_F(RunInputs, TheWordsOfTextAreKeptInTheOrderOfTheirIds) {
  TrainConfig config;
  config.data.source = "reviews.tsv";
  config.data.vocabulary = "words.txt";
  config.data.classes = 2;
  config.data.length = 4;
  config.model.name = "lstm";
  std::ofstream("reviews.tsv") << "1\tgood film\n0\tbad film\n";
  std::ofstream("words.txt") << "zebra\ngood\n\nbad\nfilm\n";
  fs::create_directory("kept");
  const std::string hash = KeepInputs("kept", config);
  EXPECT_EQ(CheckInputs("kept"), hash);
  EXPECT_EQ(ReadRunFile("kept/vocabulary.txt"), "zebra\ngood\nbad\nfilm\n");
  EXPECT_EQ(KeptConfig("kept").data.vocabulary, "kept/vocabulary.txt");
  std::ofstream("kept/vocabulary.txt") << "good\nzebra\nbad\nfilm\n";
  EXPECT_THAT([] { CheckInputs("kept"); },
              ThrowsMessage<Error>(HasSubstr("'kept/vocabulary.txt' was changed")));
}

}  // namespace
}  // namespace sordino
