#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sordino/cli/command_test_support.h"

// Everything here goes through `sordino`, which replaces itself by sordino-torch.
namespace sordino {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;

TEST(SelfAuditCommand, ShowsWhatIsProvenBesideTheClaim) {
  const CommandOutcome outcome =
      RunProgram({"audit", "self", "--quick", "--only", "release-count", "--json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json["confidence"], 0.9999);
  EXPECT_FALSE(json["contradiction"]);
  ASSERT_EQ(json["cases"].size(), 1U);
  EXPECT_EQ(json["cases"][0]["name"], "release-count");
  EXPECT_LE(json["cases"][0]["epsilon_lower"].get<double>(), 1);
  EXPECT_GT(json["cases"][0]["epsilon_lower"].get<double>(), 0.85);

  const CommandOutcome text = RunProgram({"audit", "self", "--quick", "--only", "release-count"});
  EXPECT_THAT(text.out, HasSubstr("release of a count"));
}

TEST(SelfAuditCommand, NamesItsCasesAndRefusesOthers) {
  EXPECT_THAT(RunProgram({"audit", "self", "--list"}).out, HasSubstr("clipping-adaptive\n"));
  const CommandOutcome outcome = RunProgram({"audit", "self", "--only", "releases"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("'releases'"));
}

}  // namespace
}  // namespace sordino
