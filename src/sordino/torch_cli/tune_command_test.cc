#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sordino/base/testing/test_folder.h"
#include "sordino/cli/command_test_support.h"
#include "sordino/torch_cli/testing/points_table.h"

// Everything here goes through `sordino`, which replaces itself by sordino-torch.
namespace sordino {
namespace {

using OrderedJson = nlohmann::ordered_json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class TuneCommand : public ::testing::Test {
 protected:
  CommandOutcome Tune(const std::string& more) const {
    return RunProgram(Words(
        "tune " + Place("train.csv") + " --test " + Place("test.csv") +
        " --columns x:numeric:0:1 y:numeric:0:1 above:label:no|yes --records 400 --delta 1e-5 "
        "--model logistic --epsilon 3 --sampling full --steps 5 --tries 1.5 --try "
        "lr=0.1..2:log,clip=0.1,1 " +
        more));
  }
  TuneCommand() {
    folder_.Write("train.csv", PointsTable(400));
    folder_.Write("test.csv", PointsTable(100));
  }
  std::string Place(const std::string& name) const { return (folder_ / name).string(); }

  const TestFolder folder_;
};

TEST_F(TuneCommand, LeavesARunThatOtherCommandsRead) {
  const CommandOutcome outcome = Tune("--json --out " + Place("run"));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("nobody learns how many do"));
  const OrderedJson json = OrderedJson::parse(outcome.out);
  std::vector<std::string> keys;
  for (const auto& [key, value] : json.items()) keys.push_back(key);
  EXPECT_THAT(keys, ElementsAre("schema", "run", "epsilon", "delta", "renyi_epsilon",
                                "noise_multiplier", "sampling_rate", "steps", "test_accuracy",
                                "test_log_loss", "test_auroc", "test_calibration_error", "seconds",
                                "private", "interrupted", "tries", "expected_tries", "chosen"));
  EXPECT_EQ(json["expected_tries"], 1.5);
  EXPECT_GT(json["tries"], 10);
  EXPECT_TRUE(json["chosen"].contains("lr"));
  EXPECT_TRUE(json["chosen"].contains("clip"));
  EXPECT_LE(json["epsilon"]["upper"], 3);

  const CommandOutcome account =
      RunProgram({"account", "--event-file", Place("run/event.txt"), "--delta", "1e-5", "--json"});
  ASSERT_EQ(account.exit_code, 0) << account.err;
  const double again = OrderedJson::parse(account.out)["epsilon"]["upper"].get<double>();
  EXPECT_NEAR(again, json["epsilon"]["upper"].get<double>(), 0.01);
  EXPECT_LE(again, json["epsilon"]["upper"].get<double>() + 1e-9);

  const CommandOutcome report = RunProgram({"report", Place("run"), "--out", Place("report.html")});
  EXPECT_EQ(report.exit_code, 0) << report.err;
  EXPECT_THAT(ReadTestFile(Place("report.html")), HasSubstr("best of several tries"));
}

TEST_F(TuneCommand, ADryRunSaysWhatItWouldCost) {
  const std::string ledger = Place("digits.db");
  ASSERT_EQ(RunProgram({"ledger", "init", ledger, "--epsilon", "10", "--delta", "1e-4"}).exit_code,
            0);
  const CommandOutcome planned = Tune("--dry-run --ledger " + ledger);
  ASSERT_EQ(planned.exit_code, 0) << planned.err;
  EXPECT_THAT(planned.out, HasSubstr("best-poisson(1.5, "));
  EXPECT_THAT(planned.out, HasSubstr("of which 1.5 are expected to count"));
  EXPECT_THAT(planned.out, HasSubstr("of its budget"));
  EXPECT_THAT(RunProgram({"ledger", "show", ledger}).out, HasSubstr("10"));
}

class TuneCommandMistakes : public ::testing::TestWithParam<Mistake> {};

TEST_P(TuneCommandMistakes, GetOneSentence) { ExpectMistake(GetParam()); }

INSTANTIATE_TEST_SUITE_P(
    Tune, TuneCommandMistakes,
    ::testing::Values(Mistake{"tune digits --epsilon 1", "--try"},
                      Mistake{"tune digits --try lr=1,2", "--epsilon"},
                      Mistake{"tune digits --epsilon 1 --try batch=1,2", "--try batch"},
                      Mistake{"tune digits --epsilon 1 --try lr=2..1", "empty range"},
                      Mistake{"tune digits --epsilon 1 --try lr=1,abc", "abc"},
                      Mistake{"tune digits --epsilon 1 --try momentum=0.5..2", "momentum"},
                      Mistake{"tune digits --epsilon 1 --try lr=1,2 --tries 0", "--tries is 0"},
                      Mistake{"tune digits --epsilon 1 --try lr=1,2 --select x", "--select"},
                      Mistake{"tune digits --epsilon 1 --try lr=1,2 --noise 2", "--noise"}));

}  // namespace
}  // namespace sordino
