#include "sordino/cli/sensitivity_command.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sordino/cli/command_test_support.h"

namespace sordino {
namespace {

CommandOutcome SurveyBy(std::vector<std::string> words) {
  words.insert(words.begin(), "sensitivity");
  return CallCommand(&AddSensitivityCommand, std::move(words));
}

nlohmann::json SurveyJson(std::vector<std::string> words) {
  words.push_back("--json");
  const CommandOutcome outcome = SurveyBy(std::move(words));
  EXPECT_EQ(outcome.error, "");
  return nlohmann::json::parse(outcome.out);
}

// The definitions of the source documents: the largest change over all pairs of neighbours, and
// with one of them fixed; their mean of n records clipped to tau moves by 2 tau / n.
TEST(SensitivityCommand, PrintsGlobalAndLocalSensitivity) {
  const auto mean = SurveyJson({"mean", "--bounds", "-5,5", "--records", "8", "--adjacency",
                                "replace-one", "--domain", "-5,5"});
  EXPECT_EQ(mean["global"]["l1"], 2 * 5.0 / 8);
  EXPECT_NEAR(mean["global_enumerated"]["l1"].get<double>(), 2 * 5.0 / 8, 1e-12);
  const auto median =
      SurveyJson({"median", "--bounds", "0,1", "--domain", "0,0.25,0.5,0.75,1", "--example",
                  "0.25,0.5,0.5,0.5,0.75", "--adjacency", "replace-one", "--smooth", "0.5"});
  EXPECT_EQ(median["global"]["l1"], 1);
  EXPECT_EQ(median["local"]["l1"], 0);
  EXPECT_EQ(median["local_enumerated"]["l1"], 0);
  // Two records away, three records are at an end and the next replacement moves it by 1/2.
  EXPECT_NEAR(median["smooth"]["l1"].get<double>(), std::exp(-2 * 0.5) * 0.5, 1e-12);
  const auto histogram =
      SurveyJson({"histogram", "--bounds", "0,1", "--records", "3", "--adjacency", "replace-one",
                  "--domain", "0,0.4,0.9", "--bins", "3"});
  EXPECT_NEAR(histogram["global_enumerated"]["l2"].get<double>(), std::sqrt(2.0), 1e-12);
  EXPECT_EQ(histogram["global_enumerated"]["l1"], 2);
}

TEST(SensitivityCommand, SaysWhyAMeanWithoutBoundsHasNone) {
  const auto mean = SurveyJson({"mean", "--records", "8"});
  EXPECT_TRUE(mean["global"]["l1"].is_null());
  EXPECT_NE(mean["global"]["reason"].get<std::string>().find("without bounds"), std::string::npos);
  const CommandOutcome text = SurveyBy({"mean", "--records", "8"});
  EXPECT_NE(text.out.find("infinite"), std::string::npos);
  EXPECT_NE(text.out.find("declare bounds"), std::string::npos);
}

TEST(SensitivityCommand, RefusesWhatItCannotAnswerInASentence) {
  const auto error = [](std::vector<std::string> words) {
    return SurveyBy(std::move(words)).error;
  };
  EXPECT_NE(error({"mode"}).find("'mode' is not a statistic"), std::string::npos);
  EXPECT_NE(error({"mean", "--bounds", "1"}).find("low,high"), std::string::npos);
  EXPECT_NE(error({"mean", "--bounds", "0,1", "--bins", "3"}).find("for a histogram"),
            std::string::npos);
  EXPECT_NE(error({"mean", "--bounds", "0,1", "--records", "60", "--domain", "0,1"})
                .find("smaller domain"),
            std::string::npos);
  EXPECT_NE(error({"mean", "--bounds", "0,1", "--example", "0,1", "--smooth", "1"})
                .find("under replace-one"),
            std::string::npos);
  EXPECT_NE(error({"mean", "--bounds", "0,1", "--domain", "x"}).find("'x'"), std::string::npos);
}

}  // namespace
}  // namespace sordino
