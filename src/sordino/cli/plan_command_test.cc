#include "sordino/cli/plan_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "sordino/accounting/calibration.h"
#include "sordino/base/testing/test_folder.h"
#include "sordino/cli/command_test_support.h"
#include "sordino/cli/schedule_file.h"

namespace sordino {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using Json = nlohmann::json;

Json PlanJson(const std::string& line) {
  const CommandOutcome outcome = CallCommand(AddPlanCommand, Words(line + " --json"));
  EXPECT_EQ(outcome.error, "") << line;
  return Json::parse(outcome.out);
}

constexpr const char* kConstants =
    "plan --records 10000 --dimension 100 --lipschitz 1 --smoothness 1 --strong-convexity 0.1 "
    "--initial-gap 0.7 ";

TEST(PlanCommand, AnswersTheReferenceQuestion) {
  const Json json = PlanJson("plan --kappa 10 --alpha 1e-4");
  EXPECT_NEAR(json["gamma"].get<double>(), 0.9, 1e-15);
  EXPECT_EQ(json["uniform"]["horizon"], 44);
  EXPECT_EQ(json["uniform"]["formula_horizon"], 45);
  EXPECT_NEAR(json["uniform"]["bound"].get<double>(), 0.0532710, 5.1e-8);
  EXPECT_NEAR(json["uniform"]["bound_at_formula_horizon"].get<double>(), 0.0533352, 5.1e-8);
  EXPECT_EQ(json["dynamic"]["horizon"], 63);
  EXPECT_EQ(json["dynamic"]["formula_horizon"], 63);
  EXPECT_NEAR(json["dynamic"]["bound"].get<double>(), 0.0365846, 5.1e-8);
  // Eq. 9 and 12 at kappa^2 alpha = 0.01.
  const Json& uniform = json["uniform"]["published_order"];
  const Json& dynamic = json["dynamic"]["published_order"];
  EXPECT_NEAR(uniform["value"].get<double>(), 0.01 * (1 - 0.99 * std::log(0.01)), 1e-15);
  EXPECT_NEAR(dynamic["value"].get<double>(), 0.01 / 1.01, 1e-15);
  for (const auto& [order, bound] : {std::pair(uniform, json["uniform"]["bound"].get<double>()),
                                     std::pair(dynamic, json["dynamic"]["bound"].get<double>())}) {
    const double value = order["value"].get<double>();
    EXPECT_GE(bound, value * order["least_constant"].get<double>());
    EXPECT_LE(bound, value * order["largest_constant"].get<double>());
  }
  EXPECT_EQ(json["schedule"]["noise"].size(), 63u);
  EXPECT_EQ(json["schedule"]["influence"].size(), 63u);
  EXPECT_EQ(json["table"].size(), 10u);
  EXPECT_TRUE(json["table"][0]["bound"].is_null());
}

TEST(PlanCommand, ScheduleSpendsTheBudgetAndFalls) {
  const Json json = PlanJson(std::string(kConstants) + "--epsilon 1 --delta 1e-5");
  double spent = 0;
  double last = 1e300;
  for (const Json& noise : json["schedule"]["noise"]) {
    spent += 1 / (noise.get<double>() * noise.get<double>());
    EXPECT_LT(noise.get<double>(), last);
    last = noise.get<double>();
  }
  EXPECT_NEAR(spent, json["budget"]["value"].get<double>(), 1e-9);
  EXPECT_GT(json["budget"]["gain_over_zcdp"].get<double>(), 1.2);
  for (const Json& row : json["table"]) EXPECT_TRUE(row["bound"].is_number()) << row;
}

// The column sigma_t^2 of the paper's table beside the noise of the schedule itself.
TEST(PlanCommand, PrintsTheNoiseVariancesOfTheTable) {
  const std::string line = std::string(kConstants) + "--epsilon 1 --delta 1e-5 --steps 20";
  const Json json = PlanJson(line);
  const double budget = json["budget"]["value"].get<double>();
  const auto row = [&](std::size_t i, const char* key) {
    return json["table"][i][key].get<double>();
  };
  EXPECT_EQ(json["table"][7]["noise_variance"], "gamma^((t - T) / 2) / R");
  EXPECT_NEAR(row(0, "first_variance"), std::log(1e4 / 1e-5) / budget, 1e-9);
  EXPECT_NEAR(row(6, "first_variance"), 20 / budget, 1e-9);
  EXPECT_NEAR(row(7, "first_variance") * budget, std::pow(0.9, -9.5), 1e-9);
  EXPECT_NEAR(row(7, "last_variance") * budget, 1, 1e-9);
  // The true schedule has the same shape, and the constant that its order leaves out.
  const double first = std::pow(json["schedule"]["noise"].front().get<double>(), 2);
  const double constant = (1 - std::pow(0.9, 10)) / (1 - std::sqrt(0.9));
  EXPECT_NEAR(first, row(7, "first_variance") * constant, 1e-9 * first);
  const CommandOutcome text = CallCommand(AddPlanCommand, Words(line));
  EXPECT_THAT(text.out, HasSubstr("their noise variances sigma_t^2 over T = 20 steps"));
  EXPECT_THAT(text.out, HasSubstr("the schedule above: "));
}

TEST(PlanCommand, StepsAndMomentumAreTaken) {
  const Json json = PlanJson("plan --kappa 4 --alpha 1e-6 --momentum 0.5 --steps 50");
  EXPECT_EQ(json["at_steps"]["steps"], 50);
  EXPECT_EQ(json["schedule"]["noise"].size(), 50u);
  EXPECT_LT(json["at_steps"]["dynamic"].get<double>(), json["at_steps"]["uniform"].get<double>());
  EXPECT_LE(json["momentum"]["zeta"].get<double>(), 0);
  const Json best = PlanJson("plan --kappa 4 --alpha 1e-6 --momentum 0.5");
  EXPECT_EQ(best["schedule"]["steps"], best["momentum"]["dynamic"]["horizon"]);
}

TEST(PlanCommand, LongSchedulesAreNotListed) {
  const Json json = PlanJson("plan --kappa 1e9 --alpha 1e-20");
  EXPECT_GT(json["schedule"]["steps"].get<double>(), 1e9);
  EXPECT_TRUE(json["schedule"]["noise"].is_null());
}

TEST(PlanCommand, SaysInATableWhatTheJsonSays) {
  const CommandOutcome outcome =
      CallCommand(AddPlanCommand, Words(std::string(kConstants) + "--epsilon 1 --delta 1e-5"));
  EXPECT_THAT(outcome.out, HasSubstr("zero-concentrated"));
  EXPECT_THAT(outcome.out, HasSubstr("GD+zCDP, dynamic schedule"));
}

TEST(PlanCommand, EndsWithWhatToDoNow) {
  const auto last = [](const std::string& line) {
    return CallCommand(AddPlanCommand, Words(line)).out;
  };
  EXPECT_THAT(
      last("plan --kappa 10 --alpha 1e-4"),
      EndsWith("'sordino train --data FILE --steps 63 --noise-schedule file:FILE --epsilon X "
               "--delta X' trains by it.\n"));
  EXPECT_THAT(last("plan --kappa 1e9 --alpha 1e-20"),
              HasSubstr("\nNext: give --steps up to 1000000: "));
}

TEST(PlanCommand, DrawsAPicture) {
  const TestFolder folder;
  const std::string file = (folder.path() / "plan.svg").string();
  for (const char* line :
       {"plan --kappa 10 --alpha 1e-4", "plan --kappa 1 --alpha 0.5",
        "plan --kappa 1e9 --alpha 1e-20", "plan --kappa 4 --alpha 1e-3 --momentum 0.5 --steps 1"}) {
    const CommandOutcome outcome =
        CallCommand(AddPlanCommand, Words(std::string(line) + " --picture " + file));
    EXPECT_EQ(outcome.error, "") << line;
    EXPECT_THAT(ReadTestFile(file), HasSubstr("</svg>"));
    EXPECT_THAT(ReadTestFile(file), ::testing::Not(HasSubstr("nan"))) << line;
  }
}

TEST(PlanCommand, WritesAScheduleThatTheAccountantReads) {
  const TestFolder folder;
  const std::string file = (folder.path() / "noise.csv").string();
  const std::string line = std::string(kConstants) + "--epsilon 1 --delta 1e-5";
  const Json json = PlanJson(line + " --schedule-out " + file);
  const StepSequence sequence = ReadSchedule(file, {});
  const Json& noise = json["schedule"]["noise"];
  ASSERT_EQ(sequence.TotalSteps(), noise.size());
  for (std::size_t t = 0; t < noise.size(); ++t) {
    EXPECT_EQ(sequence.phases[t].first.ToString(),
              Event::Gaussian(NoiseMultiplier(noise[t].get<double>())).ToString());
  }
  // All of it together spends the epsilon that was given.
  const Interval epsilon = SpentEpsilon(sequence.Prefix(sequence.TotalSteps()), Delta(1e-5));
  EXPECT_LE(epsilon.upper, 1);
  EXPECT_GT(epsilon.lower, 0.999);
  // An earlier schedule is overwritten, another file is not.
  EXPECT_EQ(CallCommand(AddPlanCommand, Words(line + " --schedule-out " + file)).error, "");
  WriteTestFile(file, "noise\n1\n");
  EXPECT_THAT(CallCommand(AddPlanCommand, Words(line + " --schedule-out " + file)).error,
              HasSubstr("--force"));
}

class PlanMistake : public testing::TestWithParam<Mistake> {};
TEST_P(PlanMistake, IsToldInOneSentence) { ExpectMistake(GetParam()); }
INSTANTIATE_TEST_SUITE_P(
    All, PlanMistake,
    testing::Values(
        Mistake{"plan", "--kappa is missing"}, Mistake{"plan --kappa 10", "--alpha is missing"},
        Mistake{"plan --kappa 0.5 --alpha 1e-4", "kappa"},
        Mistake{"plan --kappa 10 --alpha 0", "alpha"},
        Mistake{"plan --kappa 10 --alpha -1", "alpha"},
        Mistake{"plan --kappa 10 --alpha 1", "allows no step"},
        Mistake{"plan --kappa 10 --alpha 1e-4 --steps 0", "--steps"},
        Mistake{"plan --kappa 10 --alpha 1e-4 --steps 1000000", "have no influence"},
        Mistake{"plan --kappa 10 --alpha 1e-4 --momentum 1", "momentum"},
        Mistake{"plan --kappa 10 --alpha 1e-4 --step-size 1", "--momentum"},
        Mistake{"plan --kappa 10 --alpha 1e-4 --momentum 0.9 --step-size 1", "up to"},
        Mistake{"plan --kappa 10 --alpha 1e-4 --records 5", "follow from the constants"},
        Mistake{"plan --records 10", "no budget"},
        Mistake{"plan --records 10 --budget 1", "--dimension is missing"},
        Mistake{"plan --kappa 2 --alpha 1e-4 --epsilon 1", "--delta is missing"},
        Mistake{"plan --kappa 2 --alpha 1e-4 --epsilon 1 --delta 0", "--delta"},
        Mistake{"plan --kappa 2 --alpha 1e-4 --epsilon 1 --delta 1e-5 --budget 2", "two budgets"},
        Mistake{"plan --kappa 2 --alpha 1e-4 --budget 0", "--budget"},
        Mistake{"plan --kappa 10 --alpha 1 --schedule-out x.csv", "allows no step"},
        Mistake{"plan --kappa 10 --alpha 1e-4 --schedule-out x.txt", ".csv"},
        Mistake{"plan --kappa 1e9 --alpha 1e-20 --schedule-out x.csv", "too many for a file"}));

}  // namespace
}  // namespace sordino
