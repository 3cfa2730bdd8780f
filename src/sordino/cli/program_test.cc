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

}  // namespace
}  // namespace sordino
