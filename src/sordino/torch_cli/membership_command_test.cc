#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "sordino/cli/command_test_support.h"
#include "sordino/torch_cli/testing/points_table.h"

// Everything here goes through `sordino`, which replaces itself by sordino-torch.
namespace sordino {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

class MembershipCommand : public ::testing::Test {
 protected:
  MembershipCommand()
      : members_(WriteTestFile("members.csv", PointsTable(80))),
        others_(WriteTestFile("others.csv", PointsTable(60))),
        run_(members_ + ".run") {}
  ~MembershipCommand() override {
    for (const std::string& path : {members_, others_, run_, run_ + ".svg"}) fs::remove_all(path);
  }

  void Train(const std::vector<std::string>& privacy) {
    std::vector<std::string> words = {"train",   "--model", "logistic", "--records", "80",
                                      "--batch", "20",      "--steps",  "40",        "--lr",
                                      "2",       "--data",  members_,   "--out",     run_};
    words.insert(words.end(), privacy.begin(), privacy.end());
    words.insert(words.end(),
                 {"--columns", "x:numeric:0:1", "y:numeric:0:1", "above:label:no|yes"});
    const CommandOutcome outcome = RunProgram(words);
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  }
  CommandOutcome Attack(const std::vector<std::string>& more = {}) {
    std::vector<std::string> words = {"audit",  "membership", run_,   "--members",
                                      members_, "--others",   others_};
    words.insert(words.end(), more.begin(), more.end());
    return RunProgram(words);
  }

  std::string members_;
  std::string others_;
  std::string run_;
};

TEST_F(MembershipCommand, AttacksAPrivateRunWithinItsClaim) {
  Train({"--epsilon", "1", "--delta", "1e-5"});
  const CommandOutcome outcome =
      Attack({"--shadows", "4", "--json", "--picture", run_ + ".svg", "--show-records", "3"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("it is as private as they are"));
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json["members"], 80);
  EXPECT_EQ(json["others"], 60);
  EXPECT_EQ(json["attacks"].size(), 7U);
  for (const auto& [name, attack] : json["attacks"].items()) {
    EXPECT_LE(attack["auc"]["lower"], attack["auc"]["value"]) << name;
    EXPECT_GE(attack["auc"]["upper"], attack["auc"]["value"]) << name;
    EXPECT_LE(attack["tpr"]["0.01"]["lower"], attack["tpr"]["0.01"]["upper"]) << name;
    EXPECT_EQ(attack["roc"].front(), Json::array({0.0, 0.0})) << name;
    EXPECT_EQ(attack["roc"].back(), Json::array({1.0, 1.0})) << name;
    ASSERT_EQ(attack["true_rates"].size(), json["false_rates"].size()) << name;
    EXPECT_EQ(attack["true_rates"][20], attack["tpr"]["0.01"]["value"]) << name;
    EXPECT_EQ(attack["true_rates"].back(), 1.0) << name;
  }
  ASSERT_EQ(json["limit_rates"].size(), json["false_rates"].size());
  EXPECT_NEAR(json["limit_rates"][20].get<double>(), json["limit"]["0.01"].get<double>(), 1e-6);
  // No attack on (1, 1e-5) has more true positives; how many there are by chance is not tested
  // here.
  EXPECT_GT(json["limit"]["0.01"], 0.01);
  EXPECT_LE(json["limit"]["0.01"], 0.01 * std::exp(1) + 1e-5);
  // The curve of the limit goes through the limits, and never falls.
  const Json& limit = json["limit_roc"];
  ASSERT_GT(limit.size(), 10U);
  for (std::size_t i = 1; i < limit.size(); ++i) {
    EXPECT_GE(limit[i][1].get<double>(), limit[i - 1][1].get<double>());
    if (std::abs(limit[i][0].get<double>() - 0.01) < 1e-9) {
      EXPECT_NEAR(limit[i][1].get<double>(), json["limit"]["0.01"].get<double>(), 1e-6);
    }
  }
  EXPECT_EQ(limit.back(), Json::array({1.0, 1.0}));
  EXPECT_EQ(json["classes"].size(), 2U);
  EXPECT_EQ(json["most_exposed"].size(), 3U);
  EXPECT_TRUE(fs::exists(run_ + ".svg"));
}

TEST_F(MembershipCommand, AttacksAFitByItsLossesAlone) {
  const CommandOutcome fit =
      RunProgram({"fit", members_, "--epsilon", "1", "--delta", "1e-5", "--records", "80", "--out",
                  run_, "--columns", "x:numeric:0:1", "y:numeric:0:1", "above:label:no|yes"});
  ASSERT_EQ(fit.exit_code, 0) << fit.err;
  EXPECT_THAT(Attack().out, AllOf(HasSubstr("limit of the claim"),
                                  HasSubstr("\nNext: no attack is above what the claim")));
  const CommandOutcome shadows = Attack({"--shadows", "4"});
  EXPECT_EQ(shadows.exit_code, 2);
  EXPECT_THAT(shadows.err, HasSubstr("this one is a fit"));
}

TEST_F(MembershipCommand, SaysWhatToDoWhereAnAttackIsAboveTheClaim) {
  ASSERT_EQ(
      RunProgram({"fit", members_, "--epsilon", "30", "--delta", "1e-5", "--records", "80", "--out",
                  run_, "--columns", "x:numeric:0:1", "y:numeric:0:1", "above:label:no|yes"})
          .exit_code,
      0);
  // As if the model had the labels of its records by heart, and claimed that it has not: the others
  // have wrong ones.
  std::string wrong = "x,y,above\n";
  std::istringstream lines(ReadTestFile(others_));
  std::string line;
  std::getline(lines, line);
  while (std::getline(lines, line)) {
    const std::size_t comma = line.rfind(',');
    wrong += line.substr(0, comma) + (line.substr(comma) == ",no" ? ",yes\n" : ",no\n");
  }
  std::ofstream(others_) << wrong;
  std::ofstream(run_ + "/event.txt") << "add-remove: pure(0.1)\n";
  EXPECT_THAT(Attack().out,
              HasSubstr("\nNext: an attack is above what the claim of the run allows"));
}

TEST_F(MembershipCommand, NeedsNoShadowsAndSaysWhatIsWrong) {
  Train({"--non-private"});
  const CommandOutcome outcome = Attack();
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("loss"));
  EXPECT_THAT(outcome.out, testing::Not(HasSubstr("limit of the claim")));
  EXPECT_THAT(outcome.out, HasSubstr("\nNext: the run is not private"));
  EXPECT_EQ(Attack({"--shadows", "5"}).exit_code, 2);
  EXPECT_THAT(Attack({"--shadows", "5"}).err, HasSubstr("give an even one from 4"));
  for (const char* number : {"-3", "abc", "1.5"}) {
    for (const char* flag : {"--shadows", "--show-records"}) {
      const CommandOutcome refused = Attack({flag, number});
      EXPECT_EQ(refused.exit_code, 2) << flag << number;
      EXPECT_THAT(refused.err, HasSubstr(flag));
    }
  }
  EXPECT_THAT(Attack({"--force", "--picture", members_}).err, HasSubstr("members.csv"));
  EXPECT_EQ(RunProgram(
                {"audit", "membership", run_, "--members", members_, "--others", others_ + ".gone"})
                .exit_code,
            2);
  EXPECT_EQ(
      RunProgram({"audit", "membership", "nothing", "--members", members_, "--others", others_})
          .exit_code,
      2);
}

}  // namespace
}  // namespace sordino
