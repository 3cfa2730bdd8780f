#include "sordino/cli/plan_trials_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "sordino/cli/command_test_support.h"
#include "sordino/cli/plan_command.h"

namespace sordino {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

Json Answer(const std::string& line) {
  const CommandOutcome outcome = CallCommand(AddPlanCommand, Words(line));
  EXPECT_EQ(outcome.error, "");
  return Json::parse(outcome.out);
}

TEST(PlanMean, PredictsAndMeasures) {
  const Json json = Answer("plan mean --kind binary --records 100 --epsilon 1 --trials 400 --json");
  // 1 / (4 n), and the variance of discrete Laplace noise of scale 1 / epsilon over n^2.
  const double decay = std::exp(-1.0);
  const double predicted = 0.0025 + 2 * decay / ((1 - decay) * (1 - decay)) / 1e4;
  EXPECT_NEAR(json["predicted"].get<double>(), predicted, 1e-8);
  EXPECT_NEAR(json["published"].get<double>(), 0.01 + 0.0002, 1e-12);
  EXPECT_NEAR(json["measured"].get<double>(), predicted,
              6 * json["measured_standard_error"].get<double>());
}

TEST(PlanMean, HasNoMeasurementUnlessAskedFor) {
  const Json json =
      Answer("plan mean --kind vector --dimension 4 --records 100 --epsilon 1 --delta 1e-5 --json");
  EXPECT_FALSE(json.contains("measured"));
  EXPECT_TRUE(json["published"].is_null());
  EXPECT_GT(json["predicted"], json["without_privacy"]);
}

TEST(PlanDescent, MeasuresBothSchedulesBelowTheirBounds) {
  const Json json = Answer(
      "plan descent --records 10000 --epsilon 1 --delta 1e-5 --seeds 5 --momentum 0.5 --influence "
      "--json");
  for (const Json& risk : {json["uniform"], json["dynamic"], json["momentum"]["uniform"],
                           json["momentum"]["dynamic"]}) {
    EXPECT_GT(risk["measured"], 0);
    EXPECT_LT(risk["measured"], risk["bound"]);
  }
  EXPECT_LT(json["dynamic"]["bound"], json["uniform"]["bound"]);
  const Json& influence = json["influence"];
  ASSERT_EQ(influence["measured"].size(), json["dynamic"]["steps"]);
  ASSERT_EQ(influence["predicted"].size(), json["dynamic"]["steps"]);
  // The noise of the last step is the most harmful, and theory bounds that of all of them.
  EXPECT_GT(influence["measured"].back(), influence["measured"].front());
  EXPECT_LT(influence["measured"].back(), influence["predicted"].back().get<double>() * 2);
}

TEST(PlanTrials, EndWithWhatToDoNow) {
  const auto told = [](const std::string& line) {
    return CallCommand(AddPlanCommand, Words(line)).out;
  };
  EXPECT_THAT(
      told("plan mean --kind scalar --records 100 --epsilon 0.5"),
      HasSubstr("\nNext: 'sordino release FILE --mean COLUMN --bounds 0,1 --epsilon 0.5' makes"));
  EXPECT_THAT(
      told("plan mean --kind vector --dimension 4 --records 100 --epsilon 1 --delta 1e-5"),
      HasSubstr(
          "\nNext: 'sordino release FILE --vector-mean COLUMNS --clip-norm 1 --epsilon 1' makes"));
  EXPECT_THAT(told("plan descent --records 10000 --epsilon 1 --delta 1e-5 --seeds 5"),
              HasSubstr("\nNext: "));
}

class PlanTrialsMistakes : public ::testing::TestWithParam<Mistake> {};
TEST_P(PlanTrialsMistakes, AreToldInOneSentence) { ExpectMistake(GetParam()); }
INSTANTIATE_TEST_SUITE_P(
    , PlanTrialsMistakes,
    ::testing::Values(
        Mistake{"plan mean --epsilon 1", "--records"},
        Mistake{"plan mean --records 0 --epsilon 1", "1 record"},
        Mistake{"plan mean --records 10 --epsilon 0", "epsilon above 0"},
        Mistake{"plan mean --records 10 --epsilon 1 --kind vektor", "did you mean 'vector'"},
        Mistake{"plan mean --records 10 --epsilon 1 --kind vector", "delta above 0"},
        Mistake{"plan mean --records 10 --epsilon 1 --delta 1e-5", "leave them out"},
        Mistake{"plan mean --records 10 --epsilon 1 --trials 1", "2 to 100000 trials"},
        Mistake{"plan descent --records 10 --epsilon 1 --delta 1e-5", "the best number of steps"},
        Mistake{"plan descent --records 1e9 --epsilon 1 --delta 1e-5", "from 1 to 1e+07"},
        Mistake{"plan descent --records 10000 --epsilon 1 --delta 0", "--delta"},
        Mistake{"plan descent --records 10000 --epsilon 1 --delta 1e-5 --seeds 0", "--seeds"},
        Mistake{"plan descent --records 10000 --epsilon 1 --delta 1e-5 --momentum 2", "momentum"}));

}  // namespace
}  // namespace sordino
