#include "sordino/cli/plan_noise_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "sordino/base/testing/test_folder.h"
#include "sordino/cli/command_test_support.h"
#include "sordino/cli/plan_command.h"

namespace sordino {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

CommandOutcome Ask(const std::string& line) {
  return CallCommand(AddPlanCommand, Words("plan noise " + line));
}

Json AskJson(const std::string& line) {
  const CommandOutcome outcome = Ask(line + " --json");
  EXPECT_EQ(outcome.error, "");
  return Json::parse(outcome.out);
}

TEST(PlanNoise, HasThePublishedFigures) {
  const Json banded =
      AskJson("--steps 128 --separation 32 --participations 4 --strategy banded --bands 32");
  EXPECT_NEAR(banded["rmse"].get<double>(), 5.130562, 1e-5);
  EXPECT_EQ(banded["coefficients"].size(), 32);
  EXPECT_EQ(banded["coefficients"][0], 1);
  const Json bifr =
      AskJson("--steps 1000 --separation 100 --participations 10 --strategy bifr --bands 2");
  EXPECT_NEAR(bifr["rmse"].get<double>(), 15.248619, 1e-5);
  EXPECT_NEAR(bifr["coefficients"][1].get<double>(), 0.95305, 1e-5);
  const Json largest = AskJson(
      "--steps 128 --participations 16 --separation 8 --strategy banded --bands 8 --objective "
      "max-error");
  EXPECT_NEAR(largest["max_error"].get<double>(), 18.166807, 1e-5);
}

TEST(PlanNoise, AnswersForEveryStrategy) {
  for (const std::string strategy : {"auto", "none", "banded", "blt", "bisr", "bifr", "tree"}) {
    const Json json = AskJson("--steps 60 --separation 20 --strategy " + strategy);
    EXPECT_GT(json["rmse"], 0) << strategy;
    EXPECT_GE(json["max_error"], json["rmse"]);
    EXPECT_GE(json["sensitivity"].get<double>(), std::sqrt(3.0) * (1 - 1e-12));
    EXPECT_EQ(json["participations"], 3);
    EXPECT_EQ(json["coefficients"].is_null(), strategy == "tree");
  }
}

TEST(PlanNoise, SaysWhenItPays) {
  const std::string line = "--steps 100 --rate 0.25 --epsilon 8 --delta 1e-6";
  const Json budget = AskJson(line)["budget"];
  EXPECT_LT(budget["best"]["ratio"], 1);
  EXPECT_LE(budget["best"]["epsilon"]["upper"], 8);
  EXPECT_EQ(budget["bands"][0]["bands"], 1);
  EXPECT_EQ(budget["bands"][0]["ratio"], 1);
  EXPECT_EQ(budget["table"].size(), 15);
  const CommandOutcome text = Ask(line);
  EXPECT_THAT(text.out, HasSubstr("epsilon 32"));
  EXPECT_THAT(text.out, HasSubstr("Next: "));
}

TEST(PlanNoise, DrawsWhenItPays) {
  const TestFolder folder;
  const std::string path = folder.path() / "pays.svg";
  EXPECT_EQ(Ask("--steps 12 --rate 0.5 --epsilon 4 --delta 1e-6 --picture " + path).error, "");
  const std::string svg = ReadTestFile(path);
  EXPECT_THAT(svg, HasSubstr("<svg"));
  EXPECT_THAT(svg, HasSubstr("6 epochs"));
}

class PlanNoiseMistakes : public ::testing::TestWithParam<Mistake> {};
TEST_P(PlanNoiseMistakes, AreToldInOneSentence) { ExpectMistake(GetParam()); }
INSTANTIATE_TEST_SUITE_P(
    , PlanNoiseMistakes,
    ::testing::Values(
        Mistake{"plan noise", "--steps"}, Mistake{"plan noise --steps 0", "from 1 to"},
        Mistake{"plan noise --steps 10 --separation 0", "at least 1"},
        Mistake{"plan noise --steps 10 --participations 0", "at least 1"},
        Mistake{"plan noise --steps 10 --strategy bandet", "did you mean 'banded'"},
        Mistake{"plan noise --steps 10 --strategy banded --bands 11", "at most 10"},
        Mistake{"plan noise --steps 10 --strategy banded:2 --bands 2", "--bands"},
        Mistake{"plan noise --steps 10 --objective mse", "it can be rmse or max-error"},
        Mistake{"plan noise --steps 10 --epsilon 1", "--delta is missing"},
        Mistake{"plan noise --steps 10 --epsilon 1 --delta 1e-6", "--rate is missing"},
        Mistake{"plan noise --steps 10 --epsilon 1 --delta 1e-6 --rate 0", "rate"},
        Mistake{"plan noise --steps 10 --epsilon 0 --delta 1e-6 --rate 0.1", "--epsilon"},
        Mistake{"plan noise --steps 10 --picture x.svg", "--picture"},
        Mistake{"plan noise --steps 1e6 --strategy banded --bands 1000", "blt"}));

}  // namespace
}  // namespace sordino
