#include "sordino/experiments/runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/base/stop.h"
#include "sordino/base/testing/test_folder.h"
#include "sordino/experiments/testing/script_program.h"

namespace sordino {
namespace {

using ::testing::HasSubstr;

constexpr const char* kThree = R"(
[[part]]
command = "account"
[[part.axis]]
name = "noise"
values = [1, 2, 3]
[[part.measure]]
name = "m"
path = "m"
)";

// Runs the experiment in folder/out with the script in the place of the program.
std::vector<CellResult> RunScript(const TestFolder& folder, const std::string& script, int jobs = 1,
                                  const std::string& text = kThree) {
  const Experiment experiment = ParseExperiment(text, "mine", false);
  const ResultsFolder results(folder / "out", experiment);
  return RunCells(experiment, MakeCells(experiment, ScriptCommands, ""), results,
                  {.program = ScriptProgram(folder, script), .jobs = jobs, .data = ""});
}

int LinesOf(const std::filesystem::path& file) {
  std::ifstream in(file);
  int lines = 0;
  for (std::string line; std::getline(in, line);) ++lines;
  return lines;
}

TEST(Runner, MeasuresEveryCell) {
  const TestFolder folder;
  const std::vector<CellResult> results = RunScript(folder, "echo \"{\\\"m\\\": $noise}\"");
  ASSERT_EQ(results.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(results[i].failure, "");
    EXPECT_EQ(results[i].values.at(0).number, static_cast<double>(i + 1));
    EXPECT_GT(results[i].finished.seconds, 0);
    EXPECT_GT(results[i].finished.memory_mb, 0);
  }
}

TEST(Runner, KeepsFinishedCellsAndRunsTheOthersAgain) {
  const TestFolder folder;
  const std::string log = (folder / "log").string();
  const std::string fails = "echo $noise >> " + log +
                            "; [ $noise = 2 ] && { echo no noise of 2 >&2; exit 2; }; "
                            "echo \"{\\\"m\\\": $noise}\"";
  std::vector<CellResult> results = RunScript(folder, fails);
  EXPECT_EQ(results[0].failure, "");
  EXPECT_EQ(results[1].failure, "exit code 2: no noise of 2");
  EXPECT_EQ(results[2].failure, "");
  EXPECT_EQ(LinesOf(log), 3);
  results = RunScript(folder, "echo $noise >> " + log + "; echo \"{\\\"m\\\": 20}\"");
  EXPECT_EQ(LinesOf(log), 4);
  EXPECT_EQ(results[0].values.at(0).number, 1);
  EXPECT_EQ(results[1].values.at(0).number, 20);
}

TEST(Runner, TellsTheSentenceOfAJsonError) {
  const TestFolder folder;
  const auto results = RunScript(
      folder, "echo '{\"error\": {\"message\": \"too loud.\", \"exit_code\": 2}}'; exit 2");
  EXPECT_EQ(results[0].failure, "exit code 2: too loud.");
}

TEST(Runner, TellsSignalsAndSilence) {
  const TestFolder folder;
  EXPECT_EQ(RunScript(folder, "kill -9 $$")[0].failure, "exit code 137: it said nothing.");
}

TEST(Runner, RefusesAMeasureThatTheOutputLacks) {
  const TestFolder folder;
  try {
    RunScript(folder, "echo '{\"other\": 1}'");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("there is no 'm'; its keys are other"));
  }
}

TEST(Runner, RunsSeveralAtATime) {
  const TestFolder folder;
  // Each cell waits until all three have begun: one after the other would never end.
  const std::string base = folder.path().string();
  const auto results =
      RunScript(folder,
                "touch " + base + "/begun$noise; for i in $(seq 500); do [ -e " + base +
                    "/begun1 ] && [ -e " + base + "/begun2 ] && [ -e " + base +
                    "/begun3 ] && { echo '{\"m\": 1}'; exit 0; }; sleep 0.02; done; exit 1",
                3);
  for (const CellResult& result : results) EXPECT_EQ(result.failure, "");
}

// Cells of the second part wait for those of the first, also where several run at a time, and are
// not run where that failed; those of the third run nothing.
TEST(Runner, CellsUseAndReadThoseOfEarlierParts) {
  const TestFolder folder;
  const std::string text = R"(
[[part]]
name = "made"
command = "account"
[[part.axis]]
name = "noise"
values = [1, 2]
[[part]]
name = "used"
command = "account"
[part.settings]
file = "{made.cell}/output.json"
[[part.axis]]
name = "noise"
values = [1, 2]
[[part]]
name = "read"
reads = "used"
[[part.axis]]
name = "noise"
values = [1, 2]
[[part.axis]]
name = "key"
flag = false
values = ["m", "n"]
[[part.measure]]
name = "value"
path = "{key}"
)";
  // The words of a cell of the first part have no file.
  const std::string log = (folder / "log").string();
  const std::string script =
      "echo $noise >> " + log +
      "; [ $noise = 2 ] && exit 1; [ -z \"$file\" ] || grep -q m \"$file\" || exit 1; sleep 0.05; "
      "echo '{\"m\": 1, \"n\": 5}'";
  const auto results = RunScript(folder, script, 4, text);
  ASSERT_EQ(results.size(), 8U);
  EXPECT_EQ(results[2].failure, "");
  EXPECT_THAT(results[3].failure, HasSubstr("whose files it needs has failed"));
  EXPECT_EQ(LinesOf(log), 3);
  EXPECT_EQ(results[4].values.at(0).number, 1);
  EXPECT_EQ(results[5].values.at(0).number, 5);
  EXPECT_EQ(results[7].failure, results[3].failure);
}

TEST(Runner, MeasuresAreReadAnewFromKeptOutputs) {
  const TestFolder folder;
  RunScript(folder, "echo \"{\\\"m\\\": $noise, \\\"n\\\": 7}\"");
  std::string changed = kThree;
  changed.replace(changed.find("path = \"m\""), 10, "path = \"n\"");
  const auto results = RunScript(folder, "exit 1", 1, changed);
  EXPECT_EQ(results[2].failure, "");
  EXPECT_EQ(results[2].values.at(0).number, 7);
}

// The signal reaches the cells, what finished stays, and the rest runs later.
TEST(Runner, StopsCleanly) {
  const TestFolder folder;
  const std::string mark = (folder / "second").string();
  const std::string script =
      "[ $noise = 1 ] && { echo '{\"m\": 1}'; exit 0; }; touch " + mark + "; exec sleep 60";
  const pid_t child = ::fork();
  if (child == 0) {
    int code = 0;
    try {
      RunScript(folder, script);
    } catch (const Stopped&) {
      code = 42;
    } catch (...) {
      code = 1;
    }
    ::_exit(code);
  }
  for (int i = 0; i < 500 && !std::filesystem::exists(mark); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  ASSERT_TRUE(std::filesystem::exists(mark));
  ::kill(child, SIGTERM);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 42);
  const auto results = RunScript(folder, "echo '{\"m\": 5}'");
  EXPECT_EQ(results[0].values.at(0).number, 1);
  EXPECT_EQ(results[1].values.at(0).number, 5);
}

}  // namespace
}  // namespace sordino
