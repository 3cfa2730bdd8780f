#include "sordino/cli/release_command.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "sordino/accounting/calibration.h"
#include "sordino/accounting/failures.h"
#include "sordino/base/error.h"
#include "sordino/base/testing/test_folder.h"
#include "sordino/cli/command_test_support.h"
#include "sordino/cli/release_options.h"
#include "sordino/ledger/ledger.h"

namespace sordino {
namespace {

namespace fs = std::filesystem;

class ReleaseCommand : public ::testing::Test {
 protected:
  // A file of n rows with ages 0 ... 80 and three cities in turn.
  std::string WriteVisits(int rows, const std::string& more = "") {
    std::string path = (folder_ / "written.csv").string();
    std::ofstream out(path);
    out << "id,age,city,user\n";
    const char* cities[] = {"rome", "oslo", "\"paris, fr\""};
    for (int i = 0; i < rows; ++i) {
      out << i << ',' << i % 81 << ',' << cities[i % 3] << ",u" << i / 4 << '\n';
    }
    out << more;
    return path;
  }

  static CommandOutcome Call(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "release");
    return CallCommand(&AddReleaseCommand, std::move(arguments));
  }

  static bool Contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  }

  const TestFolder folder_;
};

TEST_F(ReleaseCommand, PrintsExactlyTheDocumentedJson) {
  const std::string file = WriteVisits(3000);
  const CommandOutcome outcome =
      Call({file, "--mean", "age", "--bounds", "0,120", "--epsilon", "0.5", "--json"});
  ASSERT_EQ(outcome.error, "");
  EXPECT_EQ(outcome.err, "");
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json.size(), 4U);
  EXPECT_EQ(json["schema"], 1);
  EXPECT_EQ(json["epsilon"], 0.5);
  EXPECT_EQ(json["delta"], 0.0);
  ASSERT_EQ(json["releases"].size(), 1U);
  const auto& release = json["releases"][0];
  EXPECT_EQ(release.size(), 8U);
  EXPECT_EQ(release["statistic"], "mean");
  EXPECT_EQ(release["column"], "age");
  EXPECT_EQ(release["confidence"], 0.95);
  EXPECT_EQ(release["epsilon"], 0.5);
  EXPECT_EQ(release["delta"], 0.0);
  EXPECT_GT(release["noise_scale"].get<double>(), 0);
  EXPECT_NEAR(release["value"].get<double>(), 40, 2);
  EXPECT_LE(release["interval"][0].get<double>(), release["value"].get<double>());
  EXPECT_GE(release["interval"][1].get<double>(), release["value"].get<double>());
}

TEST_F(ReleaseCommand, WritesARecordOfTheRelease) {
  const std::string file = WriteVisits(300);
  const std::string record = (folder_ / "record.json").string();
  const auto call = [&](std::vector<std::string> more) {
    std::vector<std::string> words = {file, "--count", "--epsilon", "0.5"};
    words.insert(words.end(), more.begin(), more.end());
    return Call(words);
  };
  // Twice: an earlier record is overwritten.
  for (int i = 0; i < 2; ++i) {
    const CommandOutcome outcome =
        call({"--record", record, "--curator", "Clinic of Rome", "--use", "planning"});
    EXPECT_EQ(outcome.error, "");
  }
  const auto json = nlohmann::json::parse(ReadTestFile(record));
  EXPECT_EQ(json["curator"], "Clinic of Rome");
  EXPECT_EQ(json["use"], "planning");
  EXPECT_EQ(json["release"]["kind"], "statistics");
  EXPECT_EQ(json["release"]["what"], "release count");
  EXPECT_EQ(json["release"]["data"], "written.csv");
  EXPECT_EQ(json["privacy"]["epsilon"], 0.5);
  EXPECT_EQ(json["privacy"]["private"], true);
  // Refused before anything is read or charged.
  EXPECT_TRUE(Contains(call({"--curator", "x"}).error, "give --record FILE too"));
  EXPECT_TRUE(
      Contains(call({"--record", record, "--use", "a\nb"}).error, "--use holds a line break"));
  EXPECT_NE(call({"--record", file}).error, "");
  folder_.Write("other.json", "[]");
  EXPECT_TRUE(
      Contains(call({"--record", (folder_ / "other.json").string()}).error, "a deployment record"));
}

TEST_F(ReleaseCommand, DrawsNewNoiseEachTime) {
  const std::string file = WriteVisits(100);
  const std::vector<std::string> call = {file,    "--sum",     "age", "--bounds",
                                         "0,120", "--epsilon", "0.5", "--json"};
  EXPECT_NE(Call(call).out, Call(call).out);
}

TEST_F(ReleaseCommand, MarksASeededRunAsNotPrivate) {
  const std::string file = WriteVisits(100);
  const std::vector<std::string> call = {file,     "--count",         "--epsilon", "1",
                                         "--json", "--insecure-seed", "7"};
  const CommandOutcome one = Call(call);
  EXPECT_EQ(one.out, Call(call).out);
  EXPECT_EQ(nlohmann::json::parse(one.out)["private"], false);
  EXPECT_TRUE(Contains(one.err, "not private"));
  const CommandOutcome text = Call({file, "--count", "--epsilon", "1", "--insecure-seed", "7"});
  EXPECT_TRUE(Contains(text.out, "not private"));
}

TEST_F(ReleaseCommand, TakesSeveralStatisticsWithBoundsForEachColumn) {
  const std::string file = WriteVisits(3000);
  const CommandOutcome outcome = Call({file,          "--count",
                                       "--mean",      "age",
                                       "--sum",       "id",
                                       "--variance",  "age",
                                       "--quantile",  "age:0.5",
                                       "--histogram", "age",
                                       "--bins",      "age=0,18,65,120",
                                       "--bounds",    "age=0,120",
                                       "--bounds",    "id=-10,1e6",
                                       "--epsilon",   "6",
                                       "--spend",     "count=1",
                                       "--json"});
  ASSERT_EQ(outcome.error, "");
  const auto json = nlohmann::json::parse(outcome.out);
  ASSERT_EQ(json["releases"].size(), 6U);
  double spent = 0;
  for (const auto& release : json["releases"]) {
    spent += release["epsilon"].get<double>();
    EXPECT_NEAR(release["epsilon"].get<double>(), 1, 1e-12);
  }
  EXPECT_LE(spent, 6);
  for (const auto& release : json["releases"]) {
    if (release["statistic"] == "count") {
      EXPECT_TRUE(release["column"].is_null());
      EXPECT_NEAR(release["value"].get<double>(), 3000, 30);
    } else if (release["statistic"] == "histogram") {
      EXPECT_EQ(release["bins"], (std::vector<std::string>{"[0,18)", "[18,65)", "[65,120]"}));
      EXPECT_EQ(release["interval"].size(), 3U);
    } else if (release["statistic"] == "quantile") {
      EXPECT_EQ(release["quantile"], 0.5);
      EXPECT_NEAR(release["value"].get<double>(), 40, 5);
    }
  }
}

TEST_F(ReleaseCommand, GroupsUsersAndGaussianNoise) {
  const std::string file = WriteVisits(3000);
  const CommandOutcome outcome =
      Call({file, "--mean", "age", "--bounds", "-5,120", "--epsilon", "1", "--delta", "1e-6",
            "--group-by", "city=rome,oslo,*", "--user", "user", "--rows-per-user", "4", "--json"});
  ASSERT_EQ(outcome.error, "");
  const auto json = nlohmann::json::parse(outcome.out);
  ASSERT_EQ(json["releases"].size(), 3U);
  EXPECT_EQ(json["releases"][0]["group"], "rome");
  EXPECT_EQ(json["releases"][1]["group"], "oslo");
  EXPECT_EQ(json["releases"][2]["group"], "*");
  EXPECT_EQ(json["delta"], 1e-6);
}

TEST_F(ReleaseCommand, PrintsAnAlignedTable) {
  const std::string file = WriteVisits(500);
  const CommandOutcome outcome = Call({file, "--count", "--histogram", "city", "--categories",
                                       "rome,oslo,nowhere,*", "--epsilon", "1"});
  ASSERT_EQ(outcome.error, "");
  std::istringstream lines(outcome.out);
  std::string line;
  std::getline(lines, line);
  const std::size_t width = line.size();
  for (int i = 0; i < 5; ++i) {
    std::getline(lines, line);
    EXPECT_EQ(line.size(), width) << line;
  }
  EXPECT_TRUE(Contains(outcome.out, "histogram city nowhere"));
  EXPECT_TRUE(Contains(outcome.out, "total: epsilon 1, delta 0, adding or removing one row"));
}

TEST_F(ReleaseCommand, ChecksItsFlagsBeforeTheFileIsOpened) {
  const std::string missing = "/no/such/file.csv";
  const auto error = [&](std::vector<std::string> rest) {
    rest.insert(rest.begin(), missing);
    return Call(rest).error;
  };
  EXPECT_TRUE(Contains(error({"--mean", "age", "--epsilon", "1"}), "bounds"));
  EXPECT_TRUE(Contains(error({"--mean", "age", "--bounds", "0,1"}), "epsilon"));
  EXPECT_TRUE(Contains(error({"--mean", "age", "--bounds", "1,0", "--epsilon", "1"}), "range"));
  EXPECT_TRUE(Contains(error({"--mean", "age", "--bounds", "0,x", "--epsilon", "1"}), "'x'"));
  EXPECT_TRUE(Contains(error({"--mean", "age", "--bounds", "0,1", "--epsilon", "0"}), "epsilon"));
  EXPECT_TRUE(Contains(error({"--epsilon", "1"}), "statistic"));
  EXPECT_TRUE(Contains(error({"--count", "--epsilon", "1", "--noise", "gaussian"}), "--delta"));
  EXPECT_TRUE(Contains(error({"--count", "--epsilon", "1", "--noise", "normal"}), "normal"));
  EXPECT_TRUE(Contains(
      error({"--count", "--epsilon", "1", "--noise", "laplace", "--delta", "1e-6"}), "Laplace"));
  EXPECT_TRUE(Contains(error({"--count", "--epsilon", "1", "--delta", "1e-320"}), "1e-300"));
  EXPECT_TRUE(Contains(error({"--count", "--epsilon", "1", "--adjacency", "swap"}), "swap"));
  EXPECT_TRUE(Contains(error({"--count", "--epsilon", "1", "--user", "u"}), "--rows-per-user"));
  EXPECT_TRUE(Contains(error({"--count", "--epsilon", "1", "--rows-per-user", "3"}), "--user"));
  EXPECT_TRUE(Contains(error({"--count", "--epsilon", "1", "--group-by", "city"}), "declare"));
  EXPECT_TRUE(Contains(error({"--count", "--epsilon", "1", "--on-error", "ignore"}), "ignore"));
  EXPECT_TRUE(Contains(error({"--quantile", "age", "--epsilon", "1"}), "age:0.5"));
  EXPECT_TRUE(Contains(error({"--count", "--epsilon", "1", "--spend", "mean:age=1"}), "names no"));
  EXPECT_TRUE(Contains(error({"--mean", "a", "--mean", "b", "--bounds", "0,1", "--epsilon", "1"}),
                       "which column"));
  EXPECT_TRUE(Contains(error({"--histogram", "age", "--epsilon", "1"}), "bins"));
  EXPECT_TRUE(Contains(error({"--histogram", "age", "--bins", "4", "--epsilon", "1"}), "--bounds"));
  // And with everything right, the file is what is wrong.
  EXPECT_TRUE(Contains(error({"--count", "--epsilon", "1"}), missing));
}

TEST_F(ReleaseCommand, ChecksTheColumnsBeforeAnyRow) {
  const std::string file = WriteVisits(3, "this,row,is\nmalformed\n");
  const CommandOutcome outcome =
      Call({file, "--mean", "agee", "--bounds", "0,120", "--epsilon", "1"});
  EXPECT_TRUE(Contains(outcome.error, "'agee'"));
  EXPECT_FALSE(Contains(outcome.error, "'age'")) << outcome.error;
  EXPECT_EQ(outcome.out, "");
}

TEST_F(ReleaseCommand, RefusesOrSkipsMalformedRows) {
  const std::string file = WriteVisits(3, "3,nan,rome,u1\n");
  std::vector<std::string> call = {file, "--mean", "age", "--bounds", "0,120", "--epsilon", "1"};
  const CommandOutcome refused = Call(call);
  EXPECT_TRUE(Contains(refused.error, "its field 'age' is not finite")) << refused.error;
  EXPECT_FALSE(Contains(refused.error, "5")) << refused.error;
  EXPECT_EQ(refused.out + refused.err, "");
  std::vector<std::string> asked = call;
  asked.emplace_back("--show-private");
  const CommandOutcome told = Call(asked);
  EXPECT_EQ(told.error, refused.error);
  EXPECT_TRUE(Contains(told.err, "it is line 5; this is about the private data")) << told.err;
  call.insert(call.end(), {"--on-error", "skip"});
  const CommandOutcome quiet = Call(call);
  EXPECT_EQ(quiet.error, "");
  EXPECT_EQ(quiet.err, "");
  call.emplace_back("--show-skipped");
  const CommandOutcome shown = Call(call);
  EXPECT_TRUE(Contains(shown.err, "1 malformed rows were skipped, the first on line 5"));
  EXPECT_FALSE(Contains(shown.out, "skipped"));
}

TEST_F(ReleaseCommand, DoesNotPrintTheNumberOfRows) {
  const std::string file = WriteVisits(5417);
  const CommandOutcome text = Call({file, "--mean", "age", "--bounds", "0,120", "--epsilon", "1"});
  const CommandOutcome json =
      Call({file, "--mean", "age", "--bounds", "0,120", "--epsilon", "1", "--json"});
  const std::regex count(R"((^|[^0-9.])5417([^0-9]|$))");  // a number, not digits of another
  for (const std::string& shown : {text.out, text.err, json.out, json.err}) {
    EXPECT_FALSE(std::regex_search(shown, count)) << shown;
  }
}

class ReleaseWithALedger : public ReleaseCommand {
 protected:
  void SetUp() override {
    setenv("SORDINO_STATE", (folder_ / "state").c_str(), 1);
    ledger_ = (folder_ / "visits.db").string();
    file_ = (folder_ / "visits.csv").string();
    fs::rename(WriteVisits(1000), file_);
  }
  void TearDown() override { unsetenv("SORDINO_STATE"); }

  void Create(double epsilon, double delta = 1e-5, ProtectedUnit unit = ProtectedUnit::kRecord,
              Adjacency adjacency = Adjacency::kAddRemove) const {
    Ledger::Create(
        ledger_,
        {.epsilon = Epsilon(epsilon), .delta = Delta(delta), .adjacency = adjacency, .unit = unit});
  }
  std::vector<Entry> Entries() const { return Ledger::Open(ledger_).entries(); }
  std::vector<std::string> Mean(const std::string& epsilon) const {
    return {file_, "--mean", "age", "--bounds", "0,120", "--epsilon", epsilon};
  }
  CommandOutcome Charged(std::vector<std::string> words) const {
    words.insert(words.end(), {"--ledger", ledger_});
    return Call(std::move(words));
  }

  std::string ledger_;
  std::string file_;
};

TEST_F(ReleaseWithALedger, IsOneRunAndOneChargeOfWhatItCosts) {
  Create(8);
  std::vector<std::string> words = Mean("0.5");
  words.emplace_back("--json");
  const CommandOutcome outcome = Charged(words);
  ASSERT_EQ(outcome.error, "");
  const std::vector<Entry> entries = Entries();
  ASSERT_EQ(entries.size(), 3U);
  EXPECT_EQ(entries[1].kind, EntryKind::kRun);
  EXPECT_EQ(entries[2].kind, EntryKind::kCharge);
  EXPECT_EQ(entries[2].event, "add-remove: pure(0.5)");
  EXPECT_EQ(entries[2].failure, 0);
  const RunDetail run = ParseRunJson(entries[1].detail);
  EXPECT_EQ(run.what, "release mean of age from " + file_);
  EXPECT_TRUE(run.is_private);

  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json["ledger"].size(), 4U);
  EXPECT_EQ(json["ledger"]["file"], ledger_);
  EXPECT_EQ(json["ledger"]["run"], entries[2].run);
  EXPECT_EQ(json["ledger"]["head"], entries[2].hash);
  EXPECT_LE(json["ledger"]["epsilon"]["lower"].get<double>(), 0.5);
  EXPECT_NEAR(json["ledger"]["epsilon"]["upper"].get<double>(), 0.5, 1e-4);

  const CommandOutcome text = Charged(Mean("0.5"));
  EXPECT_TRUE(Contains(text.out, "charged to " + ledger_ + ": 12.50% of its budget is used, head " +
                                     Entries().back().hash + "\n"));
}

TEST_F(ReleaseWithALedger, ThatItCannotAffordIsRefusedBeforeTheDataIsRead) {
  Create(1);
  ASSERT_EQ(Charged(Mean("0.6")).error, "");
  const std::string before = ReadTestFile(ledger_);
  fs::remove(file_);  // nobody looks at it
  const CommandOutcome outcome = Charged(Mean("0.6"));
  EXPECT_TRUE(Contains(outcome.error, "nothing was released")) << outcome.error;
  EXPECT_TRUE(Contains(outcome.error, "costs epsilon 0.59998"));
  EXPECT_TRUE(Contains(outcome.error, "left is"));
  EXPECT_EQ(outcome.error.find('\n'), std::string::npos);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(ReadTestFile(ledger_), before);
  EXPECT_TRUE(Contains(Charged(Mean("0.4")).error, "visits.csv"));  // this one is affordable
}

TEST_F(ReleaseWithALedger, ThatFailsInTheDataIsNotCharged) {
  Create(1);
  std::ofstream(file_, std::ios::app) << "this,row,is\nmalformed\n";
  EXPECT_TRUE(Contains(Charged(Mean("0.5")).error, "malformed"));
  EXPECT_EQ(Entries().size(), 1U);
}

TEST_F(ReleaseWithALedger, ChargesGaussianNoiseWithTheChanceThatItFails) {
  Create(8);
  std::vector<std::string> words = Mean("1");
  words.insert(words.end(), {"--delta", "1e-6"});
  ASSERT_EQ(Charged(words).error, "");
  const Entry charge = Entries().back();
  EXPECT_TRUE(Contains(charge.event, "add-remove: gaussian("));
  EXPECT_EQ(charge.failure, 2 * 0x1p-70);  // a mean noises two totals
}

// What the grid of the noise adds is in the ledger's total, beside the events.
TEST_F(ReleaseWithALedger, CountsWhatTheGridsOfAllReleasesAdd) {
  Create(8);
  std::vector<std::string> words = Mean("1");
  words.insert(words.end(), {"--delta", "1e-6"});
  ASSERT_EQ(Charged(words).error, "");
  ASSERT_EQ(Charged(words).error, "");
  Ledger ledger = Ledger::Open(ledger_);
  const Event total = ledger.Total();
  EXPECT_EQ(total.TotalCount(), 2U);
  EXPECT_EQ(ledger.filter().failure(), 4 * 0x1p-70);
  const double upper = ledger.ComposedEpsilon().upper;
  EXPECT_EQ(upper, SpentEpsilon(total, ledger.budget().delta, 4 * 0x1p-70).upper);
  EXPECT_GT(upper, SpentEpsilon(total, ledger.budget().delta).upper);
}

// Another run may spend the rest while the data is read.
TEST_F(ReleaseWithALedger, IsRefusedWhereTheBudgetIsGoneByTheTimeOfTheNoise) {
  Create(1, 0);
  const std::string pipe = (folder_ / "pipe").string();
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  CommandOutcome outcome;
  std::thread release([&] {
    outcome = RunProgram({"release", pipe, "--count", "--epsilon", "0.6", "--ledger", ledger_});
  });
  {
    std::ofstream data(
        pipe);  // opens when the release does, which has looked at the ledger by then
    data << "age\n1\n" << std::flush;
    EXPECT_EQ(Charged(Mean("0.5")).error, "");
    data << "2\n";
  }
  release.join();
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_TRUE(Contains(outcome.err, "nothing was released")) << outcome.err;
  EXPECT_EQ(Entries().size(), 3U);
}

TEST_F(ReleaseWithALedger, SpendsDownToTheEndAndNoFurther) {
  Create(1, 0);
  int made = 0;
  while (made < 20 && Charged(Mean("0.1")).error.empty()) ++made;
  EXPECT_EQ(made, 10);
  EXPECT_NEAR(Ledger::Open(ledger_).filter().UsedShare(), 1, 1e-9);
}

// 2^-70 times e^30 is more than what was kept of delta for failures.
TEST_F(ReleaseWithALedger, ThatIsSmallLeavesALargeBudgetOpen) {
  Create(30, 1e-6);
  std::vector<std::string> words = Mean("0.1");
  words.insert(words.end(), {"--delta", "1e-13"});
  ASSERT_EQ(Charged(words).error, "");
  Ledger ledger = Ledger::Open(ledger_);
  EXPECT_LT(ledger.filter().UsedShare(), 1e-3);
  EXPECT_GT(ledger.filter().LeftEpsilon(), 28);
}

TEST_F(ReleaseWithALedger, SaysInADryRunWhatWouldBeLeft) {
  Create(2);
  const std::string before = ReadTestFile(ledger_);
  fs::remove(file_);  // nobody looks at it
  std::vector<std::string> words = Mean("0.5");
  words.insert(words.end(), {"--delta", "1e-6", "--dry-run"});
  const CommandOutcome text = Charged(words);
  EXPECT_EQ(text.error, "");
  EXPECT_TRUE(
      Contains(text.out, "of its budget would be used, and left would be one more Gaussian"))
      << text.out;
  EXPECT_TRUE(Contains(text.out, "nothing was read, charged or released"));
  words.emplace_back("--json");
  const auto json = nlohmann::json::parse(Charged(words).out);
  EXPECT_EQ(json["dry_run"], true);
  EXPECT_GT(json["ledger"]["used"], 0.05);
  EXPECT_LT(json["ledger"]["used"], 0.15);
  EXPECT_GT(json["ledger"]["left"]["gaussian"]["epsilon"], 1.5);
  EXPECT_EQ(ReadTestFile(ledger_), before);
  // What the ledger refuses, it refuses here too.
  words = Mean("3");
  words.emplace_back("--dry-run");
  EXPECT_TRUE(Contains(Charged(words).error, "nothing was released"));
}

// A release that asks for just what there is counts whole.
TEST_F(ReleaseWithALedger, MayTakeTheWholeBudgetAtOnce) {
  Create(1);
  std::vector<std::string> words = Mean("1");
  words.insert(words.end(), {"--delta", "1e-5"});
  EXPECT_EQ(Charged(words).error, "");
  EXPECT_TRUE(Contains(Charged(Mean("0.001")).error, "nothing for another run"));
}

TEST_F(ReleaseWithALedger, OfAnotherUnitOrAdjacencyIsRefused) {
  Create(8);
  std::vector<std::string> users = Mean("0.5");
  users.insert(users.end(), {"--user", "user", "--rows-per-user", "4"});
  EXPECT_TRUE(Contains(Charged(users).error, "user"));
  std::vector<std::string> replaced = Mean("0.5");
  replaced.insert(replaced.end(), {"--adjacency", "replace-one"});
  EXPECT_TRUE(Contains(Charged(replaced).error, "replace-one"));
  EXPECT_EQ(Entries().size(), 1U);

  fs::remove(ledger_);
  Create(8, 1e-5, ProtectedUnit::kUser);
  EXPECT_EQ(Charged(users).error, "");
  EXPECT_TRUE(Contains(Charged(Mean("0.5")).error, "user"));
  EXPECT_EQ(Entries().size(), 3U);
}

TEST_F(ReleaseWithALedger, WithATypedSeedIsRecordedAsNotPrivate) {
  Create(8);
  std::vector<std::string> words = Mean("0.5");
  words.insert(words.end(), {"--insecure-seed", "7"});
  ASSERT_EQ(Charged(words).error, "");
  EXPECT_FALSE(ParseRunJson(Entries()[1].detail).is_private);
}

TEST_F(ReleaseWithALedger, ThatTheDataNamesNeedsNoFlagAndAllowsNoOther) {
  Create(8);
  std::ofstream(folder_ / "sordino.toml") << "ledger = \"visits.db\"\n";
  const CommandOutcome outcome = Call(Mean("0.5"));
  ASSERT_EQ(outcome.error, "");
  EXPECT_TRUE(Contains(outcome.out, "charged to "));
  EXPECT_EQ(Entries().size(), 3U);
  EXPECT_EQ(Charged(Mean("0.5")).error, "");
  EXPECT_EQ(Entries().size(), 5U);

  std::vector<std::string> other = Mean("0.5");
  other.insert(other.end(), {"--ledger", (folder_ / "other.db").string()});
  EXPECT_TRUE(Contains(Call(other).error, "is not the ledger of"));
  fs::remove(ledger_);
  const CommandOutcome lost = Call(Mean("0.5"));
  EXPECT_TRUE(Contains(lost.error, "visits.db")) << lost.error;
  EXPECT_EQ(lost.out, "");
}

TEST_F(ReleaseWithALedger, ThatIsNotThereIsAMistake) {
  const CommandOutcome outcome = Charged(Mean("0.5"));
  EXPECT_TRUE(Contains(outcome.error, "sordino ledger init")) << outcome.error;
  EXPECT_EQ(outcome.out, "");
  EXPECT_FALSE(fs::exists(ledger_));
}

// One row and noise of scale 1000: about half of the counts are below 0.
TEST_F(ReleaseCommand, AValueLiesInItsOwnInterval) {
  const std::string file = WriteVisits(1);
  int below_zero = 0;
  for (int i = 0; i < 40; ++i) {
    const CommandOutcome outcome = Call({file, "--count", "--histogram", "age", "--bounds", "0,80",
                                         "--bins", "4", "--epsilon", "0.002", "--json"});
    ASSERT_EQ(outcome.error, "");
    const auto json = nlohmann::json::parse(outcome.out);
    for (const auto& release : json["releases"]) {
      const bool is_list = release["value"].is_array();
      for (std::size_t j = 0; j < (is_list ? release["value"].size() : 1); ++j) {
        const double value = is_list ? release["value"][j] : release["value"];
        const auto& interval = is_list ? release["interval"][j] : release["interval"];
        EXPECT_LE(interval[0].get<double>(), value);
        EXPECT_GE(interval[1].get<double>(), value);
        below_zero += value < 0 ? 1 : 0;
      }
    }
  }
  EXPECT_GT(below_zero, 20);  // of 200; fewer have a probability below 1e-30
}

TEST_F(ReleaseCommand, SaysThatAHugeEpsilonProtectsNobody) {
  const std::string file = WriteVisits(100);
  const CommandOutcome weak = Call({file, "--count", "--epsilon", "51", "--json"});
  EXPECT_TRUE(Contains(weak.err, "sordino: WEAK: an epsilon above 50")) << weak.err;
  EXPECT_TRUE(Contains(nlohmann::json::parse(weak.out)["warning"], "WEAK"));
  const CommandOutcome fine = Call({file, "--count", "--epsilon", "50", "--json"});
  EXPECT_EQ(fine.err, "");
  EXPECT_FALSE(nlohmann::json::parse(fine.out).contains("warning"));
}

TEST(DescribeRelease, NamesEveryStatisticAndTheFile) {
  TableRequest request;
  request.statistics = {{TableStatistic::kCount, "", 0.5, {}},
                        {TableStatistic::kQuantile, "age", 0.25, {}}};
  request.group_by = {{"city", {"rome"}}};
  EXPECT_EQ(DescribeRelease(request, "visits.csv"),
            "release count, quantile 0.25 of age by city from visits.csv");
  EXPECT_EQ(DescribeRelease(request, "-"), "release count, quantile 0.25 of age by city");
}

TEST(MissingReleaseSettings, AreToldAtOnce) {
  ExpectMistake({"release",
                 "3 settings are missing: the table (visits.csv: or - for the input), what "
                 "to release (--count: "});
  ExpectMistake({"release x.csv", "2 settings are missing: what to release (--count: "});
  ExpectMistake({"release x.csv --mean age",
                 "the bounds of 'age' (--bounds: or --schema), and the budget (--epsilon). With "
                 "values of your own this would work: sordino release x.csv --mean age --bounds "
                 "age=0,100 --epsilon 0.5"});
}

}  // namespace
}  // namespace sordino
