// Trainings with several real processes, from the flag to the run folder.
#include <ATen/Context.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "sordino/base/testing/test_folder.h"
#include "sordino/cli/command_test_support.h"
#include "sordino/distributed/testing/rank_processes.h"
#include "sordino/torch_cli/testing/points_table.h"
#include "sordino/torch_cli/testing/spawned_program.h"

namespace sordino {
namespace {

namespace fs = std::filesystem;
using OrderedJson = nlohmann::ordered_json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

class TrainRanks : public ::testing::Test {
 protected:
  TrainRanks() : train_((folder_.path() / "train.csv").string()) {
    std::ofstream(train_) << PointsTable(300);
    setenv("SORDINO_STATE", (folder_.path() / "state").c_str(), 1);
  }
  ~TrainRanks() override {
    for (const char* name : {"SORDINO_STATE", "RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT",
                             "SORDINO_JOIN_SECRET"}) {
      unsetenv(name);
    }
  }

  std::string Out(const std::string& name) const { return (folder_.path() / name).string(); }
  std::vector<std::string> Line(const std::string& out, const std::string& more) const {
    std::vector<std::string> words = Words(
        "train --model mlp --width 8 --records 300 --batch 30 --clip 1 --threads 1 --delta 1e-5 "
        "--noise 1 " +
        more);
    words.insert(words.end(), {"--data", train_, "--out", Out(out), "--columns", "x:numeric:0:1",
                               "y:numeric:0:1", "above:label:no|yes"});
    return words;
  }
  std::string Weights(const std::string& out) const {
    const std::string model = ReadTestFile(Out(out) + "/model.safetensors");
    const std::string key = "\"weights_sha256\":\"";
    const std::size_t at = model.find(key);
    EXPECT_NE(at, std::string::npos) << out;
    return model.substr(at + key.size(), 64);
  }

  // A seeded run with these numbers of processes.
  void ExpectTheSameWeights(const std::string& device, const std::vector<std::string>& counts) {
    for (const std::string& count : counts) {
      const CommandOutcome outcome =
          RunProgram(Line(count, fmt::format("--steps 20 --insecure-seed 5 --json --device {} "
                                             "--processes {}",
                                             device, count)));
      ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
      // Rank 0 speaks for all.
      EXPECT_EQ(OrderedJson::parse(outcome.out)["steps"], 20) << outcome.out;
      EXPECT_THAT(outcome.err, HasSubstr("train: 100%"));
      EXPECT_EQ(Weights(count), Weights(counts.front())) << count << " on " << device;
    }
  }

  const TestFolder folder_;
  const std::string train_;
};

TEST_F(TrainRanks, TheResultDoesNotDependOnTheNumberOfProcesses) {
  ExpectTheSameWeights("cpu", {"1", "2", "3", "5"});
}

// All of them on the first GPU of a machine that has one.
TEST_F(TrainRanks, TheResultDoesNotDependOnTheNumberOfProcessesOnAGpu) {
  if (at::getNumGPUs() == 0) GTEST_SKIP() << "no CUDA device";
  ExpectTheSameWeights("cuda:0", {"1", "2", "4"});
}

TEST_F(TrainRanks, ProcessesShareOutTheGpusOfTheMachine) {
  if (at::getNumGPUs() == 0) GTEST_SKIP() << "no CUDA device";
  ExpectTheSameWeights("cuda", {"1", "3"});
}

TEST_F(TrainRanks, OneChargeForAll) {
  const CommandOutcome outcome = RunProgram(Line("run", "--steps 12 --processes 3"));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const CommandOutcome shown = RunProgram({"ledger", "show", Out("run") + "/ledger.db", "--json"});
  EXPECT_EQ(OrderedJson::parse(shown.out)["runs"][0]["releases"], 12);
}

TEST_F(TrainRanks, MistakesAreOneSentenceOfRankZero) {
  for (const Mistake& mistake :
       {Mistake{"--processes 0", "--processes is 0; give a number from 1 to 256."},
        Mistake{"--processes 1000", "--processes is 1000"},
        Mistake{"--processes two", "--processes"},
        Mistake{"--join-timeout 0", "--join-timeout is 0; give seconds from 1 to 86400."},
        Mistake{"--processes 2 --clip -1", "clip"}}) {
    const CommandOutcome outcome =
        RunProgram(Line("mistake", std::string("--steps 2 ") + mistake.line));
    EXPECT_EQ(outcome.exit_code, 2) << mistake.line;
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, AllOf(MatchesRegex("sordino: [^\n]+\n"), HasSubstr(mistake.part)));
    EXPECT_FALSE(fs::exists(Out("mistake")));
  }
}

TEST_F(TrainRanks, TheEnvironmentIsChecked) {
  setenv("RANK", "0", 1);
  setenv("WORLD_SIZE", "0", 1);
  const CommandOutcome size = RunProgram(Line("run", "--steps 2"));
  EXPECT_EQ(size.exit_code, 2);
  EXPECT_THAT(size.err, HasSubstr("WORLD_SIZE is '0' in the environment"));
  setenv("WORLD_SIZE", "2", 1);
  setenv("MASTER_ADDR", "127.0.0.1", 1);
  setenv("MASTER_PORT", "1", 1);
  const CommandOutcome both = RunProgram(Line("run", "--steps 2 --processes 2"));
  EXPECT_EQ(both.exit_code, 2);
  EXPECT_THAT(both.err, HasSubstr("--processes starts ranks, and this process is rank 0 of 2"));
  // Without a secret nobody joins.
  const CommandOutcome secret = RunProgram(Line("run", "--steps 2"));
  EXPECT_EQ(secret.exit_code, 2);
  EXPECT_THAT(secret.err, HasSubstr("SORDINO_JOIN_SECRET is not set in the environment"));
  // A group of one is an ordinary run.
  setenv("WORLD_SIZE", "1", 1);
  EXPECT_EQ(RunProgram(Line("run", "--steps 2")).exit_code, 0);
}

// Of the ledger of a run.
int Releases(const std::string& folder) {
  const CommandOutcome shown = RunProgram({"ledger", "show", folder + "/ledger.db", "--json"});
  return OrderedJson::parse(shown.out)["runs"][0]["releases"];
}

// Starts a run, kills one of its processes when a checkpoint is there, and returns the exit code of
// the parent; 128 and the signal where that was killed.
class KilledRun {
 public:
  explicit KilledRun(const std::vector<std::string>& words) : parent_(SpawnProgram(words)) {}

  // The process of a rank, once it is there.
  pid_t Rank(int rank) const {
    const std::string children =
        "/proc/" + std::to_string(parent_) + "/task/" + std::to_string(parent_) + "/children";
    std::ifstream list(children);
    pid_t child = 0;
    while (list >> child) {
      const std::string variables = ReadTestFile("/proc/" + std::to_string(child) + "/environ");
      const std::string own = std::string("RANK=") + std::to_string(rank);
      if (variables.starts_with(own + '\0') ||
          variables.find('\0' + own + '\0') != std::string::npos) {
        return child;
      }
    }
    return -1;
  }
  pid_t parent() const { return parent_; }
  void WaitFor(const fs::path& file) const {
    for (int i = 0; i < 30000 && !fs::exists(file); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }
  int End() const {
    int status = 0;
    waitpid(parent_, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  pid_t parent_ = -1;
};

TEST_F(TrainRanks, ARunWhoseRankIsKilledResumesBitForBitWithAnotherNumber) {
  const std::string seeded = "--steps 1500 --insecure-seed 5 --checkpoint-every 10 --processes ";
  ASSERT_EQ(RunProgram(Line("whole", seeded + "2")).exit_code, 0);
  for (const int victim : {0, 2}) {
    const std::string name = "killed-" + std::to_string(victim);
    const KilledRun run(Line(name, seeded + "3"));
    run.WaitFor(Out(name) + "/checkpoints/step-000000020");
    const pid_t process = run.Rank(victim);
    ASSERT_GT(process, 0);
    kill(process, SIGKILL);
    EXPECT_EQ(run.End(), 4);
    EXPECT_FALSE(fs::exists(Out(name) + "/model.safetensors"));
    const CommandOutcome resumed = RunProgram({"train", "--resume", Out(name), "--processes", "2"});
    ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
    EXPECT_EQ(Weights(name), Weights("whole"));
  }
}

// The signal of one rank, of the last one, and of the parent, which passes it on to all.
TEST_F(TrainRanks, ASignalToOneRankStopsAllAtTheSameStep) {
  const std::string seeded = "--steps 1500 --insecure-seed 5 --checkpoint-every 10 --processes 3";
  ASSERT_EQ(RunProgram(Line("whole", seeded)).exit_code, 0);
  for (const int victim : {0, 2, -1}) {
    const std::string name = "stopped-" + std::to_string(victim);
    const KilledRun run(Line(name, seeded));
    run.WaitFor(Out(name) + "/checkpoints/step-000000020");
    const pid_t process = victim < 0 ? run.parent() : run.Rank(victim);
    ASSERT_GT(process, 0);
    kill(process, SIGTERM);
    EXPECT_EQ(run.End(), 128 + SIGTERM) << victim;
    // The model and the checkpoint of the last step are there, and no step is charged that was not
    // made: those that are left add up to the plan.
    EXPECT_TRUE(fs::exists(Out(name) + "/model.safetensors")) << victim;
    EXPECT_LT(Releases(Out(name)), 1500) << victim;
    const CommandOutcome resumed = RunProgram({"train", "--resume", Out(name), "--processes", "2"});
    ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
    EXPECT_EQ(Releases(Out(name)), 1500) << victim;
    EXPECT_EQ(Weights(name), Weights("whole")) << victim;
  }
}

// As torchrun, mpirun and srun start them.
TEST_F(TrainRanks, ASignalToOneRankOfALauncherEndsAllWithItsCode) {
  setenv("WORLD_SIZE", "2", 1);
  setenv("MASTER_ADDR", "127.0.0.1", 1);
  setenv("MASTER_PORT", std::to_string(FreePort()).c_str(), 1);
  setenv("SORDINO_JOIN_SECRET", "the secret of the ranks that tests start", 1);
  const std::vector<std::string> words =
      Line("launched", "--steps 100000 --insecure-seed 5 --checkpoint-every 10");
  setenv("RANK", "0", 1);
  const KilledRun first(words);
  setenv("RANK", "1", 1);
  const KilledRun second(words);
  first.WaitFor(Out("launched") + "/checkpoints/step-000000020");
  kill(second.parent(), SIGTERM);
  EXPECT_EQ(second.End(), 128 + SIGTERM);
  EXPECT_EQ(first.End(), 128 + SIGTERM);
  EXPECT_TRUE(fs::exists(Out("launched") + "/model.safetensors"));
}

}  // namespace
}  // namespace sordino
