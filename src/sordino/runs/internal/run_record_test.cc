#include "sordino/runs/internal/run_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

namespace sordino::internal {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using Json = nlohmann::json;

StatementFacts RecordFacts() {
  StatementFacts facts;
  facts.state = RunState::kFinished;
  facts.data = "digits";
  facts.model = "logistic: 7,850 parameters";
  facts.epsilon = {2.9, 3};
  facts.delta = 1e-5;
  facts.steps = 200;
  facts.planned_steps = 200;
  facts.event = "add-remove: 200*gaussian(4)";
  facts.has_test = true;
  facts.purpose = {.curator = "Clinic of Rome", .use = "planning of beds"};
  return facts;
}

TEST(RunRecord, SaysWhatTheStatementSays) {
  const Json json =
      Json::parse(RunRecord(RecordFacts(), {.device = "cuda:0", .failure = 1e-12, .time = 0}));
  EXPECT_EQ(json["curator"], "Clinic of Rome");
  EXPECT_EQ(json["use"], "planning of beds");
  EXPECT_EQ(json["release"]["kind"], "training");
  EXPECT_EQ(json["release"]["state"], "finished");
  EXPECT_EQ(json["release"]["steps"], 200);
  EXPECT_EQ(json["privacy"]["private"], true);
  EXPECT_EQ(json["privacy"]["unit"], "record");
  EXPECT_EQ(json["privacy"]["adjacency"], "add-remove");
  EXPECT_EQ(json["privacy"]["epsilon"], 3.0);  // the upper end
  EXPECT_EQ(json["privacy"]["delta"], 1e-5);
  EXPECT_EQ(json["privacy"]["failure"], 1e-12);
  EXPECT_EQ(json["hardware"]["device"], "cuda:0");
  EXPECT_THAT(json["not_protected"].get<std::vector<std::string>>(),
              Contains("records of the public test set"));
}

TEST(RunRecord, PlannedStepsAreNotMadeSteps) {
  StatementFacts facts = RecordFacts();
  facts.state = RunState::kPlanned;
  const Json json = Json::parse(RunRecord(facts, {}));
  EXPECT_EQ(json["release"]["state"], "planned");
  EXPECT_EQ(json["release"]["steps"], 0);
  EXPECT_EQ(json["release"]["planned_steps"], 200);
}

TEST(RunRecord, OfARunWithoutPrivacyClaimsNothing) {
  StatementFacts facts = RecordFacts();
  for (const RunPrivacy privacy : {RunPrivacy::kNonPrivate, RunPrivacy::kWithoutNoise}) {
    facts.privacy = privacy;
    const Json json = Json::parse(RunRecord(facts, {}));
    EXPECT_EQ(json["privacy"]["private"], false);
    EXPECT_FALSE(json["privacy"].contains("epsilon"));
    EXPECT_EQ(json["not_protected"], Json::array({"everything"}));
  }
  facts.privacy = RunPrivacy::kSeeded;
  const Json json = Json::parse(RunRecord(facts, {}));
  EXPECT_EQ(json["privacy"]["private"], false);
  EXPECT_THAT(json["privacy"]["warning"].get<std::string>(), HasSubstr("NOT PRIVATE"));
}

TEST(RunRecord, OfUsersAndOfPureFits) {
  StatementFacts users = RecordFacts();
  users.rows_per_user = 3;
  EXPECT_EQ(Json::parse(RunRecord(users, {}))["privacy"]["unit"], "user");
  FitFacts fit;
  fit.state = RunState::kFinished;
  fit.method = "objective";
  fit.epsilon = {1, std::numeric_limits<double>::infinity()};
  const Json json = Json::parse(FitRecord(fit, {}));
  EXPECT_EQ(json["release"]["kind"], "fit");
  EXPECT_EQ(json["release"]["method"], "objective");
  EXPECT_TRUE(json["privacy"]["epsilon"].is_null());
  EXPECT_THAT(json["privacy"]["definition"].get<std::string>(), HasSubstr("pure"));
}

}  // namespace
}  // namespace sordino::internal
