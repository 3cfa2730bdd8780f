#include "sordino/report/deployment_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "sordino/base/error.h"

namespace sordino {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using Json = nlohmann::json;

DeploymentFacts Facts() {
  DeploymentFacts facts;
  facts.purpose = {.curator = "Clinic of Rome", .use = "planning of beds"};
  facts.release = {{"kind", "training"}, {"steps", std::int64_t{200}}};
  facts.epsilon = 3;
  facts.delta = 1e-5;
  facts.failure = 1e-12;
  facts.event = "add-remove: 200*gaussian(4)";
  facts.device = "cuda:0";
  facts.has_test = true;
  return facts;
}

TEST(DeploymentRecord, SaysWhatARegistryAsksFor) {
  const Json json = Json::parse(DeploymentRecord(Facts()));
  EXPECT_EQ(json["schema"], 1);
  EXPECT_EQ(json["curator"], "Clinic of Rome");
  EXPECT_EQ(json["use"], "planning of beds");
  EXPECT_EQ(json["release"]["kind"], "training");
  EXPECT_EQ(json["release"]["steps"], 200);
  EXPECT_EQ(json["release"]["time"], "1970-01-01T00:00:00Z");
  EXPECT_EQ(json["privacy"]["private"], true);
  EXPECT_EQ(json["privacy"]["unit"], "record");
  EXPECT_EQ(json["privacy"]["adjacency"], "add-remove");
  EXPECT_EQ(json["privacy"]["epsilon"], 3.0);
  EXPECT_EQ(json["privacy"]["delta"], 1e-5);
  EXPECT_EQ(json["privacy"]["failure"], 1e-12);
  EXPECT_THAT(json["privacy"]["definition"].get<std::string>(), HasSubstr("approximate"));
  EXPECT_EQ(json["implementation"]["name"], "sordino");
  EXPECT_EQ(json["hardware"]["device"], "cuda:0");
  EXPECT_THAT(json["not_protected"].get<std::vector<std::string>>(),
              Contains("records of the public test set"));
}

TEST(DeploymentRecord, LeavesOutWhatNobodySaid) {
  DeploymentFacts facts = Facts();
  facts.purpose = {};
  facts.epsilon = std::numeric_limits<double>::infinity();
  facts.delta = 0;
  const Json json = Json::parse(DeploymentRecord(facts));
  EXPECT_FALSE(json.contains("curator"));
  EXPECT_FALSE(json.contains("use"));
  EXPECT_TRUE(json["privacy"]["epsilon"].is_null());
  EXPECT_THAT(json["privacy"]["definition"].get<std::string>(), HasSubstr("pure"));
}

TEST(DeploymentRecord, OfARunWithoutPrivacyClaimsNothing) {
  DeploymentFacts facts = Facts();
  facts.warning = "NOT PRIVATE: a reason";
  facts.is_protected = false;
  const Json json = Json::parse(DeploymentRecord(facts));
  EXPECT_EQ(json["privacy"]["private"], false);
  EXPECT_EQ(json["privacy"]["warning"], "NOT PRIVATE: a reason");
  EXPECT_FALSE(json["privacy"].contains("epsilon"));
  EXPECT_EQ(json["not_protected"], Json::array({"everything"}));
}

TEST(ReleasePurpose, IsOneLineOfText) {
  const auto refusal = [](const ReleasePurpose& purpose) -> std::string {
    try {
      CheckPurpose(purpose);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refusal({}), "");
  EXPECT_EQ(refusal({.curator = "Clínica <b>", .use = std::string(500, 'x')}), "");
  EXPECT_THAT(refusal({.curator = "", .use = std::string(501, 'x')}), HasSubstr("--use has 501"));
  EXPECT_THAT(refusal({.curator = "a\nb", .use = ""}), HasSubstr("--curator holds a line break"));
  EXPECT_THAT(refusal({.curator = "a\xff", .use = ""}), HasSubstr("not UTF-8"));
  EXPECT_THAT(refusal({.curator = "a\x1b[2J", .use = ""}), HasSubstr("control character"));
}

TEST(ReleasePurpose, IsASentenceOfTheStatement) {
  EXPECT_EQ(PurposeSentence({}), "");
  EXPECT_EQ(PurposeSentence({.curator = "A", .use = ""}), "Curator: A.");
  EXPECT_EQ(PurposeSentence({.curator = "A Ltd.", .use = "b"}), "Curator: A Ltd. Intended use: b.");
}

}  // namespace
}  // namespace sordino
