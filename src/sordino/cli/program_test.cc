#include "sordino/cli/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "sordino/base/testing/test_folder.h"
#include "sordino/cli/command_test_support.h"

namespace sordino {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

class EmptyValue : public ::testing::Test {
 protected:
  void SetUp() override {
    setenv("SORDINO_STATE", (folder_ / "state").c_str(), 1);
    data_ = folder_.Write("visits.csv", "age\n30\n40\n").string();
    ledger_ = (folder_ / "L.db").string();
    const CommandOutcome made =
        RunProgram({"ledger", "init", ledger_, "--epsilon", "2", "--delta", "1e-5"});
    ASSERT_EQ(made.exit_code, 0) << made.err;
  }
  void TearDown() override { unsetenv("SORDINO_STATE"); }

  static void ExpectRefusal(const std::vector<std::string>& line, const std::string& name) {
    const CommandOutcome outcome = RunProgram(line);
    EXPECT_EQ(outcome.exit_code, 2) << name;
    EXPECT_EQ(outcome.out, "") << name;
    EXPECT_THAT(outcome.err, MatchesRegex("sordino: [^\n]+\n"));
    EXPECT_THAT(outcome.err, HasSubstr("the value of '" + name + "' is empty"));
  }

  TestFolder folder_;
  std::string data_;
  std::string ledger_;
};

TEST_F(EmptyValue, IsRefusedWhateverTheFlag) {
  const std::vector<std::string> release = {"release", data_,      "--count", "--epsilon",
                                            "0.1",     "--ledger", ""};
  ExpectRefusal(release, "--ledger");
  ExpectRefusal({"release", "", "--count", "--epsilon", "0.1"}, "file");
  ExpectRefusal({"release", data_, "--count", "--epsilon", ""}, "--epsilon");
  ExpectRefusal({"release", data_, "--mean", "", "--epsilon", "1"}, "--mean");
  ExpectRefusal({"ledger", "init", "", "--epsilon", "1", "--delta", "0"}, "file");
  ExpectRefusal({"ledger", "verify", ledger_, "--expect", ""}, "--expect");
  ExpectRefusal({"ledger", "show", ledger_, "--picture", ""}, "--picture");
  ExpectRefusal({"ledger", "show", ""}, "file");
  ExpectRefusal({"account", "--noise", "2", "--delta", "1e-5", "--tradeoff", ""}, "--tradeoff");
  ExpectRefusal({"account", "--schedule", "", "--delta", "1e-5"}, "--schedule");
}

TEST_F(EmptyValue, BehindAnEqualsSignDoesNotTakeTheNextWord) {
  ExpectRefusal({"release", "--count", "--epsilon=0.1", "--ledger=", data_}, "--ledger");
  ExpectRefusal({"ledger", "verify", "--expect=", ledger_}, "--expect");
  EXPECT_EQ(
      RunProgram({"release", "--count", "--epsilon=0.1", "--ledger=" + ledger_, data_}).exit_code,
      0);
}

TEST_F(EmptyValue, OfADescriptionOfTheDataReleasesNothing) {
  for (const char* content : {"", "# ledger = \"L.db\"\n", "ledger = \"\"\n"}) {
    folder_.Write("sordino.toml", content);
    const CommandOutcome outcome = RunProgram({"release", data_, "--count", "--epsilon", "0.1"});
    EXPECT_EQ(outcome.exit_code, 2) << content;
    EXPECT_EQ(outcome.out, "") << content;
    EXPECT_THAT(outcome.err, HasSubstr("sordino.toml")) << content;
  }
}

// The environment as a service or a container may have it.
TEST_F(EmptyValue, OfHomeChargesNothingAndSaysWhatToSet) {
  const char* const home = std::getenv("HOME");
  const std::string old_home = home == nullptr ? "" : home;
  const char* const state = std::getenv("XDG_STATE_HOME");
  const std::string old_state = state == nullptr ? "" : state;
  const std::string before = ReadTestFile(ledger_);
  unsetenv("SORDINO_STATE");
  unsetenv("XDG_STATE_HOME");
  const std::string file = folder_.Write("file", "").string();
  for (const char* value : {"", "relative", file.c_str()}) {
    setenv("HOME", value, 1);
    for (const std::vector<std::string>& line : std::vector<std::vector<std::string>>{
             {"release", data_, "--count", "--epsilon", "0.1", "--ledger", ledger_},
             {"ledger", "note", ledger_, "words"},
             {"ledger", "init", file + ".db", "--epsilon", "1", "--delta", "0"}}) {
      const CommandOutcome outcome = RunProgram(line);
      EXPECT_EQ(outcome.exit_code, 2) << line[0] << value;
      EXPECT_EQ(outcome.out, "");
      EXPECT_THAT(outcome.err, MatchesRegex("sordino: [^\n]+set SORDINO_STATE[^\n]+\n"));
    }
    EXPECT_EQ(RunProgram({"ledger", "show", ledger_}).exit_code, 0);
  }
  EXPECT_EQ(ReadTestFile(ledger_), before);
  EXPECT_FALSE(std::filesystem::exists(file + ".db"));
  if (home == nullptr) {
    unsetenv("HOME");
  } else {
    setenv("HOME", old_home.c_str(), 1);
  }
  if (state != nullptr) setenv("XDG_STATE_HOME", old_state.c_str(), 1);
}

TEST(Explanation, OfAFlagWithTooManyOrNoValuesIsOurOwn) {
  ExpectMistake({"ledger verify L.db --expect a --expect b",
                 "'--expect' was given 2 values; give at most 1."});
  ExpectMistake({"account --rate", "'--rate' has no value; give one (0..1)."});
  ExpectMistake({"ledger charge L.db --event 'pure(1)'", "--note is required"});
}

TEST(ExitCode, OfAFullDiskIsThatOfAFailure) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full";
  for (const char* line : {"account --noise 2 --delta 1e-5", "help --json", "completion bash",
                           "manual sordino", "account --noise 2 --delta 1e-5 --json"}) {
    const std::string command = std::string(SORDINO_PROGRAM) + " " + line + " > /dev/full 2>&1";
    EXPECT_EQ(WEXITSTATUS(std::system(command.c_str())), 1) << line;
  }
}

}  // namespace
}  // namespace sordino
