#include "sordino/cli/audit_command.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numbers>
#include <string>

#include "sordino/base/testing/test_folder.h"
#include "sordino/cli/command_test_support.h"

namespace sordino {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

CommandOutcome Audit(const std::string& line) { return CallCommand(AddAuditCommand, Words(line)); }

Json AuditJson(const std::string& line) {
  const CommandOutcome outcome = Audit(line + " --json");
  EXPECT_EQ(outcome.error, "") << line;
  return Json::parse(outcome.out);
}

constexpr const char* kBound = "audit bound --canaries 1000 --guesses 200 --correct 190";

TEST(AuditCommand, BoundHasTheReferenceValues) {
  const Json one = AuditJson(std::string(kBound) + " --delta 1e-5");
  EXPECT_NEAR(one["epsilon_lower"].get<double>(), 2.393618, 2e-6);
  EXPECT_EQ(one["method"], "one-run");
  EXPECT_NEAR(one["p_value"].get<double>(), 0.05, 1e-6);
  const Json fdp = AuditJson(std::string(kBound) + " --delta 1e-5 --method one-run-fdp");
  EXPECT_NEAR(fdp["epsilon_lower"].get<double>(), 3.916104, 1e-5);
  const Json claim =
      AuditJson("audit bound --canaries 1000 --guesses 100 --correct 95 --delta 1e-5 --epsilon 2");
  EXPECT_NEAR(claim["p_value"].get<double>(), .01782463464, 1e-9);
}

TEST(AuditCommand, BoundIsSaidInASentence) {
  const CommandOutcome outcome = Audit(std::string(kBound) + " --delta 1e-5 --epsilon 2");
  EXPECT_THAT(outcome.out, HasSubstr("epsilon is at least 2.3936"));
  EXPECT_THAT(outcome.out, HasSubstr("190 or more right guesses"));
}

class AuditScores : public testing::Test {
 protected:
  std::string Write(const std::string& name, const std::string& content) {
    std::string path = (folder_.path() / name).string();
    std::ofstream(path) << content;
    return path;
  }
  TestFolder folder_;
};

TEST_F(AuditScores, AreDrawnWithinWhatIsClaimed) {
  std::string low;
  std::string high;
  for (int i = 0; i < 200; ++i) {
    low += std::to_string(i) + '\n';
    high += std::to_string(i + 40) + '\n';
  }
  const std::string members = Write("members.csv", high);
  const std::string others = Write("others.csv", low);
  const std::string picture = (folder_.path() / "roc.svg").string();
  const std::string call = "audit scores " + members + " " + others + " --delta 1e-5";
  EXPECT_EQ(CallCommand(AddAuditCommand, {"audit", "scores", members, others, "--picture", picture,
                                          "--event", "add-remove: gaussian(2)"})
                .error,
            "");
  std::ifstream file(picture);
  const std::string svg{std::istreambuf_iterator<char>(file), {}};
  EXPECT_THAT(svg, HasSubstr("class=\"limit\""));
  EXPECT_THAT(svg, HasSubstr("add-remove: gaussian(2)"));
  // Of a long event the beginning is shown, with dots.
  const std::string steps =
      "add-remove: compose(10*poisson(0.1, gaussian(1.5)), 20*poisson(0.2, gaussian(2.5)), "
      "30*poisson(0.3, gaussian(3.5)))";
  EXPECT_EQ(CallCommand(AddAuditCommand, {"audit", "scores", members, others, "--picture", picture,
                                          "--force", "--event", steps})
                .error,
            "");
  std::ifstream redrawn(picture);
  const std::string with_dots{std::istreambuf_iterator<char>(redrawn), {}};
  EXPECT_THAT(with_dots, HasSubstr("claimed: add-remove: compose(10*"));
  EXPECT_THAT(with_dots, HasSubstr("...</text>"));
  EXPECT_THAT(with_dots, Not(HasSubstr("gaussian(3.5)")));
  // An input is never overwritten.
  EXPECT_THAT(Audit(call + " --force --picture " + members).error, HasSubstr("members.csv"));
  std::ifstream again(members);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(again), {}), high);
}

// The x with a normal probability of p below it.
double NormalQuantile(double p) {
  double low = -10;
  double high = 10;
  while (high - low > 1e-9) {
    const double middle = 0.5 * (low + high);
    (0.5 * std::erfc(-middle / std::numbers::sqrt2) < p ? low : high) = middle;
  }
  return low;
}

TEST_F(AuditScores, AreLookedAtWhereTheClaimAllowsMost) {
  constexpr int kScores = 2000;
  std::string low;
  std::string high;
  for (int i = 0; i < kScores; ++i) {
    const double score = NormalQuantile((i + 0.5) / kScores);
    low += std::to_string(score) + '\n';
    high += std::to_string(score + 0.5) + '\n';  // as gaussian(2) would have it
  }
  const std::string members = Write("members.csv", high);
  const std::string others = Write("others.csv", low);
  const auto bounds = [&](const std::vector<std::string>& claim) {
    std::vector<std::string> line = {"audit", "scores", members, others, "--json"};
    line.insert(line.end(), claim.begin(), claim.end());
    return Json::parse(CallCommand(AddAuditCommand, line).out);
  };
  const Json planned = bounds({"--event", "add-remove: gaussian(2)"});
  const Json anywhere = bounds({});
  EXPECT_GT(planned["mu_lower"].get<double>(), 1.05 * anywhere["mu_lower"].get<double>());
  EXPECT_LT(planned["mu_lower"].get<double>(), 0.5);
  EXPECT_GT(planned["epsilon_lower"]["clopper-pearson"].get<double>(),
            anywhere["epsilon_lower"]["clopper-pearson"].get<double>());
}

TEST_F(AuditScores, AreReadFromFilesWithAndWithoutHeaders) {
  std::string members = "score\n";
  std::string others;
  for (int i = 0; i < 1000; ++i) {
    members += "2.5\n";
    others += i % 100 == 0 ? "3,extra\n" : "1\n";
  }
  const std::string line =
      "audit scores " + Write("members.csv", members) + " " + Write("others.csv", others);
  const Json json = AuditJson(line + " --delta 1e-5");
  EXPECT_GT(json["epsilon_lower"]["clopper-pearson"].get<double>(), 3);
  EXPECT_GT(json["epsilon_lower"]["gdp"].get<double>(), 3);
  EXPECT_NEAR(json["auc"]["value"].get<double>(), 0.99, 1e-12);
  EXPECT_EQ(json["tpr"]["0.1"]["value"], 1.0);
  EXPECT_LE(json["tpr"]["0.001"]["lower"].get<double>(), json["tpr"]["0.001"]["value"]);
  EXPECT_THAT(Audit(line).out, HasSubstr("area under the curve 0.9900"));
}

TEST_F(AuditScores, WhatIsNoScoreIsRefusedWithoutBeingShown) {
  const std::string good = Write("good.csv", "1\n2\n");
  const struct {
    const char* content;
    const char* part;
  } rows[] = {{"", "holds no scores"},
              {"score\n", "holds no scores"},
              {"1\nMARKED\n", "not a number"},
              {"1\nnan\n", "not a number"}};
  for (const auto& row : rows) {
    const std::string bad = Write("bad.csv", row.content);
    const CommandOutcome outcome = Audit(fmt::format("audit scores {} {}", good, bad));
    EXPECT_THAT(outcome.error, HasSubstr(row.part));
    EXPECT_THAT(outcome.error, ::testing::Not(HasSubstr("MARKED")));
  }
}

class AuditMistake : public testing::TestWithParam<Mistake> {};
TEST_P(AuditMistake, IsToldInOneSentence) { ExpectMistake(GetParam()); }
INSTANTIATE_TEST_SUITE_P(
    All, AuditMistake,
    testing::Values(
        Mistake{"audit bound --canaries 10 --guesses 20 --correct 1", "20 guesses for 10"},
        Mistake{"audit bound --canaries 10 --guesses 5 --correct 6", "6 of 5"},
        Mistake{"audit bound --canaries 0 --guesses 0 --correct 0", "number of canaries"},
        Mistake{"audit bound --canaries 9 --guesses 5 --correct 5 --confidence 1", "--confidence"},
        Mistake{"audit bound --canaries 9 --guesses 5 --correct 5 --confidence 0", "--confidence"},
        Mistake{"audit bound --canaries 9 --guesses 5 --correct 5 --method two", "--method"},
        Mistake{"audit bound --canaries 9 --guesses 5 --correct 5 --method one-run-fdp --epsilon 1",
                "p-value"},
        Mistake{"audit bound --canaries 9 --guesses 5 --correct 5 --delta 2", "delta"},
        Mistake{"audit scores nowhere.csv nowhere.csv", "nowhere.csv"}));

}  // namespace
}  // namespace sordino
