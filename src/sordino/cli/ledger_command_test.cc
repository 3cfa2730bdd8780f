#include "sordino/cli/ledger_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "sordino/accounting/calibration.h"
#include "sordino/accounting/failures.h"
#include "sordino/base/testing/test_folder.h"
#include "sordino/cli/command_test_support.h"
#include "sordino/ledger/ledger.h"

namespace sordino {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::StartsWith;
using Json = nlohmann::json;

class LedgerCommand : public ::testing::Test {
 protected:
  void SetUp() override {
    Remember("state");
    file_ = At("visits.db");
  }
  void TearDown() override { unsetenv("SORDINO_STATE"); }

  // From now on the machine knows what is remembered in this folder.
  void Remember(const std::string& folder) const { setenv("SORDINO_STATE", At(folder).c_str(), 1); }
  std::string At(const std::string& name) const { return (folder_ / name).string(); }

  static CommandOutcome Call(std::vector<std::string> words) {
    words.insert(words.begin(), "ledger");
    return CallCommand(AddLedgerCommand, std::move(words));
  }
  static std::string Text(std::vector<std::string> words) {
    const CommandOutcome outcome = Call(std::move(words));
    EXPECT_EQ(outcome.error, "");
    EXPECT_EQ(outcome.err, "");
    return outcome.out;
  }
  static Json CallJson(std::vector<std::string> words) {
    words.emplace_back("--json");
    return Json::parse(Text(std::move(words)));
  }
  void Init(const std::string& epsilon = "8", const std::string& delta = "1e-5") const {
    Text({"init", file_, "--epsilon", epsilon, "--delta", delta});
  }
  // As a release of its own would charge it; its number.
  std::string Charge(const Event& event, const std::string& what, bool is_private = true) const {
    Ledger ledger = Ledger::Open(file_);
    const Begun begun =
        ledger.BeginRun({.what = what, .plan = event, .is_private = is_private}, {.event = event});
    EXPECT_TRUE(begun.verdict.admitted) << begun.verdict.reason;
    return begun.id;
  }

  const TestFolder folder_;
  std::string file_;
};

Event Gaussian(double noise) { return Event::Gaussian(NoiseMultiplier(noise)); }

// Their counts add up to 0 modulo 2^64.
TEST_F(LedgerCommand, CountsThatWouldWrapAroundAreRefused) {
  Init("1", "0");
  for (int i = 0; i < 6; ++i) {
    const CommandOutcome outcome =
        Call({"charge", file_, "--event", "add-remove: 9223372036854775808*pure(5e-20)", "--note",
              "many"});
    EXPECT_THAT(outcome.error, HasSubstr("2^53"));
  }
  EXPECT_EQ(Ledger::Open(file_).filter().UsedShare(), 0);
  Text({"charge", file_, "--event", "add-remove: 9007199254740992*pure(5e-17)", "--note", "many"});
  EXPECT_GT(Ledger::Open(file_).filter().UsedShare(), 0.45);
  EXPECT_THAT(Call({"charge", file_, "--event", "add-remove: pure(5e-17)", "--note", "x"}).error,
              HasSubstr("2^53"));
}

TEST_F(LedgerCommand, AChargeThatOnlyCountsWholeIsMadeWhenItIsAskedFor) {
  Init("8", "1e-6");
  std::vector<std::string> words = {
      "charge", file_, "--event", "add-remove: approximate(0.1, 9e-7)", "--note", "a survey"};
  const CommandOutcome refused = Call(words);
  EXPECT_THAT(refused.error,
              AllOf(HasSubstr("could only count whole, which takes all of the budget "
                              "of epsilon 8 for its own epsilon of 0.1"),
                    HasSubstr("give --whole if that is meant")));
  EXPECT_EQ(Ledger::Open(file_).filter().UsedShare(), 0);
  words.emplace_back("--whole");
  Text(words);
  EXPECT_EQ(Ledger::Open(file_).filter().UsedShare(), 1);
}

TEST_F(LedgerCommand, AnApproximateReleaseIsCounted) {
  Init("8", "1e-6");
  const Json charged = CallJson(
      {"charge", file_, "--event", "add-remove: approximate(0.1, 1e-9)", "--note", "a survey"});
  EXPECT_EQ(charged["whole"], false);
  EXPECT_GT(charged["used"], 0);
  EXPECT_LT(charged["used"], 0.02);
}

TEST_F(LedgerCommand, WhatAnotherProgramReleasedIsChargedByHand) {
  Init("2");
  const Json charged =
      CallJson({"charge", file_, "--event", "add-remove: 3*gaussian(8)", "--note", "a survey"});
  Ledger ledger = Ledger::Open(file_);
  EXPECT_EQ(ledger.Total(), Event::Repeat(Gaussian(8), 3));
  EXPECT_EQ(charged["head"]["hash"], ledger.head().hash);
  EXPECT_EQ(charged["epsilon"]["upper"], ledger.ComposedEpsilon().upper);
  EXPECT_EQ(charged["used"], ledger.filter().UsedShare());
  const Json shown = CallJson({"show", file_});
  EXPECT_EQ(shown["runs"][0]["what"], "a survey");
  EXPECT_EQ(shown["runs"][0]["id"], charged["run"]);
  EXPECT_THAT(Text({"charge", file_, "--event", "add-remove: gaussian(9)", "--note", "more"}),
              MatchesRegex("charged to .*: [0-9.]+% of its budget is used, head [0-9a-f]{64}\n"));
}

TEST_F(LedgerCommand, ADryRunSaysWhatAChargeWouldBeCountedAs) {
  Init();
  const std::string before = ReadTestFile(file_);
  const std::vector<std::string> call = {
      "charge", file_, "--event", "add-remove: 3*gaussian(8)", "--note", "survey", "--dry-run"};
  EXPECT_THAT(Text(call), MatchesRegex("[0-9.]+% of its budget would be used, and left would be "
                                       "[^\n]*\nnothing was charged\n"));
  const Json forecast = CallJson(call);
  EXPECT_EQ(forecast["dry_run"], true);
  EXPECT_EQ(ReadTestFile(file_), before);
  std::vector<std::string> words = call;
  words[3] = "add-remove: pure(100)";
  EXPECT_THAT(Call(words).error, HasSubstr("nothing was charged"));
  words = call;
  words.pop_back();
  EXPECT_EQ(CallJson(words)["used"], forecast["used"]);
}

TEST_F(LedgerCommand, AChargeByHandMeetsTheSameVerdict) {
  Init("1", "0");
  Text({"charge", file_, "--event", "add-remove: pure(0.7)", "--note", "one"});
  const std::string head = Ledger::Open(file_).head().hash;
  const auto refused = [&](std::vector<std::string> words, const std::string& part) {
    words.insert(words.begin(), {"charge", file_});
    const CommandOutcome outcome = Call(words);
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.error, HasSubstr(part));
    EXPECT_EQ(Ledger::Open(file_).head().hash, head) << part;
  };
  refused({"--event", "add-remove: pure(0.4)", "--note", "two"}, "nothing was charged: ");
  refused({"--event", "add-remove: pure(0.4)", "--note", "two"}, "110 % of the budget");
  refused({"--event", "replace-one: pure(0.1)", "--note", "two"}, "adjacency");
  refused({"--event", "add-remove: pur(0.1)", "--note", "two"}, "pur");
  refused({"--event", "add-remove: none", "--note", "two"}, "of nothing");
  refused({"--event", "add-remove: pure(0.1)", "--note", " "}, "--note is empty");
  refused({"--event", "add-remove: pure(0.1)"}, "--note");
  refused({"--note", "two"}, "--event");
}

TEST_F(LedgerCommand, ThePictureOfARunsLedgerIsDrawnAgainBesideIt) {
  Init();
  folder_.Write("config.toml", "x");
  folder_.Write("metrics.jsonl", "x");
  for (int i = 0; i < 2; ++i) {
    Text({"show", file_, "--picture", At("ledger.svg")});
    EXPECT_TRUE(fs::exists(At("ledger.svg")));
  }
}

// The moment of a stop may have depended on the data, so what counts is the plan.
TEST_F(LedgerCommand, ARunThatCountsWholeIsShownWithTheEpsilonOfItsPlan) {
  Init("1");
  const Event plan = Event::Repeat(Event::Poisson(SamplingRate(0.01), Gaussian(3.9)), 10000);
  ASSERT_LE(SpentEpsilon(plan, Delta(1e-5), 1e-12).upper, 1);
  {
    Ledger ledger = Ledger::Open(file_);
    const Begun begun = ledger.BeginRun(
        {.what = "train", .plan = plan, .failure = 1e-12},
        {.event = Event::Repeat(Event::Poisson(SamplingRate(0.01), Gaussian(3.9)), 100)});
    ASSERT_TRUE(begun.verdict.admitted);
    ASSERT_TRUE(begun.terms.whole);
  }
  const double expected = SpentEpsilon(plan, Delta(1e-5), 1e-12).upper;
  const Json json = CallJson({"show", file_});
  EXPECT_EQ(json["epsilon"]["upper"], expected);
  EXPECT_EQ(json["runs"][0]["epsilon"]["upper"], expected);
  EXPECT_EQ(json["runs"][0]["releases"], 100);
  EXPECT_EQ(Event::Parse(json["runs"][0]["counted"].get<std::string>()), plan);
}

TEST_F(LedgerCommand, InitMakesALedgerWithTheBudget) {
  EXPECT_EQ(Text({"init", file_, "--epsilon", "8", "--delta", "1e-5"}),
            file_ +
                ": epsilon 8 at delta 1e-05 for all releases together, adding or removing one "
                "record.\n");
  const Ledger ledger = Ledger::Open(file_);
  EXPECT_EQ(ledger.budget().epsilon, Epsilon(8));
  EXPECT_EQ(ledger.budget().delta, Delta(1e-5));

  const Json json = CallJson({"init", At("users.db"), "--epsilon", "2", "--delta", "1e-6",
                              "--adjacency", "replace-one", "--unit", "user", "--order", "12"});
  EXPECT_EQ(json["budget"], Json::parse(R"({"epsilon": 2, "delta": 1e-6, "adjacency":
      "replace-one", "unit": "user", "filter": "renyi", "order": 12})"));
  EXPECT_EQ(json["head"]["number"], 0);
  EXPECT_EQ(Ledger::Open(At("users.db")).budget().unit, ProtectedUnit::kUser);
  EXPECT_EQ(json["ledger"], Ledger::Open(At("users.db")).id());
}

TEST_F(LedgerCommand, InitLeavesAnExistingFileAlone) {
  Init();
  const std::string before = ReadTestFile(file_);
  EXPECT_THAT(Call({"init", file_, "--epsilon", "100", "--delta", "1e-5"}).error,
              HasSubstr("exists already"));
  EXPECT_EQ(ReadTestFile(file_), before);
  const std::string other = WriteTestFile("notes.txt", "not a ledger");
  EXPECT_THAT(Call({"init", other, "--epsilon", "1", "--delta", "0"}).error,
              HasSubstr("exists already"));
  EXPECT_EQ(ReadTestFile(other), "not a ledger");
}

class LedgerMistake : public LedgerCommand, public ::testing::WithParamInterface<Mistake> {};

TEST_P(LedgerMistake, IsOneSentenceAndMakesNothing) {
  const std::string old_folder = fs::current_path();
  fs::current_path(folder_);
  ExpectMistake(GetParam());
  fs::current_path(old_folder);
  EXPECT_FALSE(fs::exists(At("x.db")));
}

INSTANTIATE_TEST_SUITE_P(
    Ledger, LedgerMistake,
    ::testing::Values(Mistake{"ledger init x.db --epsilon 0 --delta 1e-5", "--epsilon"},
                      Mistake{"ledger init x.db --epsilon -1 --delta 1e-5", "--epsilon"},
                      Mistake{"ledger init x.db --epsilon inf --delta 1e-5", "--epsilon"},
                      Mistake{"ledger init x.db --epsilon nan --delta 1e-5", "--epsilon"},
                      Mistake{"ledger init x.db --epsilon much --delta 1e-5", "'much'"},
                      Mistake{"ledger init x.db --epsilon 8 --delta 1", "--delta"},
                      Mistake{"ledger init x.db --epsilon 8 --delta -1e-9", "--delta"},
                      Mistake{"ledger init x.db --epsilon 8", "--delta"},
                      Mistake{"ledger init x.db --delta 1e-5", "--epsilon"},
                      Mistake{"ledger init x.db --epsilon 8 --delta 1e-5 --unit rocord", "record"},
                      Mistake{"ledger init x.db --epsilon 8 --delta 1e-5 --adjacency swap", "swap"},
                      Mistake{"ledger init x.db --epsilon 8 --delta 1e-5 --filter reny", "renyi"},
                      Mistake{"ledger init x.db --epsilon 8 --delta 1e-5 --order 1", "order"},
                      Mistake{"ledger init x.db --epsilon 8 --delta 0 --filter gaussian", "delta"},
                      Mistake{"ledger init x.db --epsilon 8 --delta 1e-5 --filter gaussian "
                              "--order 8",
                              "order"},
                      Mistake{"ledger init no/such/x.db --epsilon 8 --delta 1e-5", "x.db"},
                      Mistake{"ledger show x.db", "sordino ledger init"},
                      Mistake{"ledger verify x.db", "x.db"},
                      Mistake{"ledger verify x.db --expect abc", "64 hex digits"},
                      Mistake{"ledger note x.db words", "x.db"}, Mistake{"ledger show", "file"},
                      Mistake{"ledger shw x.db", "'show'"}));

TEST_F(LedgerCommand, ShowOfANewLedgerHasEverythingLeft) {
  Init();
  const Json json = CallJson({"show", file_});
  EXPECT_EQ(json["epsilon"], Json::parse(R"({"lower": 0, "upper": 0})"));
  EXPECT_EQ(json["verdict"]["used"], 0);
  EXPECT_EQ(json["verdict"]["rule"], nullptr);
  EXPECT_EQ(json["left"], Json::parse(R"({"gaussian": {"epsilon": 8, "delta": 1e-5},
      "pure": {"epsilon": 8}})"));
  EXPECT_TRUE(json["private"].get<bool>());
  for (const char* list : {"runs", "charges", "returns", "notes"}) EXPECT_TRUE(json[list].empty());
  const std::string text = Text({"show", file_});
  EXPECT_THAT(text, HasSubstr("0.00%, nothing was charged"));
  EXPECT_THAT(text, Not(HasSubstr("when")));
}

TEST_F(LedgerCommand, ShowGivesTheDocumentedJson) {
  Init();
  const std::string first = Charge(Gaussian(2), "train mlp");
  const std::string second = Charge(Gaussian(4), "release count");
  const Json json = CallJson({"show", file_});
  EXPECT_EQ(json["budget"], Json::parse(R"({"epsilon": 8, "delta": 1e-5, "adjacency": "add-remove",
      "unit": "record", "filter": "renyi"})"));
  // The whole is the composition, less than the sum of its parts.
  const Interval together =
      SpentEpsilon(Event::Compose(std::vector<Event>{Gaussian(2), Gaussian(4)}), Delta(1e-5));
  EXPECT_EQ(json["epsilon"]["upper"], together.upper);
  EXPECT_EQ(json["epsilon"]["lower"], together.lower);
  double sum = 0;
  ASSERT_EQ(json["runs"].size(), 2U);
  for (const Json& run : json["runs"]) {
    sum += run["epsilon"]["upper"].get<double>();
    EXPECT_EQ(run["releases"], 1);
    EXPECT_EQ(run["charges"], 1);
    EXPECT_FALSE(run["whole"].get<bool>());
    EXPECT_THAT(run["time"].get<std::string>(), MatchesRegex("[0-9-]{10}T[0-9:]{8}Z"));
  }
  EXPECT_LT(together.upper, 0.95 * sum);
  EXPECT_EQ(json["runs"][0]["epsilon"]["upper"], SpentEpsilon(Gaussian(2), Delta(1e-5)).upper);
  EXPECT_EQ(json["verdict"]["rule"], "renyi");
  EXPECT_GT(json["verdict"]["order"].get<double>(), 1);
  EXPECT_GT(json["verdict"]["used"].get<double>(), 0);
  EXPECT_LT(json["verdict"]["used"].get<double>(), 1);
  EXPECT_GT(json["left"]["gaussian"]["epsilon"].get<double>(), 0);
  EXPECT_LT(json["left"]["gaussian"]["epsilon"].get<double>(), 8);
  ASSERT_EQ(json["charges"].size(), 2U);
  const Json& charge = json["charges"][1];
  EXPECT_EQ(charge["number"], 4);
  EXPECT_EQ(charge["run"], second);
  EXPECT_EQ(charge["what"], "release count");
  EXPECT_EQ(charge["event"], "add-remove: gaussian(4)");
  EXPECT_EQ(charge["failure"], 0);
  EXPECT_FALSE(charge["who"].get<std::string>().empty());
  EXPECT_TRUE(charge.contains("words"));
  const Ledger ledger = Ledger::Open(file_);
  EXPECT_EQ(json["head"]["number"], 4);
  EXPECT_EQ(json["head"]["hash"], ledger.head().hash);
  EXPECT_EQ(json["ledger"], ledger.id());
  EXPECT_NE(first, second);
}

TEST_F(LedgerCommand, ShowTellsInWordsWhatDecidesAndWhatIsLeft) {
  Init();
  Charge(Gaussian(2), "train mlp");
  const std::string text = Text({"show", file_});
  EXPECT_THAT(text, StartsWith("budget    epsilon 8 at delta 1e-05 for all releases together"));
  EXPECT_THAT(text, HasSubstr("[###"));
  EXPECT_THAT(text, HasSubstr("by the Renyi filter at order "));
  EXPECT_THAT(text, HasSubstr("left      one more Gaussian mechanism of epsilon "));
  EXPECT_THAT(text, HasSubstr("exact if all runs had been fixed in advance"));
  EXPECT_THAT(text, HasSubstr("head      entry 2, "));
  EXPECT_THAT(text, HasSubstr("train mlp  gaussian(2)"));
  EXPECT_THAT(text, Not(HasSubstr("returned")));

  fs::remove(file_);
  Init("1", "0");
  Charge(Event::Pure(Epsilon(0.25)), "count");
  const std::string pure = Text({"show", file_});
  EXPECT_THAT(pure, HasSubstr("[##########------------------------------] 25.00%, by the sum of "
                              "pure epsilons"));
  EXPECT_THAT(pure, HasSubstr("left      one more pure mechanism of epsilon 0.75\n"));
  EXPECT_EQ(CallJson({"show", file_})["verdict"]["rule"], "pure");

  fs::remove(file_);
  Text({"init", file_, "--epsilon", "8", "--delta", "1e-5", "--filter", "gaussian"});
  Charge(Gaussian(2), "train mlp");
  EXPECT_THAT(Text({"show", file_}), HasSubstr("by the Gaussian filter"));
  EXPECT_EQ(CallJson({"show", file_})["verdict"]["rule"], "gaussian");
}

TEST_F(LedgerCommand, ShowSaysThatARunCountsWhole) {
  Init("1", "1e-5");
  // The least noise that the budget allows: no filter admits it, exact composition does.
  const auto least = CalibrateNoise([](NoiseMultiplier noise) { return Event::Gaussian(noise); },
                                    Epsilon(1), Delta(1e-5));
  ASSERT_TRUE(least.has_value());
  const Event plan = Event::Gaussian(least->noise);
  Charge(plan, "train mlp");
  const std::string text = Text({"show", file_});
  EXPECT_THAT(text, HasSubstr("100.00%, the first run counts whole"));
  EXPECT_THAT(text, HasSubstr("left      nothing for another run"));
  EXPECT_THAT(text, HasSubstr("  counts whole\n"));
  const Json json = CallJson({"show", file_});
  EXPECT_EQ(json["verdict"]["rule"], "whole");
  EXPECT_EQ(json["verdict"]["whole_run"], json["runs"][0]["id"]);
  EXPECT_TRUE(json["runs"][0]["whole"].get<bool>());
  EXPECT_LE(json["epsilon"]["upper"].get<double>(), 1);
}

TEST_F(LedgerCommand, ShowCountsWhatWasReturned) {
  Init();
  const Event step = Event::Poisson(SamplingRate(0.01), Gaussian(1));
  {
    Ledger ledger = Ledger::Open(file_);
    const Begun run = ledger.BeginRun({.what = "train mlp", .plan = Event::Repeat(step, 100)},
                                      {.event = Event::Repeat(step, 60), .failure = 1e-12});
    ledger.Return(run.id, {.event = Event::Repeat(step, 25), .words = "steps 35 to 59"});
  }
  const Json json = CallJson({"show", file_});
  EXPECT_EQ(json["runs"][0]["returned"], 25);
  EXPECT_EQ(json["runs"][0]["releases"], 35);
  EXPECT_EQ(json["runs"][0]["charges"], 1);
  EXPECT_EQ(json["runs"][0]["failure"], 1e-12);
  EXPECT_EQ(json["runs"][0]["plan"], "add-remove: 100*poisson(0.01, gaussian(1))");
  EXPECT_EQ(json["runs"][0]["event"], "add-remove: 35*poisson(0.01, gaussian(1))");
  ASSERT_EQ(json["returns"].size(), 1U);
  EXPECT_EQ(json["returns"][0]["words"], "steps 35 to 59");
  EXPECT_EQ(json["charges"].size(), 1U);
  EXPECT_THAT(Text({"show", file_}), HasSubstr("returned"));
}

TEST_F(LedgerCommand, ShowWarnsFirstOfARunThatIsNotPrivate) {
  Init();
  Charge(Gaussian(20), "one");
  EXPECT_THAT(Text({"show", file_}), Not(HasSubstr("NOT PRIVATE")));
  Charge(Gaussian(20), "two", false);
  const std::string text = Text({"show", file_, "--picture", At("a.svg")});
  EXPECT_THAT(text, StartsWith("NOT PRIVATE: the noise of 1 of 2 runs came from a typed seed.\n"));
  EXPECT_THAT(ReadTestFile(At("a.svg")), HasSubstr("class=\"warning\""));
  const Json json = CallJson({"show", file_});
  EXPECT_FALSE(json["private"].get<bool>());
  EXPECT_TRUE(json["runs"][0]["private"].get<bool>());
  EXPECT_FALSE(json["runs"][1]["private"].get<bool>());
}

TEST_F(LedgerCommand, ShowDrawsEveryChargeAndFailsWithoutOutputWhereItCannot) {
  Init();
  for (int i = 0; i < 3; ++i) Charge(Gaussian(30), "release count");
  Charge(Gaussian(10), "train mlp");
  Text({"show", file_, "--picture", At("a.svg")});
  const std::string svg = ReadTestFile(At("a.svg"));
  EXPECT_THAT(svg, AllOf(HasSubstr("visits.db"), HasSubstr("release count"), HasSubstr("train mlp"),
                         HasSubstr("the whole budget")));
  EXPECT_THAT(svg, HasSubstr("epsilon line"));
  const CommandOutcome outcome = Call({"show", file_, "--picture", At("no/such/a.svg")});
  EXPECT_THAT(outcome.error, HasSubstr("a.svg"));
  EXPECT_EQ(outcome.out, "");
}

TEST_F(LedgerCommand, ShowNeverDrawsOverALedger) {
  Init();
  Charge(Gaussian(30), "release count");
  // Named like pictures, which alone is no reason to overwrite them.
  const std::string ledger = At("ledger.svg");
  const std::string other = At("other.svg");
  const std::string link = At("link.svg");
  std::filesystem::copy(file_, ledger);
  std::filesystem::copy(file_, other);
  std::filesystem::create_symlink(file_, link);
  const std::string content = ReadTestFile(file_);
  for (const std::string& picture : {file_, ledger, other, link}) {
    for (const bool force : {false, true}) {
      std::vector<std::string> line = {"show", ledger, "--picture", picture};
      if (force) line.emplace_back("--force");
      const CommandOutcome outcome = Call(line);
      EXPECT_THAT(outcome.error,
                  HasSubstr(picture == file_ ? "ends in .svg" : "name another file"));
      EXPECT_EQ(outcome.out, "");
    }
    EXPECT_EQ(ReadTestFile(picture), content) << picture;
  }
  EXPECT_EQ(VerifyLedger(file_), 3);
}

TEST_F(LedgerCommand, ShowOfALedgerWithoutLimitSaysSo) {
  Ledger::Create(file_, {.epsilon = Epsilon(kInfinity), .delta = Delta(1e-5)});
  Charge(Gaussian(0.5), "train mlp");
  EXPECT_THAT(Text({"show", file_, "--picture", At("a.svg")}),
              AllOf(HasSubstr("no limit"), HasSubstr("never refused")));
  const Json json = CallJson({"show", file_});
  EXPECT_EQ(json["budget"]["epsilon"], nullptr);
  EXPECT_TRUE(json["budget"].contains("reason"));
  EXPECT_EQ(json["verdict"]["rule"], nullptr);
  EXPECT_EQ(json["left"]["gaussian"]["epsilon"], nullptr);
}

TEST_F(LedgerCommand, ShowDoesNotWrite) {
  Init();
  Charge(Gaussian(20), "one");
  const std::string before = ReadTestFile(file_);
  Remember("another");
  Text({"show", file_});
  Text({"verify", file_});
  EXPECT_EQ(ReadTestFile(file_), before);
  EXPECT_FALSE(fs::exists(At("another")));
}

TEST_F(LedgerCommand, WhatOthersTypedStaysOnItsLine) {
  Init();
  Charge(Gaussian(20), "one\n\x1b[31mtwo");
  // A C1 control, a right-to-left override and a line separator.
  Text({"note", file_,
        "five\xC2\x9B"
        "31m\xE2\x80\xAE"
        "six\xE2\x80\xA8seven"});
  Text({"note", file_, "three\nfour\x07"});
  const std::string text = Text({"show", file_});
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_EQ(text.find('\x07'), std::string::npos);
  EXPECT_THAT(text, HasSubstr("one\\n\\u001b[31mtwo"));
  EXPECT_THAT(text, HasSubstr("five\\u009b31m\\u202esix\\u2028seven\n"));
  EXPECT_THAT(text, HasSubstr("three\\nfour\\u0007\n"));
  // JSON holds what was typed, and shows it in the same way.
  EXPECT_EQ(CallJson({"show", file_})["notes"][1]["words"], "three\nfour\x07");
  EXPECT_EQ(CallJson({"show", file_})["notes"][0]["words"],
            "five\xC2\x9B"
            "31m\xE2\x80\xAE"
            "six\xE2\x80\xA8seven");
  EXPECT_THAT(Text({"show", file_, "--json"}), HasSubstr("five\\u009b31m\\u202esix\\u2028seven"));
}

TEST_F(LedgerCommand, NoteIsKeptInTheChainAndCostsNothing) {
  Init();
  EXPECT_THAT(Text({"note", file_, "budget agreed on"}),
              MatchesRegex("noted as entry 1, head [0-9a-f]{64}\n"));
  const Json json = CallJson({"show", file_});
  ASSERT_EQ(json["notes"].size(), 1U);
  EXPECT_EQ(json["notes"][0]["words"], "budget agreed on");
  EXPECT_EQ(json["verdict"]["used"], 0);
  EXPECT_EQ(CallJson({"note", file_, "again"})["head"]["number"], 2);
  EXPECT_THAT(Call({"note", file_, " \n"}).error, HasSubstr("empty"));
}

TEST_F(LedgerCommand, VerifySaysThatAWholeLedgerIsWhole) {
  Init();
  EXPECT_THAT(Text({"verify", file_}), MatchesRegex("whole: 1 entry, head [0-9a-f]{64}\n"));
  Charge(Gaussian(20), "one");
  EXPECT_THAT(Text({"verify", file_}), StartsWith("whole: 3 entries, head "));
  const Json json = CallJson({"verify", file_});
  EXPECT_TRUE(json["whole"].get<bool>());
  EXPECT_EQ(json["entries"], 3);
  EXPECT_EQ(json["head"]["number"], 2);
}

TEST_F(LedgerCommand, VerifyFindsAnOlderCopyByAHashThatWasKept) {
  Init();
  Charge(Gaussian(20), "one");
  fs::copy_file(file_, At("copy.db"));
  Charge(Gaussian(20), "two");
  const std::string kept = CallJson({"show", file_})["head"]["hash"];
  std::string upper = kept;
  for (char& c : upper) c = static_cast<char>(std::toupper(c));
  EXPECT_EQ(CallJson({"verify", file_, "--expect", upper})["holds"], kept);
  // Later entries do not hide an earlier one.
  Charge(Gaussian(20), "three");
  Text({"verify", file_, "--expect", kept});

  fs::copy_file(At("copy.db"), file_, fs::copy_options::overwrite_existing);
  // This machine remembers.
  EXPECT_THAT(Call({"verify", file_}).error, HasSubstr("older copy"));
  // Another one knows only the hash.
  Remember("another");
  EXPECT_THAT(Text({"verify", file_}), StartsWith("whole: 3 entries"));
  const CommandOutcome outcome = Call({"verify", file_, "--expect", kept});
  EXPECT_THAT(outcome.error, AllOf(HasSubstr("older copy"), HasSubstr(kept)));
  EXPECT_EQ(outcome.out, "");
}

TEST_F(LedgerCommand, VerifyOfADamagedLedgerIsOneSentence) {
  Init();
  for (int i = 0; i < 5; ++i) Charge(Gaussian(20), "release count");
  const std::string bytes = ReadTestFile(file_);
  const std::size_t place = bytes.find("gaussian(20)");
  ASSERT_NE(place, std::string::npos);
  const auto expect_damage = [&](const std::string& damaged) {
    std::ofstream(file_, std::ios::binary | std::ios::trunc) << damaged;
    for (const char* command : {"verify", "show"}) {
      const CommandOutcome outcome = RunProgram({"ledger", command, file_});
      EXPECT_EQ(outcome.exit_code, 2) << command;
      EXPECT_EQ(outcome.out, "");
      EXPECT_THAT(outcome.err, MatchesRegex("sordino: [^\n]+\n"));
    }
  };
  std::string changed = bytes;
  changed[place + 9] = '9';  // 90 instead of 20: less was spent
  expect_damage(changed);
  expect_damage(bytes.substr(0, bytes.size() / 2));
  expect_damage("");
  expect_damage("this is not a ledger, it is a letter to a friend");
}

TEST_F(LedgerCommand, EveryPartHasHelpWithAnExample) {
  for (const char* part : {"init", "show", "verify", "note"}) {
    const CommandOutcome outcome = RunProgram({"ledger", part, "--help"});
    EXPECT_EQ(outcome.exit_code, 0);
    EXPECT_THAT(outcome.out, HasSubstr(std::string("Example:\n  sordino ledger ") + part));
  }
}

}  // namespace
}  // namespace sordino
