// The clipping policies and the ways to find norms, from the flag to the run folder.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "sordino/cli/command_test_support.h"
#include "sordino/torch_cli/testing/points_table.h"
#include "sordino/torch_cli/testing/spawned_program.h"

namespace sordino {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

// The hash of the weights; what else the file says counts the steps that were lost.
std::string Weights(const std::string& run) {
  const std::string model = ReadTestFile(run + "/model.safetensors");
  const std::string key = "\"weights_sha256\":\"";
  const std::size_t at = model.find(key);
  EXPECT_NE(at, std::string::npos) << run;
  return model.substr(at + key.size(), 64);
}

struct ClippingCase {
  const char* name;
  const char* flags;
  const char* plan;  // in the statement
  int steps;
};

class TrainClipping : public ::testing::TestWithParam<ClippingCase> {
 protected:
  TrainClipping()
      : train_(
            WriteTestFile(std::string("clipping-") + GetParam().name + ".csv", PointsTable(300))) {
    setenv("SORDINO_STATE", (train_ + ".state").c_str(), 1);
  }
  ~TrainClipping() override {
    unsetenv("SORDINO_STATE");
    for (const char* end : {".state", ".whole", ".killed", ""}) fs::remove_all(train_ + end);
  }

  std::vector<std::string> Line(const std::string& out, const std::string& more) const {
    std::vector<std::string> words = Words(
        "train --model mlp --width 8 --records 300 --batch 30 --clip 1 --threads 1 "
        "--delta 1e-5 --noise 1 " +
        std::string(GetParam().flags) + " --steps " + std::to_string(GetParam().steps) + " " +
        more);
    for (const std::string& word :
         {std::string("--data"), train_, std::string("--out"), train_ + out,
          std::string("--columns"), std::string("x:numeric:0:1"), std::string("y:numeric:0:1"),
          std::string("above:label:no|yes")}) {
      words.push_back(word);
    }
    return words;
  }

  // Runs until a checkpoint is there, and is killed.
  void RunAndKill(const std::vector<std::string>& words) const {
    const pid_t child = SpawnProgram(words);
    ASSERT_GE(child, 0);
    const std::string checkpoint = train_ + ".killed/checkpoints/step-000000020";
    for (int i = 0; i < 6000 && !fs::exists(checkpoint); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status));
  }

  std::string train_;
};

TEST_P(TrainClipping, ADryRunNamesItAndTrainsNothing) {
  const CommandOutcome outcome = RunProgram(Line(".whole", "--dry-run"));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("PLANNED"));
  EXPECT_FALSE(fs::exists(train_ + ".whole"));
}

TEST_P(TrainClipping, AKilledSeededRunResumesBitForBitAndItsStatementNamesIt) {
  const std::string seeded = "--insecure-seed 5 --checkpoint-every 10";
  const CommandOutcome whole = RunProgram(Line(".whole", seeded));
  ASSERT_EQ(whole.exit_code, 0) << whole.err;
  std::string statement = ReadTestFile(train_ + ".whole/statement.txt");
  for (char& c : statement) c = c == '\n' ? ' ' : c;
  while (statement.find("  ") != std::string::npos) statement.erase(statement.find("  "), 1);
  EXPECT_THAT(statement, HasSubstr(GetParam().plan));

  RunAndKill(Line(".killed", seeded));
  const CommandOutcome resumed = RunProgram({"train", "--resume", train_ + ".killed"});
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_EQ(Weights(train_ + ".killed"), Weights(train_ + ".whole"));
}

INSTANTIATE_TEST_SUITE_P(
    Policies, TrainClipping,
    ::testing::Values(
        ClippingCase{"adaptive", "--clipping adaptive", "adaptive clipping at 1", 1500},
        ClippingCase{"adaptive_layerwise", "--clipping adaptive-layerwise --clip-rate 0.1",
                     "adaptive-layerwise clipping at 1", 1500},
        ClippingCase{"preconditioned", "--clipping preconditioned --clip-moment-decay 0.9",
                     "preconditioned clipping at 1 of scaled gradients", 800},
        ClippingCase{"adaclip", "--clipping adaclip --clip-mean-decay 0.9",
                     "AdaCliP clipping at 1 of centred and scaled gradients", 800},
        ClippingCase{"jl", "--norms jl --jl-directions 8 --jl-failure 1e-12",
                     "norms estimated from 8 directions with failure probability 1e-12 a step",
                     300}),
    [](const auto& tested) { return std::string(tested.param.name); });

class TrainClippingMistakes : public ::testing::Test {
 protected:
  void Expect(const std::string& flags, const std::string& part) const {
    const CommandOutcome outcome =
        RunProgram(Words("train --dry-run --data digits --model mlp --epsilon 1 " + flags));
    EXPECT_EQ(outcome.exit_code, 2) << flags;
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, MatchesRegex("sordino: [^\n]+\n")) << flags;
    EXPECT_THAT(outcome.err, HasSubstr(part)) << flags;
  }
};

TEST_F(TrainClippingMistakes, AreToldInOneSentence) {
  Expect("--clipping adaclipp", "did you mean 'adaclip'?");
  Expect("--norms ghosts", "did you mean 'ghost'?");
  Expect("--quantile 0.7", "which does not have it");
  Expect("--clipping adaptive --quantile 1.5", "the quantile of adaptive clipping");
  Expect("--clipping adaptive-layerwise --noise-kind laplace", "needs Gaussian noise");
  Expect("--clipping adaptive-layerwise --count-noise 0.01", "leaves nothing");
  Expect("--clipping adaclip --norms jl", "use exact norms");
  Expect("--clipping preconditioned --norms jl", "use exact norms");
  Expect("--clipping adaclip --clip-schedule linear:0.5", "leave out the schedule");
  Expect("--clipping adaclip --clip-variance-min 2", "smallest variance is 2");
  Expect("--clipping global", "needs a threshold");
  Expect("--norms jl --jl-directions 1 --jl-failure 1e-15", "use more directions");
  Expect("--norms jl --jl-failure 1e-3", "no noise meets epsilon 1");
  Expect("--norms ghost --jl-directions 8", "which does not have it");
}

// What was left out of an older configuration, or written there without a meaning, changes nothing.
TEST_F(TrainClippingMistakes, AnOlderConfigurationIsRead) {
  const std::string file = WriteTestFile(
      "older.toml",
      "[data]\nsource = \"digits\"\n[model]\nname = \"mlp\"\n[privacy]\nepsilon = 1.0\n"
      "clipping = \"flat\"\nclip = 0.1\nclip-threshold = 0.0\nquantile = 0.5\nclip-rate = 0.2\n"
      "count-noise = 0.0\n[training]\nnorms = \"automatic\"\n");
  const CommandOutcome outcome = RunProgram({"train", file, "--dry-run"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  fs::remove(file);
}

}  // namespace
}  // namespace sordino
