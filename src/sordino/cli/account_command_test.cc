#include "sordino/cli/account_command.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "sordino/cli/command_test_support.h"
#include "sordino/cli/plan_command.h"
#include "sordino/correlation/strategy.h"

namespace sordino {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

constexpr const char* kUsual = "account --rate 0.01 --noise 4 --steps 10000 --delta 1e-5";

CommandOutcome Account(const std::string& line) {
  return CallCommand(AddAccountCommand, Words(line));
}

Json AccountJson(const std::string& line) {
  const CommandOutcome outcome = Account(line + " --json");
  EXPECT_EQ(outcome.error, "") << line;
  EXPECT_EQ(outcome.err, "") << line;
  return Json::parse(outcome.out);
}

double Upper(const Json& json) { return json["epsilon"]["upper"].get<double>(); }

TEST(AccountCommand, GivesTheDocumentedJsonWithKnownValues) {
  const Json json = AccountJson(kUsual);
  EXPECT_EQ(json["delta"], 1e-5);
  EXPECT_NEAR(json["epsilon"]["lower"].get<double>(), 0.9468668, 1e-6);
  EXPECT_NEAR(Upper(json), 0.9468668, 1e-6);
  EXPECT_EQ(json["decided_by"], "pld");
  EXPECT_EQ(json["event"], "add-remove: 10000*poisson(0.01, gaussian(4))");
  EXPECT_TRUE(json["skipped"].empty());
  for (const char* name :
       {"pld", "rdp", "moments", "zcdp", "gdp", "advanced", "optimal", "basic"}) {
    ASSERT_TRUE(json["methods"].contains(name)) << name;
  }
  EXPECT_EQ(json["methods"]["gdp"]["sound"], false);
  EXPECT_NEAR(json["methods"]["moments"]["epsilon"].get<double>(), 1.2586, 1e-3);
  EXPECT_GT(json["methods"]["rdp"]["order"].get<double>(), 1);
}

// Records in a fixed order: one release of all steps, with the sensitivity that `plan noise` says.
TEST(AccountCommand, CorrelatedNoiseInAFixedOrderIsOneRelease) {
  const std::string steps = "account --noise 3 --steps 12 --delta 1e-5 --noise-correlation ";
  // The sensitivity is rounded up.
  EXPECT_THAT(AccountJson(steps + "none")["event"].get<std::string>(),
              HasSubstr("add-remove: matrix(3, 1.0000000000"));
  const double independent = Upper(AccountJson("account --noise 3 --steps 12 --delta 1e-5"));
  EXPECT_NEAR(Upper(AccountJson(steps + "none --separation 1")), independent, 1e-6);
  EXPECT_NEAR(Upper(AccountJson(steps + "none --separation 3 --participations 4")),
              Upper(AccountJson("account --noise 3 --steps 4 --delta 1e-5")), 1e-6);
  const Json plan = Json::parse(
      CallCommand(AddPlanCommand, Words("plan noise --steps 60 --separation 10 --strategy blt:2 "
                                        "--json"))
          .out);
  const Json blt = AccountJson(
      "account --noise 5 --steps 60 --separation 10 --noise-correlation blt:2 --delta 1e-5");
  EXPECT_NEAR(Upper(blt),
              Upper(AccountJson(fmt::format("account --noise {} --delta 1e-5",
                                            5 / plan["sensitivity"].get<double>()))),
              1e-6);
}

// Cyclic Poisson sampling: a round of all groups is a release, which is charged whole.
TEST(AccountCommand, CorrelatedNoiseOfSampledBatchesIsARelease) {
  const std::string flags = "account --rate 0.01 --noise 2 --delta 1e-6 --noise-correlation ";
  EXPECT_THAT(AccountJson(flags + "none --steps 300")["event"].get<std::string>(),
              HasSubstr("add-remove: 300*poisson(0.01, matrix(2, 1.0000000000"));
  const Json banded = AccountJson(flags + "banded:7 --steps 1000");
  EXPECT_THAT(banded["event"].get<std::string>(), HasSubstr("143*poisson(0.07, matrix(2, "));
  EXPECT_THAT(AccountJson(flags + "banded:7 --steps 995")["event"].get<std::string>(),
              HasSubstr("143*poisson(0.07, matrix(2, "));
  // Noise that is larger by the norm of a column has the published event of BandMF.
  const auto strategy = MakeStrategy("banded:7", {1000, 7, 143});
  const double norm = strategy->Sensitivity({1000, 7, 1});
  EXPECT_GT(norm, 1.05);
  const Json same = AccountJson(fmt::format(
      "account --delta 1e-6 --event add-remove:143*poisson(0.07,gaussian({:.17g}))", 2 / norm));
  EXPECT_NEAR(Upper(banded), Upper(same), 1e-6);
}

TEST(AccountCommand, AnAllocationThatWasBegunCountsWhole) {
  const std::string flags = "account --sampling allocation --rate 0.01 --noise 2 --delta 1e-6";
  const Json whole = AccountJson(flags + " --steps 1000");
  EXPECT_EQ(whole["event"], "add-remove: 10*allocation(100, gaussian(2))");
  EXPECT_GE(whole["epsilon"]["lower"].get<double>(), 0.69443);
  EXPECT_LE(Upper(whole), 0.69736);
  EXPECT_THAT(whole["unit"].get<std::string>(), HasSubstr("charged whole"));
  EXPECT_EQ(AccountJson(flags + " --steps 901"), whole);
  EXPECT_EQ(AccountJson(flags + " --steps 900")["event"],
            "add-remove: 9*allocation(100, gaussian(2))");
  EXPECT_EQ(AccountJson(flags)["event"], "add-remove: allocation(100, gaussian(2))");
  // One batch holds everybody.
  EXPECT_EQ(AccountJson("account --sampling allocation --rate 1 --noise 2 --delta 1e-6")["event"],
            "add-remove: gaussian(2)");
}

TEST(AccountCommand, AllocationsThatAreNotCoveredAreRefused) {
  const std::string flags = "account --sampling allocation --noise 2 --delta 1e-6 ";
  EXPECT_THAT(Account(flags + "--rate 0.03").error, HasSubstr("not one over a whole number"));
  EXPECT_THAT(Account(flags + "--rate 0").error, HasSubstr("not one over a whole number"));
  EXPECT_THAT(Account(flags).error, HasSubstr("needs --rate"));
  EXPECT_THAT(Account(flags + "--rate 0.01 --adjacency replace-one").error,
              HasSubstr("no bound is proven for replacing"));
  EXPECT_THAT(Account(flags + "--rate 0.01 --mechanism laplace").error,
              HasSubstr("must be 'gaussian'"));
}

TEST(AccountCommand, IntervalLiesBelowEverySoundMethod) {
  constexpr const char* kFixedSize =
      "account --rate 0.02 --noise 2 --steps 300 --sampling fixed --adjacency replace-one "
      "--delta 1e-5";
  for (const char* line :
       {kUsual, "account --noise 1 --delta 1e-6", "account --rate 0.1 --noise 0.7 --delta 1e-3",
        "account --noise 3 --steps 50 --mechanism laplace --delta 1e-5", kFixedSize}) {
    const Json json = AccountJson(line);
    const double upper = Upper(json);
    EXPECT_LE(json["epsilon"]["lower"].get<double>(), upper) << line;
    for (const auto& [name, method] : json["methods"].items()) {
      if (!method["sound"].get<bool>()) continue;
      const Json& value = name == "pld" ? method["upper"] : method["epsilon"];
      EXPECT_LE(upper, value.get<double>()) << line << ": " << name;
    }
  }
}

TEST(AccountCommand, TextStartsWithTheCertifiedIntervalAndRoundsItOutwards) {
  const CommandOutcome outcome = Account(kUsual);
  EXPECT_EQ(outcome.error, "");
  // The interval is [0.94686680075..., 0.94686680076...].
  EXPECT_THAT(outcome.out, ::testing::StartsWith("At delta 1e-05, epsilon is certified to lie "
                                                 "between 0.9468668 and 0.9468669;"));
  EXPECT_THAT(outcome.out, HasSubstr("decides"));
  EXPECT_THAT(outcome.out, HasSubstr("an estimate, not a bound"));
}

TEST(AccountCommand, DeltaIsAskedForWithEpsilon) {
  const double epsilon = Upper(AccountJson(kUsual));
  const Json json =
      AccountJson("account --rate 0.01 --noise 4 --steps 1e4 --epsilon " + Json(epsilon).dump());
  EXPECT_EQ(json["epsilon"], epsilon);
  EXPECT_NEAR(json["delta"]["upper"].get<double>(), 1e-5, 1e-9);
  EXPECT_LE(json["delta"]["lower"].get<double>(), json["delta"]["upper"].get<double>());
  EXPECT_GE(json["methods"]["rdp"]["delta"].get<double>(), json["delta"]["upper"].get<double>());
  EXPECT_TRUE(json["skipped"].contains("moments"));
}

TEST(AccountCommand, PublishedClosedFormsStandBesideTheCertifiedEpsilon) {
  const Json json = AccountJson(kUsual);
  EXPECT_NEAR(json["published"]["strong"]["epsilon"].get<double>(), 4.849, 1e-3);
  EXPECT_EQ(json["published"]["strong"]["form"], "q e sqrt(T ln(1/delta))");
  EXPECT_THAT(Account(kUsual).out, HasSubstr("(no guarantees)"));
  // Asked for a delta, they have none.
  EXPECT_FALSE(AccountJson("account --noise 4 --epsilon 1").contains("published"));
  EXPECT_FALSE(AccountJson("account --noise 4 --delta 0").contains("published"));
}

TEST(AccountCommand, TheSamplingTheoremTypedExactlyGivesItsEpsilon) {
  const Json json =
      Json::parse(CallCommand(AddAccountCommand, {"account", "--event",
                                                  "add-remove: poisson(0.01, approximate(1, 1e-6))",
                                                  "--delta", "1e-8", "--json"})
                      .out);
  EXPECT_NEAR(Upper(json), std::log1p(0.01 * std::expm1(1.0)), 1e-9);
  EXPECT_NEAR(json["published"]["basic"]["epsilon"].get<double>(), 0.01, 1e-12);
}

TEST(AccountCommand, OrdersGiveTheRenyiCurveOfTheWholeComposition) {
  const Json json = AccountJson("account --noise 2 --steps 10 --delta 1e-5 --orders 1.5,2,64");
  ASSERT_EQ(json["rdp_curve"].size(), 3U);
  for (const Json& point : json["rdp_curve"]) {
    const double order = point["order"].get<double>();
    EXPECT_NEAR(point["epsilon"].get<double>(), 10 * order / (2 * 2 * 2), 1e-9 * order);
  }
  EXPECT_EQ(json["rdp_curve"][0]["order"], 1.5);
  EXPECT_EQ(json["rdp_curve"][2]["order"], 64);
}

TEST(AccountCommand, MechanismsAndSamplersReachTheEvent) {
  const auto event = [](const std::string& flags) {
    return AccountJson("account --delta 1e-5 " + flags)["event"].get<std::string>();
  };
  EXPECT_EQ(event("--noise 2"), "add-remove: gaussian(2)");
  EXPECT_EQ(event("--noise 2 --mechanism laplace --adjacency zero-out"), "zero-out: laplace(2)");
  EXPECT_EQ(event("--noise 2 --mechanism discrete-laplace"), "add-remove: discrete-laplace(2, 1)");
  EXPECT_EQ(event("--noise 2 --mechanism discrete-gaussian --sensitivity 3"),
            "add-remove: discrete-gaussian(6, 3)");
  EXPECT_EQ(event("--noise 2 --rate 0.5 --sampling fixed --steps 1e2"),
            "add-remove: 100*fixed(0.5, gaussian(2))");
}

TEST(AccountCommand, SelectPricesTheBestOfSeveralRuns) {
  const Json best = AccountJson("account --noise 4 --delta 1e-5 --select tnb:0:0.1");
  EXPECT_EQ(best["event"], "add-remove: best-tnb(0, 0.1, gaussian(4))");
  EXPECT_NEAR(Upper(best), 1.19112, 1e-3);
  EXPECT_LT(best["epsilon"]["lower"].get<double>(), Upper(best));
  const Json text =
      AccountJson("account --event add-remove:gaussian(4) --delta 1e-5 --select tnb:0:0.1");
  EXPECT_EQ(text, best);
}

TEST(AccountCommand, SelectIsRefusedWhereItSaysNothing) {
  const std::string flags = "account --noise 4 --delta 1e-5";
  EXPECT_THAT(Account(flags + " --select geometric:3").error, HasSubstr("give tnb:ETA:GAMMA"));
  EXPECT_THAT(Account(flags + " --select tnb:0:2").error, HasSubstr("the number of runs"));
  EXPECT_THAT(Account(flags + " --select tnb:0:0.1 --curve").error, HasSubstr("leave out one"));
}

TEST(AccountCommand, ReplaceOneSaysWhatTheNoiseIsRelativeTo) {
  EXPECT_THAT(Account(std::string(kUsual) + " --adjacency replace-one").out,
              HasSubstr("relative to the bound C"));
  const std::string fixed =
      Account("account --noise 2 --adjacency replace-one --delta 1e-5 --json").out;
  EXPECT_THAT(Json::parse(fixed)["unit"].get<std::string>(), HasSubstr("replace-one sensitivity"));
  EXPECT_THAT(Account(kUsual).out, Not(HasSubstr("relative")));
}

TEST(AccountCommand, FixedSizeBatchesSayWhatTheNoiseIsRelativeToUnderEveryAdjacency) {
  for (const char* adjacency : {"add-remove", "replace-one", "zero-out"}) {
    EXPECT_THAT(Account(std::string("account --noise 2 --rate 0.1 --sampling fixed --delta 1e-5 "
                                    "--steps 10 --adjacency ") +
                        adjacency)
                    .out,
                HasSubstr("With batches of fixed size the noise is relative to the replace-one"));
  }
}

// The loss of the Gaussians alone is far above epsilon: delta is as good as 1, and that is said.
TEST(AccountCommand, DeltaOfAnEventThatHidesNothingIsCloseToOneAndNotUnknown) {
  const CommandOutcome outcome =
      CallCommand(AddAccountCommand,
                  {"account", "--event", "add-remove: compose(1000000*gaussian(0.03), pure(1))",
                   "--epsilon", "80", "--json"});
  const Json delta = Json::parse(outcome.out)["delta"];
  EXPECT_GT(delta["lower"], 0.999999);
  EXPECT_EQ(delta["upper"], 1);
}

TEST(AccountCommand, EventTextStandsForTheFlags) {
  const CommandOutcome outcome = CallCommand(
      AddAccountCommand, {"account", "--event", "add-remove: poisson(0.01, gaussian(4))", "--steps",
                          "10000", "--delta", "1e-5", "--json"});
  ASSERT_EQ(outcome.error, "");
  EXPECT_EQ(Json::parse(outcome.out), AccountJson(kUsual));
  const CommandOutcome mixed = CallCommand(
      AddAccountCommand, {"account", "--event", "gaussian(4)", "--noise", "4", "--delta", "1e-5"});
  EXPECT_THAT(mixed.error, HasSubstr("--event"));
}

// Ten thousand releases are more text than a command line takes.
TEST(AccountCommand, EventFileStandsForALongEventText) {
  const std::string usual = WriteTestFile("usual.txt", "add-remove: poisson(0.01, gaussian(4))\n");
  const CommandOutcome same = CallCommand(
      AddAccountCommand,
      {"account", "--event-file", usual, "--steps", "10000", "--delta", "1e-5", "--json"});
  ASSERT_EQ(same.error, "");
  EXPECT_EQ(Json::parse(same.out), AccountJson(kUsual));
  std::string text = "add-remove: compose(gaussian(30)";
  for (int i = 1; i < 10000; ++i) text += ", gaussian(" + std::to_string(30 + 0.001 * i) + ")";
  const CommandOutcome outcome = CallCommand(
      AddAccountCommand, {"account", "--event-file", WriteTestFile("long.txt", text + ")"),
                          "--delta", "1e-5", "--json"});
  ASSERT_EQ(outcome.error, "");
  EXPECT_NEAR(Json::parse(outcome.out)["epsilon"]["upper"], 14.9, 1.5);
  const CommandOutcome both =
      CallCommand(AddAccountCommand,
                  {"account", "--event", "gaussian(4)", "--event-file", usual, "--delta", "1e-5"});
  EXPECT_THAT(both.error, HasSubstr("leave out one of the two"));
  const CommandOutcome mixed = CallCommand(
      AddAccountCommand, {"account", "--event-file", usual, "--noise", "4", "--delta", "1e-5"});
  EXPECT_THAT(mixed.error, HasSubstr("--event-file says everything"));
}

TEST(AccountCommand, CurveOfAnEventCountsItsReleases) {
  for (const char* event : {"add-remove:6*gaussian(4)", "add-remove:2*gaussian(4)"}) {
    const bool repeated = std::string(event).find("2*") != std::string::npos;
    const Json json = AccountJson("account --delta 1e-5 --curve --event " + std::string(event) +
                                  (repeated ? " --steps 3" : ""));
    EXPECT_EQ(json["event"], "add-remove: 6*gaussian(4)");
    EXPECT_EQ(json["curve"],
              AccountJson("account --noise 4 --steps 6 --delta 1e-5 --curve")["curve"]);
  }
}

TEST(AccountCommand, ScheduleOfEqualStepsIsTheirRepetition) {
  const std::string path =
      WriteTestFile("equal.csv", "rate,noise,steps\n0.01,4,2500\n0.01,4,2500\n0.01,4,5e3\n");
  EXPECT_EQ(AccountJson("account --delta 1e-5 --schedule " + path), AccountJson(kUsual));
}

TEST(AccountCommand, CurveRisesToTheAnswer) {
  const Json json = AccountJson("account --rate 0.01 --noise 2 --steps 3000 --delta 1e-5 --curve");
  const Json& curve = json["curve"];
  ASSERT_GE(curve.size(), 20U);
  EXPECT_EQ(curve.front()["steps"], 1);
  EXPECT_EQ(curve.back()["steps"], 3000);
  EXPECT_LE(curve.back()["upper"].get<double>(), Upper(json));
  for (std::size_t i = 0; i < curve.size(); ++i) {
    EXPECT_LE(curve[i]["lower"].get<double>(), curve[i]["upper"].get<double>());
    if (i == 0) continue;
    EXPECT_GT(curve[i]["steps"].get<std::uint64_t>(), curve[i - 1]["steps"].get<std::uint64_t>());
    EXPECT_GE(curve[i]["lower"].get<double>(), curve[i - 1]["lower"].get<double>());
    EXPECT_GE(curve[i]["upper"].get<double>(), curve[i - 1]["upper"].get<double>());
  }
}

TEST(AccountCommand, CurveOfAScheduleFollowsItsOrder) {
  const std::string path = WriteTestFile("order.csv", "noise,steps\n10,1\n1,1\n");
  const Json json = AccountJson("account --delta 1e-5 --curve --schedule " + path);
  ASSERT_EQ(json["curve"].size(), 2U);
  EXPECT_NEAR(json["curve"][0]["upper"].get<double>(),
              Upper(AccountJson("account --noise 10 --delta 1e-5")), 1e-9);
}

TEST(AccountCommand, WritesAPictureAndAPlot) {
  const std::string path = WriteTestFile("curve.svg", "");
  const CommandOutcome outcome =
      Account("account --noise 2 --steps 1000 --delta 1e-5 --picture " + path);
  EXPECT_EQ(outcome.error, "");
  EXPECT_THAT(outcome.out, HasSubstr("steps (log)"));
  EXPECT_THAT(ReadTestFile(path), ::testing::StartsWith("<svg xmlns="));
  const CommandOutcome refused =
      Account("account --noise 2 --delta 1e-5 --picture /no/such/folder/curve.svg");
  EXPECT_THAT(refused.error, HasSubstr("cannot be written"));
  EXPECT_EQ(refused.out, "");
}

// The corner of the claimed line lies on the curve, and everything drawn lies in the square.
TEST(AccountCommand, WritesTheTradeoffCurveWithItsClaim) {
  for (const char* line :
       {"account --rate 0.01 --noise 1 --steps 1000 --delta 1e-5",
        "account --noise 2 --epsilon 0.5", "account --noise 2 --mechanism laplace --delta 0",
        "account --noise 1 --steps 0 --delta 0"}) {
    const std::string path = WriteTestFile("tradeoff.svg", "");
    const CommandOutcome outcome = Account(std::string(line) + " --tradeoff " + path);
    EXPECT_EQ(outcome.error, "") << line;
    const std::string svg = ReadTestFile(path);
    EXPECT_THAT(svg, ::testing::StartsWith("<svg xmlns=")) << line;
    EXPECT_THAT(svg, HasSubstr("curve line\" points=\"76.00,68.00 ")) << line;
    EXPECT_THAT(svg, HasSubstr("what is claimed: epsilon")) << line;
    EXPECT_THAT(svg, ::testing::Not(HasSubstr("nan"))) << line;
  }
  const std::string path = WriteTestFile("tradeoff.svg", "");
  EXPECT_EQ(Account("account --noise 2 --delta 0 --tradeoff " + path).error, "");
  EXPECT_THAT(ReadTestFile(path), ::testing::Not(HasSubstr("claimed")));
  const CommandOutcome refused =
      Account("account --noise 2 --delta 1e-5 --tradeoff /no/such/folder/curve.svg");
  EXPECT_THAT(refused.error, HasSubstr("cannot be written"));
  EXPECT_EQ(refused.out, "");
}

TEST(AccountCommand, PicturesNeverOverwriteTheScheduleOrEachOther) {
  const std::string plan = "noise,steps\n10,2\n";
  const std::string schedule = WriteTestFile("schedule.svg", plan);
  const std::string line = "account --delta 1e-5 --schedule " + schedule;
  for (const char* flag : {" --picture ", " --tradeoff "}) {
    for (const char* force : {"", " --force"}) {
      EXPECT_THAT(Account(fmt::format("{}{}{}{}", line, flag, schedule, force)).error,
                  HasSubstr("also reads"));
    }
    const std::string diary = WriteTestFile("diary.svg", "x");
    EXPECT_THAT(Account(fmt::format("{}{}{}", line, flag, diary)).error, HasSubstr("--force"));
    EXPECT_EQ(ReadTestFile(diary), "x");
    EXPECT_EQ(Account(fmt::format("{}{}{} --force", line, flag, diary)).error, "");
    EXPECT_THAT(Account(fmt::format("{}{}a.png", line, flag)).error, HasSubstr("ends in .svg"));
  }
  EXPECT_EQ(ReadTestFile(schedule), plan);
  const std::string both = WriteTestFile("both.svg", "");
  EXPECT_THAT(Account(line + " --picture " + both + " --tradeoff " + both).error,
              HasSubstr("also reads or writes"));
  EXPECT_EQ(ReadTestFile(both), "");
}

TEST(AccountCommand, PureDpIsExactAtDeltaZeroAndGaussianNoiseHasNone) {
  const Json laplace = AccountJson("account --noise 2 --mechanism laplace --steps 3 --delta 0");
  EXPECT_NEAR(Upper(laplace), 1.5, 1e-9);
  const Json gaussian = AccountJson("account --noise 2 --delta 0");
  EXPECT_TRUE(gaussian["epsilon"]["upper"].is_null());
  EXPECT_FALSE(gaussian["epsilon"]["reason"].get<std::string>().empty());
  EXPECT_TRUE(gaussian["decided_by"].is_null());
  EXPECT_THAT(Account("account --noise 2 --delta 0").out,
              ::testing::StartsWith("No finite epsilon holds at delta 0"));
}

TEST(AccountCommand, NothingReleasedSpendsNothing) {
  for (const char* line : {"account --rate 0.1 --noise 1 --steps 0 --delta 1e-5",
                           "account --rate 0 --noise 1 --steps 10 --delta 0.1"}) {
    EXPECT_EQ(Upper(AccountJson(line)), 0) << line;
  }
  EXPECT_THAT(Account("account --noise 1 --steps 0 --delta 1e-5 --curve").out,
              HasSubstr("Nothing was released"));
}

TEST(AccountCommand, WholeNumbersMayBeWrittenWithAnExponent) {
  EXPECT_EQ(AccountJson("account --noise 100 --steps 1e3 --delta 1e-5"),
            AccountJson("account --noise 100 --steps 1000 --delta 1e-5"));
}

class AccountMistake : public ::testing::TestWithParam<Mistake> {};

TEST_P(AccountMistake, IsToldInOneSentenceWithExitCodeTwo) { ExpectMistake(GetParam()); }

INSTANTIATE_TEST_SUITE_P(
    Every, AccountMistake,
    ::testing::Values(
        Mistake{"account --noise 1 --noise-correlation banded:2 --delta 1e-5",
                "--steps is missing"},
        Mistake{"account --noise 1 --steps 9 --noise-correlation bandet:2 --delta 1e-5", "banded"},
        Mistake{"account --noise 1 --steps 9 --separation 3 --delta 1e-5",
                "give --noise-correlation too"},
        Mistake{"account --noise 1 --steps 9 --separation 0 --noise-correlation none --delta 1e-5",
                "0"},
        Mistake{"account --noise 1 --steps 9 --rate 0.2 --separation 3 --noise-correlation "
                "banded:3 --delta 1e-5",
                "follow from the bands"},
        Mistake{"account --noise 1 --steps 9 --rate 0.5 --noise-correlation banded:3 --delta 1e-5",
                "a rate of at most 0.333333"},
        Mistake{"account --noise 1 --steps 9 --rate 0.2 --adjacency replace-one "
                "--noise-correlation banded:3 --delta 1e-5",
                "not proven for replace-one"},
        Mistake{"account --noise 1 --steps 9 --rate 0.2 --sampling fixed --noise-correlation "
                "banded:3 --delta 1e-5",
                "rest between two steps"},
        Mistake{"account --noise 1 --steps 9 --mechanism laplace --noise-correlation banded:3 "
                "--delta 1e-5",
                "Gaussian noise"},
        Mistake{"account --event gaussian(1) --noise-correlation banded:3 --delta 1e-5",
                "only --steps"},
        Mistake{"account --rate 1.5 --noise 1 --delta 1e-5", "1.5"},
        Mistake{"account --rate -0.1 --noise 1 --delta 1e-5", "-0.1"},
        Mistake{"account --rate nan --noise 1 --delta 1e-5", "'nan' in --rate"},
        Mistake{"account --noise -1 --delta 1e-5", "-1"},
        Mistake{"account --noise 0 --delta 1e-5", "greater than 0"},
        Mistake{"account --noise inf --delta 1e-5", "'inf' in --noise"},
        Mistake{"account --noise 1e400 --delta 1e-5", "range of a double"},
        Mistake{"account --noise 4x --delta 1e-5", "'4x' in --noise"},
        Mistake{"account --noise 1 --delta 2", "delta is 2"},
        Mistake{"account --noise 1 --delta 1e-320", "range of a double"},
        Mistake{"account --noise 1 --delta -1e-9", "-1e-09"},
        Mistake{"account --noise 1 --epsilon -1", "epsilon is -1"},
        Mistake{"account --noise 1", "--delta"},
        Mistake{"account --noise 1 --delta 0.1 --epsilon 1", "both"},
        Mistake{"account --delta 1e-5", "--noise is missing"},
        Mistake{"account --noise 1 --delta 1e-5 --steps 2.5", "whole number"},
        Mistake{"account --noise 1 --delta 1e-5 --steps -3", "whole number"},
        Mistake{"account --noise 1 --delta 1e-5 --steps 1e17", "2^53"},
        Mistake{"account --noise 1 --delta 1e-5 --mechanism gausian", "'gaussian'"},
        Mistake{"account --noise 1 --delta 1e-5 --adjacency add-remov", "'add-remove'"},
        Mistake{"account --noise 1 --rate 0.1 --delta 1e-5 --sampling posson", "'poisson'"},
        Mistake{"account --noise 1 --rate 0.1 --delta 1e-5 --sampling none", "--sampling none"},
        Mistake{"account --noise 1 --delta 1e-5 --sampling fixed", "needs --rate"},
        Mistake{"account --noise 1 --delta 1e-5 --sensitivity 2", "discrete"},
        Mistake{"account --noise 1 --delta 1e-5 --mechanism discrete-laplace --sensitivity 0",
                "at least 1"},
        Mistake{"account --noise 1 --delta 1e-5 --orders 0.5", "below 1"},
        Mistake{"account --noise 1 --delta 1e-5 --orders 2,,3", "--orders"},
        Mistake{"account --noise 1 --epsilon 1 --curve", "--delta"},
        Mistake{"account --event gaussian( --delta 1e-5", "text is wrong"},
        Mistake{"account --schedule /no/such/file --delta 1e-5", "/no/such/file"},
        Mistake{"account --nois 1 --delta 1e-5", "'--noise'"}));

TEST(AccountProgram, AnswersWithExitCodeZero) {
  const CommandOutcome outcome = RunProgram(Words(std::string(kUsual) + " --json"));
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.err, "");
  EXPECT_EQ(Json::parse(outcome.out), AccountJson(kUsual));
}

}  // namespace
}  // namespace sordino
