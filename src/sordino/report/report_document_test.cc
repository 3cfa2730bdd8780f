#include "sordino/report/report_document.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sordino/base/error.h"
#include "sordino/base/testing/test_folder.h"
#include "sordino/report/deployment_record.h"
#include "sordino/report/page.h"

namespace sordino {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;
using Json = nlohmann::json;

Json Attack() {
  const Json estimate = {{"value", 0.6}, {"lower", 0.5}, {"upper", 0.7}};
  return {
      {"schema", 1},
      {"run", "/home/somebody/runs/first/"},
      {"members", 100},
      {"others", 90},
      {"shadows", 4},
      {"confidence", 0.95},
      {"attacks",
       {{"loss",
         {{"auc", estimate}, {"tpr", {{"0.1", estimate}}}, {"roc", {{0, 0}, {0.5, 1}, {1, 1}}}}}}},
      {"best", "loss"},
      {"classes", {{"cat", 0.55}}},
      {"limit", {{"0.1", 0.8}}},
      {"limit_roc", {{0, 0.1}, {1, 1}}},
      {"most_exposed", {31337}}};
}

TEST(ReportDocument, ReadsAnAttackAndNamesNoRecord) {
  const TestFolder folder;
  const auto file = folder.Write("attack.json", Attack().dump());
  ASSERT_TRUE(IsReportDocument(file));
  const auto read = std::get<ReportMembership>(ReadReportDocument(file));
  EXPECT_EQ(read.name, "attack.json");
  EXPECT_EQ(read.members, 100);
  EXPECT_EQ(read.shadows, 4);
  ASSERT_EQ(read.attacks.size(), 1U);
  EXPECT_EQ(read.attacks[0].name, "loss");
  EXPECT_EQ(read.attacks[0].area.lower, 0.5);
  ASSERT_EQ(read.attacks[0].rates.size(), 1U);
  EXPECT_EQ(read.attacks[0].rates[0].first, 0.1);
  EXPECT_EQ(read.attacks[0].rates[0].second.value, 0.6);
  EXPECT_THAT(read.attacks[0].curve, ElementsAre(Pair(0, 0), Pair(0.5, 1), Pair(1, 1)));
  EXPECT_THAT(read.limits, ElementsAre(Pair(0.1, 0.8)));
  EXPECT_THAT(read.limit_curve, ElementsAre(Pair(0, 0.1), Pair(1, 1)));
  EXPECT_THAT(read.classes, ElementsAre(Pair("cat", 0.55)));
  ReportContent content;
  content.memberships = {read};
  const std::string json = ReportJson(content);
  EXPECT_THAT(json, HasSubstr("\"area\":{\"value\":0.6"));
  EXPECT_THAT(json, Not(HasSubstr("31337")));
  EXPECT_THAT(json, Not(HasSubstr("somebody")));
}

TEST(ReportDocument, ReadsTheRecordOfARelease) {
  const TestFolder folder;
  DeploymentFacts facts;
  facts.purpose.curator = "Clinic";
  facts.release = {{"kind", "statistics"}, {"what", "release count"}};
  facts.epsilon = 0.5;
  const auto read = std::get<ReportRecord>(
      ReadReportDocument(folder.Write("record.json", DeploymentRecord(facts))));
  EXPECT_TRUE(read.is_private);
  EXPECT_THAT(read.fields, ::testing::Contains(Pair("curator", "Clinic")));
  EXPECT_THAT(read.fields, ::testing::Contains(Pair("what is released", "release count")));
  EXPECT_THAT(read.fields, ::testing::Contains(Pair("epsilon", "0.5")));
  facts.warning = "NOT PRIVATE";
  EXPECT_FALSE(std::get<ReportRecord>(
                   ReadReportDocument(folder.Write("seeded.json", DeploymentRecord(facts))))
                   .is_private);
}

TEST(ReportDocument, TakesForgedNumbersWithoutHarm) {
  const TestFolder folder;
  Json json = Attack();
  json["attacks"]["loss"]["auc"]["value"] = 1e300;
  json["attacks"]["loss"]["tpr"] = {{"two", 1}, {"0.1", "x"}, {"-1", 1}};
  json["attacks"]["loss"]["roc"] = {{0, "x"}};
  json["limit"] = Json::array();
  json["members"] = "many";
  const auto read =
      std::get<ReportMembership>(ReadReportDocument(folder.Write("attack.json", json.dump())));
  EXPECT_EQ(read.members, 0);
  EXPECT_EQ(read.attacks[0].area.value, 1);
  ASSERT_EQ(read.attacks[0].rates.size(), 1U);
  EXPECT_EQ(read.attacks[0].rates[0].second.value, 0);
  EXPECT_TRUE(read.attacks[0].curve.empty());
  EXPECT_TRUE(read.limits.empty());
}

TEST(ReportDocument, RefusesOtherFiles) {
  const TestFolder folder;
  const auto refusal = [&](const std::string& text) -> std::string {
    try {
      ReadReportDocument(folder.Write("x.json", text));
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(refusal("{}"), HasSubstr("neither an attack"));
  EXPECT_THAT(refusal("{\"attacks\": 3, \"release\": {}}"), HasSubstr("neither an attack"));
  EXPECT_THAT(refusal("{\"attacks\""), HasSubstr("one whole JSON object"));
  EXPECT_THAT(refusal(std::string(5'000'000, ' ')), HasSubstr("larger than"));
  EXPECT_FALSE(IsReportDocument(folder.Write("ledger.db", "SQLite format 3")));
  EXPECT_FALSE(IsReportDocument(folder.Write("empty", "")));
  EXPECT_FALSE(IsReportDocument(folder / "missing"));
}

}  // namespace
}  // namespace sordino
