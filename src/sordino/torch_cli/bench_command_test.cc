#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/cuda.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sordino/base/testing/test_folder.h"
#include "sordino/cli/command_test_support.h"
#include "sordino/models/benchmark_models.h"

// Everything here goes through `sordino`, which replaces itself by sordino-torch.
namespace sordino {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(BenchStep, JsonHasTheCostsOfEveryModelAndBatchAndNothingElse) {
  const CommandOutcome outcome = RunProgram(
      Words("bench step --models ffnn,logreg --batch 8,3 --seconds 0.01 --threads 1 --json"));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json json = Json::parse(outcome.out);
  ASSERT_EQ(json.size(), 3U);  // and "schema"
  for (const char* model : {"ffnn", "logreg"}) {
    ASSERT_EQ(json.at(model).size(), 2U);
    for (const char* batch : {"8", "3"}) {
      const Json& costs = json.at(model).at(batch);
      EXPECT_EQ(costs.size(), 7U);
      EXPECT_EQ(costs.at("graph"), "not available");
      for (const char* key :
           {"ordinary_ms", "private_ms", "ratio", "ordinary_mb", "private_mb", "first_ms"}) {
        EXPECT_GT(costs.at(key).get<double>(), 0) << key;
      }
      EXPECT_NEAR(costs.at("ratio").get<double>(),
                  costs.at("private_ms").get<double>() / costs.at("ordinary_ms").get<double>(),
                  1e-9);
    }
    // Activations of eight examples take more than those of three.
    EXPECT_GT(json.at(model).at("8").at("ordinary_mb").get<double>(),
              json.at(model).at("3").at("ordinary_mb").get<double>());
  }
}

TEST(BenchStep, TableNamesTheModelAndTheMachine) {
  const CommandOutcome outcome =
      RunProgram(Words("bench step --models logreg --batch 4 --seconds 0.01 --threads 1"));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("ordinary ms"));
  EXPECT_THAT(outcome.out, HasSubstr("logreg"));
  EXPECT_THAT(outcome.out, HasSubstr("On cpu with 1 thread."));
}

TEST(BenchStep, EveryWayOfFindingNormsRuns) {
  for (const char* norms : {"automatic", "materialise", "ghost"}) {
    const CommandOutcome outcome = RunProgram({"bench", "step", "--models", "ffnn", "--batch", "4",
                                               "--seconds", "0.01", "--norms", norms, "--json"});
    EXPECT_EQ(outcome.exit_code, 0) << norms << ": " << outcome.err;
  }
}

TEST(BenchStep, EveryPrecisionRuns) {
  for (const char* precision : {"bfloat16", "tf32", "float32"}) {
    const CommandOutcome outcome =
        RunProgram({"bench", "step", "--models", "ffnn,mnist", "--batch", "4", "--seconds", "0.01",
                    "--precision", precision, "--json"});
    EXPECT_EQ(outcome.exit_code, 0) << precision << ": " << outcome.err;
    EXPECT_THAT(outcome.out, Not(HasSubstr("error"))) << precision;
  }
}

TEST(BenchStep, AWholeStepHasNoiseAndAnUpdate) {
  const CommandOutcome outcome =
      RunProgram(Words("bench step --models ffnn --batch 4 --seconds 0.01 --whole"));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("noise and update"));
}

// A stand-in for Python: it answers one question of each worker.
TEST(BenchStep, PeersAreShownBesideIt) {
  const TestFolder folder;
  const std::filesystem::path python = folder.path() / "python";
  std::ofstream(python) << "#!/bin/sh\n[ -z \"$2\" ] && exit 0\n"
                           "grep -q ffnn && echo '{\"ms\": 1.5, \"steps\": 3}'\n";
  std::filesystem::permissions(python, std::filesystem::perms::owner_all);
  const CommandOutcome outcome =
      RunProgram({"bench", "step", "--models", "ffnn", "--batch", "4", "--seconds", "0.01",
                  "--peers", python.string(), "--json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json peers = Json::parse(outcome.out).at("ffnn").at("4").at("peers");
  EXPECT_EQ(peers.size(), 5U);
  EXPECT_EQ(peers.at("torch, not private").at("ms"), 1.5);
  EXPECT_EQ(peers.at("jax jit vmap").at("ms"), 1.5);
  EXPECT_TRUE(peers.at("opacus hooks").contains("error"));
}

// What Python said, such as "ModuleNotFoundError: No module named 'jax'".
bool HasSentence(const std::string& error) { return error.find("Error: ") != std::string::npos; }

// The scripts that the program carries run: without torch and jax they say so.
TEST(BenchStep, PeersThatAreNotThereAreNoResults) {
  const CommandOutcome outcome = RunProgram({"bench", "step", "--models", "logreg", "--batch", "4",
                                             "--seconds", "0.01", "--peers", "python3", "--json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json peers = Json::parse(outcome.out).at("logreg").at("4").at("peers");
  EXPECT_EQ(peers.size(), 5U);
  for (const Json& peer : peers) {
    EXPECT_TRUE(peer.contains("ms") || HasSentence(peer.at("error"))) << peer.dump();
  }
}

TEST(BenchStep, HelpShowsAnExampleAndEveryModel) {
  const CommandOutcome outcome = RunProgram(Words("bench step --help"));
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.err, "");
  EXPECT_THAT(outcome.out, HasSubstr("Example:\n  sordino bench step "));
  for (const std::string_view name : BenchmarkModelNames()) {
    EXPECT_THAT(outcome.out, HasSubstr(std::string(name)));
  }
  EXPECT_THAT(RunProgram(Words("bench --help")).out, HasSubstr("sordino bench step "));
}

TEST(BenchStep, ADeviceThatIsNotThereIsAMistake) {
  if (torch::cuda::is_available()) {
    ExpectMistake({"bench step --device cuda:99", "cuda:99"});
  } else {
    ExpectMistake({"bench step --device cuda", "sees no CUDA device; use --device cpu"});
    ExpectMistake({"bench step --device cuda:0", "sees no CUDA device"});
  }
}

class BenchMistakes : public ::testing::TestWithParam<Mistake> {};
TEST_P(BenchMistakes, AreToldInOneSentence) { ExpectMistake(GetParam()); }
INSTANTIATE_TEST_SUITE_P(
    CommandLines, BenchMistakes,
    ::testing::Values(
        Mistake{"bench", "subcommand is required"},
        Mistake{"bench stp", "'stp' is not a command of 'sordino bench'; did you mean 'step'?"},
        Mistake{"bench step --model mnist", "did you mean '--models'?"},
        Mistake{"bench step --models mnits", "did you mean 'mnist'?"},
        Mistake{"bench step --models mnist,q", "it can be logreg, ffnn, mnist"},
        Mistake{"bench step --batch 0", "--batch is 0"},
        Mistake{"bench step --batch 256,many", "--batch"},
        Mistake{"bench step --batch -4", "--batch"},
        Mistake{"bench step --batch 65537", "from 1 to 65536"},
        Mistake{"bench step --device gpu", "--device is 'gpu'"},
        Mistake{"bench step --norms gost", "did you mean 'ghost'?"},
        Mistake{"bench step --threads 0", "--threads is 0"},
        Mistake{"bench step --graph maybe", "--graph"},
        Mistake{"bench step --precision tf23", "did you mean 'tf32'?"},
        Mistake{"bench step --models logreg --graph on", "recorded"},
        Mistake{"bench step --models logreg --batch 2 --seconds 0.01 --peers /no/python",
                "can be started"},
        Mistake{"bench step --seconds 0", "--seconds is 0"},
        Mistake{"bench step --seconds soon", "--seconds"},
        Mistake{"bench step mnist", "'mnist' was not expected"}));

}  // namespace
}  // namespace sordino
