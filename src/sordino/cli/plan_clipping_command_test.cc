#include "sordino/cli/plan_clipping_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "sordino/cli/command_test_support.h"
#include "sordino/cli/plan_command.h"

namespace sordino {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;

// The cells of the document that are known for constant kernels; clipped_flow_test.cc has all.
TEST(PlanClipping, CountsTheSameProblemsForEveryClipping) {
  const CommandOutcome outcome =
      CallCommand(AddPlanCommand, Words("plan clipping --problems 20 --time 300 --json"));
  ASSERT_EQ(outcome.error, "");
  const Json json = Json::parse(outcome.out);
  ASSERT_EQ(json["clippings"].size(), 6U);
  for (const Json& row : json["clippings"]) {
    const std::string name = row["clipping"].get<std::string>();
    EXPECT_EQ(row["loss"].size(), json["times"].size());
    EXPECT_NEAR(row["loss"][0].get<double>(), 1, 1e-12);
    const bool keeps = name == "none" || name == "global-flat" || name == "global-layerwise";
    EXPECT_EQ(row["symmetric"] > 0.999, keeps) << row;
    EXPECT_EQ(row["positive_form"] > 0.999, keeps) << row;
    if (keeps) {
      EXPECT_GT(row["monotone"], 0.999) << row;
      EXPECT_LT(row["largest_rise"], 1e-9) << row;
    }
  }
}

TEST(PlanClipping, PrintsATable) {
  const CommandOutcome outcome = CallCommand(
      AddPlanCommand,
      Words("plan clipping --problem network --problems 2 --time 10 --clipping local-flat"));
  ASSERT_EQ(outcome.error, "");
  EXPECT_THAT(outcome.out, HasSubstr("2 gradient flows of 'network'"));
  EXPECT_THAT(outcome.out, HasSubstr("local-flat"));
  EXPECT_THAT(outcome.out, HasSubstr("\nNext: 'sordino kernel DATA --clipping all' asks"));
}

class PlanClippingMistakes : public ::testing::TestWithParam<Mistake> {};

TEST_P(PlanClippingMistakes, AreToldInOneSentence) { ExpectMistake(GetParam()); }
INSTANTIATE_TEST_SUITE_P(
    , PlanClippingMistakes,
    ::testing::Values(Mistake{"plan clipping --problem networks", "did you mean 'network'"},
                      Mistake{"plan clipping --clipping local", "--clipping is 'local'"},
                      Mistake{"plan clipping --problems 0", "--problems is 0"},
                      Mistake{"plan clipping --time 0.01", "--time"},
                      Mistake{"plan clipping --problems 1 --clip 6", "the threshold is 5"}));

}  // namespace
}  // namespace sordino
