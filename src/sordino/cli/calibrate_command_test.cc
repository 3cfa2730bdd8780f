#include "sordino/cli/calibrate_command.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "sordino/cli/account_command.h"
#include "sordino/cli/command_test_support.h"
#include "sordino/correlation/bands_choice.h"
#include "sordino/correlation/strategy.h"

namespace sordino {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

constexpr const char* kUsualTarget = "calibrate --rate 0.01 --steps 10000 --epsilon 1 --delta 1e-5";

CommandOutcome Calibrate(const std::string& line) {
  return CallCommand(AddCalibrateCommand, Words(line));
}

Json CalibrateJson(const std::string& line) {
  const CommandOutcome outcome = Calibrate(line + " --json");
  EXPECT_EQ(outcome.error, "") << line;
  EXPECT_EQ(outcome.err, "") << line;
  return Json::parse(outcome.out);
}

double Spent(const std::string& flags) {
  const CommandOutcome outcome =
      CallCommand(AddAccountCommand, Words("account " + flags + " --delta 1e-5 --json"));
  EXPECT_EQ(outcome.error, "") << flags;
  return Json::parse(outcome.out)["epsilon"]["upper"].get<double>();
}

TEST(CalibrateCommand, CorrelatedNoiseIsSolvedForTheNoiseOfARow) {
  const std::string flags = "calibrate --epsilon 4 --delta 1e-6 --steps 1000 ";
  const Json sampled = CalibrateJson(flags + "--rate 0.01 --noise-correlation banded:10");
  EXPECT_THAT(sampled["event"].get<std::string>(), HasSubstr("100*poisson(0.1, matrix("));
  EXPECT_FALSE(sampled.contains("formulas"));
  const auto row = CalibrateBands(
      {.steps = 1000, .rate = SamplingRate(0.01), .epsilon = Epsilon(4), .delta = Delta(1e-6)}, 10);
  const double norm = MakeStrategy("banded:10", {1000, 10, 100})->Sensitivity({1000, 10, 1});
  EXPECT_NEAR(sampled["noise_multiplier"].get<double>() / norm, row->noise.value(), 1e-4);
  const Json in_order = CalibrateJson(flags + "--separation 100 --noise-correlation blt:2");
  const double sensitivity = MakeStrategy("blt:2", {1000, 100, 10})->Sensitivity();
  const Json gaussian = CalibrateJson("calibrate --epsilon 4 --delta 1e-6");
  EXPECT_NEAR(in_order["noise_multiplier"].get<double>() / sensitivity,
              gaussian["noise_multiplier"].get<double>(), 1e-4);
  EXPECT_THAT(Calibrate(flags + "--noise 1 --noise-correlation blt:2").error,
              HasSubstr("leave out --noise"));
  EXPECT_THAT(Calibrate(flags + "--rate 0.01 --table --noise-correlation banded:2").error,
              HasSubstr("independent noise"));
  EXPECT_THAT(Calibrate("calibrate --epsilon 4 --delta 1e-6 --noise-correlation blt:2").error,
              HasSubstr("--steps is missing"));
  // Every record is in a round of ten groups, and in ten independent batches with probability 0.65.
  const std::string rare = "calibrate --epsilon 1 --delta 0.7 --steps 10 --rate 0.1 ";
  EXPECT_EQ(CalibrateJson(rare + "--noise-correlation none")["any_noise"], true);
  EXPECT_FALSE(CalibrateJson(rare + "--noise-correlation banded:10").contains("any_noise"));
}

TEST(CalibrateCommand, AllocationsAreSolvedForNoiseAndWholeEpochs) {
  const std::string flags = "calibrate --sampling allocation --epsilon 1 --delta 1e-5 ";
  const Json noise = CalibrateJson(flags + "--rate 0.02 --steps 250");
  EXPECT_LE(noise["epsilon"]["upper"].get<double>(), 1);
  EXPECT_GE(noise["epsilon"]["lower"].get<double>(), 0.999);
  EXPECT_THAT(noise["event"].get<std::string>(), HasSubstr("5*allocation(50, gaussian("));
  const Json steps = CalibrateJson(flags + "--rate 0.02 --noise 3");
  EXPECT_EQ(steps["steps"].get<int>() % 50, 0);
  EXPECT_LE(steps["epsilon"]["upper"].get<double>(), 1);
  EXPECT_THAT(Calibrate(flags + "--noise 3 --steps 500").error, HasSubstr("--rate is missing"));
}

TEST(CalibrateCommand, NoiseIsTheLeastThatMeetsTheBudget) {
  const Json json = CalibrateJson(kUsualTarget);
  const double noise = json["noise_multiplier"].get<double>();
  EXPECT_EQ(json["solved_for"], "noise_multiplier");
  EXPECT_LE(json["epsilon"]["lower"].get<double>(), json["epsilon"]["upper"].get<double>());
  EXPECT_LE(json["epsilon"]["upper"].get<double>(), 1);
  const auto spent = [](double at) {
    return Spent("--rate 0.01 --steps 10000 --noise " + Json(at).dump());
  };
  EXPECT_LE(spent(noise), 1);
  EXPECT_GT(spent(noise * (1 - 1e-4)), 1);
}

TEST(CalibrateCommand, StepsAreTheMostThatMeetTheBudget) {
  const Json json = CalibrateJson("calibrate --rate 0.01 --noise 4 --epsilon 1 --delta 1e-5");
  const std::uint64_t steps = json["steps"].get<std::uint64_t>();
  EXPECT_EQ(json["solved_for"], "steps");
  EXPECT_LE(Spent("--rate 0.01 --noise 4 --steps " + std::to_string(steps)), 1);
  EXPECT_GT(Spent("--rate 0.01 --noise 4 --steps " + std::to_string(steps + 1)), 1);
}

TEST(CalibrateCommand, RateIsTheLargestThatMeetsTheBudget) {
  const Json json = CalibrateJson("calibrate --noise 4 --steps 10000 --epsilon 1 --delta 1e-5");
  const double rate = json["sampling_rate"].get<double>();
  EXPECT_EQ(json["solved_for"], "sampling_rate");
  EXPECT_LE(Spent("--noise 4 --steps 10000 --rate " + Json(rate).dump()), 1);
  EXPECT_GT(Spent("--noise 4 --steps 10000 --rate " + Json(rate * (1 + 1e-4)).dump()), 1);
}

TEST(CalibrateCommand, TextSaysWhatWasSolvedFor) {
  EXPECT_THAT(Calibrate(kUsualTarget).out, ::testing::StartsWith("Solved for the noise"));
  EXPECT_THAT(Calibrate("calibrate --noise 4 --sampling none --epsilon 5 --delta 1e-5").out,
              ::testing::StartsWith("Solved for the steps"));
  EXPECT_THAT(Calibrate("calibrate --noise 4 --steps 1000 --epsilon 1 --delta 1e-5").out,
              ::testing::StartsWith("Solved for the sampling rate"));
}

TEST(CalibrateCommand, LaplaceNoiseMeetsPureDp) {
  const Json json = CalibrateJson("calibrate --mechanism laplace --steps 4 --epsilon 2 --delta 0");
  EXPECT_NEAR(json["noise_multiplier"].get<double>(), 2, 1e-3);
  EXPECT_LE(json["epsilon"]["upper"].get<double>(), 2);
}

TEST(CalibrateCommand, TableShowsTheSquareRootOfTheSteps) {
  const Json json = CalibrateJson(std::string(kUsualTarget) + " --table");
  EXPECT_NEAR(json["formulas"]["moments"].get<double>(), 3.393, 1e-3);
  ASSERT_EQ(json["table"].size(), 5U);
  for (std::size_t i = 0; i < json["table"].size(); ++i) {
    const Json& row = json["table"][i];
    EXPECT_GT(row["ratio_times_sqrt_steps"].get<double>(), 2);
    EXPECT_LT(row["ratio_times_sqrt_steps"].get<double>(), 4);
    if (i == 0) continue;
    EXPECT_GT(row["exact"].get<double>(), json["table"][i - 1]["exact"].get<double>());
  }
  EXPECT_EQ(json["table"][4]["exact"], json["noise_multiplier"]);
  EXPECT_THAT(Calibrate(std::string(kUsualTarget) + " --table").out, HasSubstr("times sqrt(T)"));
}

// The settings of the last line spend what was asked for.
TEST(CalibrateCommand, EndsWithWhatToDoNow) {
  using ::testing::EndsWith;
  EXPECT_THAT(Calibrate("calibrate --rate 0.01 --noise 4 --epsilon 1 --delta 1e-5").out,
              EndsWith("\nNext: 'sordino train --data FILE --noise 4 --rate 0.01 --steps 11050 "
                       "--delta 1e-05' trains with it.\n"));
  EXPECT_THAT(Calibrate("calibrate --rate 0.01 --noise 4 --epsilon 1 --delta 1e-5 --sampling fixed "
                        "--adjacency replace-one")
                  .out,
              EndsWith("--sampling fixed --adjacency replace-one' trains with it.\n"));
  EXPECT_THAT(Calibrate("calibrate --epsilon 1 --delta 1e-5").out,
              EndsWith("the ledger of the data.\n"));
  EXPECT_THAT(Calibrate("calibrate --rate 1e-9 --steps 10 --epsilon 1 --delta 1e-5").out,
              EndsWith("below one over the number of records.\n"));
}

TEST(CalibrateCommand, SaysWhereTheSearchEndedBeforeTheBudget) {
  EXPECT_EQ(CalibrateJson("calibrate --noise 1 --rate 0 --epsilon 1 --delta 1e-5")["search_ended"],
            true);
  EXPECT_FALSE(CalibrateJson(kUsualTarget).contains("search_ended"));
}

// A record is drawn with a probability of at most delta: nothing has to be hidden.
TEST(CalibrateCommand, SaysWhereNoNoiseIsNeeded) {
  for (const char* const flags :
       {"--rate 1e-7 --steps 10", "--rate 1e-6 --steps 10 --sampling fixed --adjacency replace-one",
        "--rate 1e-7 --steps 99 --mechanism laplace"}) {
    const std::string line = fmt::format("calibrate {} --epsilon 1 --delta 1e-5", flags);
    const Json json = CalibrateJson(line);
    EXPECT_EQ(json["noise_multiplier"], 0) << flags;
    EXPECT_EQ(json["any_noise"], true);
    EXPECT_EQ(json["epsilon"]["upper"], 0);
    EXPECT_FALSE(json.contains("event"));
    EXPECT_LE(json["takes_part"].get<double>(), 1e-5);
    EXPECT_THAT(Calibrate(line).out, AllOf(HasSubstr("every noise meets epsilon 1 at delta 1e-05"),
                                           Not(HasSubstr("is the least"))));
    EXPECT_THAT(Calibrate(line + " --table").error, HasSubstr("a rate well above delta"));
  }
  // Just too often, and without sampling always.
  EXPECT_GT(CalibrateJson(
                "calibrate --rate 1.01e-6 --steps 10 --epsilon 1 --delta 1e-5")["noise_multiplier"]
                .get<double>(),
            0);
  EXPECT_GT(CalibrateJson("calibrate --epsilon 1 --delta 0.9")["noise_multiplier"].get<double>(),
            0);
}

class CalibrateMistake : public ::testing::TestWithParam<Mistake> {};

TEST_P(CalibrateMistake, IsToldInOneSentenceWithExitCodeTwo) { ExpectMistake(GetParam()); }

INSTANTIATE_TEST_SUITE_P(
    Every, CalibrateMistake,
    ::testing::Values(
        Mistake{"calibrate --epsilon 1", "--delta is missing"},
        Mistake{"calibrate --delta 1e-5", "--epsilon is missing"},
        Mistake{"calibrate --epsilon 1 --delta 0", "pure"},
        Mistake{"calibrate --epsilon 1 --delta 1e-320", "range of a double"},
        Mistake{"calibrate --epsilon 0 --delta 0 --mechanism laplace", "no noise"},
        Mistake{"calibrate --epsilon 0.1 --delta 1e-5 --noise 0.5", "not even one step"},
        Mistake{"calibrate --epsilon 1e-6 --delta 1e-30 --noise 0.1 --steps 1e6",
                "no sampling rate"},
        Mistake{"calibrate --epsilon 1 --delta 1e-5 --rate 0.1", "--steps is missing"},
        Mistake{"calibrate --epsilon 1 --delta 1e-5 --rate 0.1 --steps 0", "at least 1"},
        Mistake{"calibrate --epsilon 1 --delta 1e-5 --rate 2 --steps 1", "sampling rate is 2"},
        Mistake{"calibrate --epsilon nan --delta 1e-5", "'nan' in --epsilon"},
        Mistake{"calibrate --epsilon 1 --delta 1e-5 --rate 0.1 --noise 1 --steps 5",
                "nothing is left"},
        Mistake{"calibrate --epsilon 1 --delta 1e-5 --noise 1 --table", "--table"},
        Mistake{"calibrate --epsilon 1 --delta 1e-5 --mechanism laplace --table", "--table"},
        Mistake{"calibrate --epsilon 1 --delta 1e-5 --mechanism lapace", "'laplace'"}));

TEST(CalibrateProgram, AnswersWithExitCodeZero) {
  const CommandOutcome outcome = RunProgram(Words(std::string(kUsualTarget) + " --json"));
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.err, "");
  EXPECT_EQ(Json::parse(outcome.out), CalibrateJson(kUsualTarget));
}

TEST(CalibrateCommand, SelectSolvesForTheNoiseOfARun) {
  const Json json = CalibrateJson("calibrate --epsilon 1 --delta 1e-5 --select tnb:0:0.1");
  const double noise = json["noise_multiplier"].get<double>();
  EXPECT_EQ(json["event"], fmt::format("add-remove: best-tnb(0, 0.1, gaussian({}))", noise));
  EXPECT_LE(Spent(fmt::format("--noise {} --select tnb:0:0.1", noise)), 1);
  EXPECT_GT(Spent(fmt::format("--noise {} --select tnb:0:0.1", noise * 0.995)), 1);
}

TEST(CalibrateCommand, SelectNeedsTheStepsOfARun) {
  EXPECT_THAT(Calibrate("calibrate --noise 4 --epsilon 1 --delta 1e-5 --select tnb:0:0.1").error,
              HasSubstr("give --steps"));
}

}  // namespace
}  // namespace sordino
