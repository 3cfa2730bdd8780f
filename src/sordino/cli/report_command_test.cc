#include "sordino/cli/report_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "sordino/base/testing/test_folder.h"
#include "sordino/cli/command_test_support.h"
#include "sordino/report/testing/run_folder_files.h"

namespace sordino {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;
namespace fs = std::filesystem;

class ReportCommand : public ::testing::Test {
 protected:
  CommandOutcome Report(std::vector<std::string> words) const {
    words.insert(words.begin(), "report");
    return RunProgram(words);
  }
  void ExpectRefusal(const std::vector<std::string>& words, const std::string& part) const {
    const CommandOutcome outcome = Report(words);
    EXPECT_EQ(outcome.exit_code, 2) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, HasSubstr(part));
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  }
  std::string Path(const std::string& name) const { return (folder_ / name).string(); }
  // A ledger of one charge.
  std::string MakeLedger() const {
    std::string file = Path("visits.db");
    EXPECT_EQ(RunProgram({"ledger", "init", file, "--epsilon", "8", "--delta", "1e-5"}).exit_code,
              0);
    EXPECT_EQ(RunProgram({"ledger", "charge", file, "--event", "add-remove: gaussian(4)", "--note",
                          "a <b>mean</b>"})
                  .exit_code,
              0);
    return file;
  }

  TestFolder folder_;
};

TEST_F(ReportCommand, WritesAPageOfRunsAndLedgers) {
  const std::string first = WriteRunFolder(folder_, "first").string();
  const std::string second = WriteRunFolder(folder_, "second").string();
  const std::string ledger = MakeLedger();
  const CommandOutcome outcome =
      Report({first, second, ledger, "--out", Path("page.html"), "--json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json["schema"], 1);
  ASSERT_EQ(json["runs"].size(), 2U);
  EXPECT_EQ(json["runs"][1]["name"], "second");
  // The guarantee is that of the event.
  const CommandOutcome account =
      RunProgram({"account", "--event-file", first + "/event.txt", "--delta", "1e-5", "--json"});
  const double epsilon = Json::parse(account.out)["epsilon"]["upper"].get<double>();
  EXPECT_NEAR(json["runs"][0]["guarantee"]["epsilon"].get<double>(), epsilon, 1e-4 * epsilon);
  // The ledger is that of `ledger show`.
  const Json shown = Json::parse(RunProgram({"ledger", "show", ledger, "--json"}).out);
  EXPECT_EQ(json["ledgers"][0]["used"], shown["verdict"]["used"]);
  EXPECT_EQ(json["ledgers"][0]["composed"]["upper"], shown["epsilon"]["upper"]);
  EXPECT_EQ(json["ledgers"][0]["runs"][0]["what"], "a <b>mean</b>");
  const std::string page = ReadTestFile(Path("page.html"));
  EXPECT_TRUE(page.starts_with("<!DOCTYPE html>"));
  EXPECT_LT(page.size(), 400'000U);
}

TEST_F(ReportCommand, ShowsFilesOfAttacksAndRecords) {
  folder_.Write("attack.json",
                R"({"members": 10, "others": 9, "attacks": {"loss": {"auc": {"value": 0.6}}}})");
  folder_.Write("record.json", R"({"release": {"kind": "fit"}, "privacy": {"private": true}})");
  const CommandOutcome outcome = Report({Path("attack.json"), Path("record.json"), MakeLedger(),
                                         "--out", Path("page.html"), "--json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json["memberships"][0]["members"], 10);
  EXPECT_EQ(json["records"][0]["fields"][0], Json::array({"kind of release", "fit"}));
  EXPECT_EQ(json["ledgers"].size(), 1U);
  folder_.Write("other.json", "{\"a\": 1}");
  ExpectRefusal({Path("other.json"), "--out", Path("page2.html")}, "holds neither an attack");
  ExpectRefusal({Path("record.json"), "--csv", Path("record.csv")}, "none was given");
  fs::create_symlink(Path("attack.json"), Path("link.html"));
  ExpectRefusal({Path("attack.json"), "--out", Path("link.html")}, "which this command also reads");
}

TEST_F(ReportCommand, OverwritesAPageAndNothingElse) {
  const std::string run = WriteRunFolder(folder_, "first").string();
  const std::string ledger = MakeLedger();
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(Report({run, "--out", run + "/page.html"}).exit_code, 0);
  }
  fs::create_symlink(run + "/statement.txt", Path("link.html"));
  ExpectRefusal({run, "--out", Path("link.html")}, "which this command also reads");
  fs::create_symlink(ledger, Path("ledger.html"));
  ExpectRefusal({run, "--out", Path("ledger.html")}, "ledger or another SQLite database");
  folder_.Write("notes.html", "my notes");
  ExpectRefusal({run, "--out", Path("notes.html")}, "is not an HTML page");
  EXPECT_EQ(Report({run, "--out", Path("notes.html"), "--force"}).exit_code, 0);
  ExpectRefusal({run, "--out", Path("page.txt")}, "ends in .html");
  ExpectRefusal({run, "--out", Path("none/page.html")}, "cannot be written");
}

TEST_F(ReportCommand, RefusesWhatItCannotShow) {
  const std::string run = WriteRunFolder(folder_, "first").string();
  const std::string out = Path("page.html");
  ExpectRefusal({run}, "nothing is asked for");
  ExpectRefusal({Path("gone"), "--out", out}, "does not exist; give the folder of a run");
  fs::create_directory(folder_ / "empty");
  ExpectRefusal({Path("empty"), "--out", out}, "holds neither a run");
  ExpectRefusal({run, run + "/../first", "--out", out}, "was given twice");
  folder_.Write("text.txt", "not a ledger");
  ExpectRefusal({Path("text.txt"), "--out", out}, "text.txt");
  std::vector<std::string> many(70, run);
  many.insert(many.end(), {"--out", out});
  ExpectRefusal(many, "at most 64");
  folder_.Write("first/config.toml", "[privacy]\ndelta = 7\n");
  ExpectRefusal({run, "--out", out}, "delta");
  EXPECT_FALSE(fs::exists(out));
}

TEST_F(ReportCommand, WritesTablesAndEventFiles) {
  const std::string run = WriteRunFolder(folder_, "first").string();
  const std::string other = WriteRunFolder(folder_, "second").string();
  for (int i = 0; i < 2; ++i) {  // its own files are overwritten
    const CommandOutcome outcome =
        Report({run, other, "--csv", Path("metrics.csv"), "--tensorboard", Path("board")});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_EQ(outcome.out, "");
  }
  EXPECT_THAT(ReadTestFile(Path("metrics.csv")), HasSubstr("\nsecond,200,2.5,0.76,0.8,,,4\n"));
  for (const char* name : {"board/1-first", "board/2-second"}) {
    EXPECT_THAT(ReadTestFile(Path(name) + "/events.out.tfevents.0.sordino"),
                HasSubstr("test_accuracy"));
  }
  folder_.Write("file", "");
  ExpectRefusal({run, "--tensorboard", Path("file")}, "in which no folder can be made");
  folder_.Write("mine.csv", "a,b\n");
  ExpectRefusal({run, "--csv", Path("mine.csv")}, "is not a table of metrics");
  ExpectRefusal({MakeLedger(), "--csv", Path("ledger.csv")}, "and none was given");
  ExpectRefusal({run, "--port", "80", "--out", Path("page.html")}, "give --watch too");
  ExpectRefusal({run, "--watch", "--port", "99999"}, "at most 65535");
  EXPECT_THAT(Report({run, "--watch", "--json"}).err, HasSubstr("leave out one of the two"));
}

TEST_F(ReportCommand, WritesTheCardOfOneRun) {
  const std::string run = WriteRunFolder(folder_, "first").string();
  for (int i = 0; i < 2; ++i) {  // its own file is overwritten
    const CommandOutcome outcome = Report({run, MakeLedger(), "--card", Path("card.json")});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    fs::remove(Path("visits.db"));
  }
  const Json card = Json::parse(ReadTestFile(Path("card.json")));
  EXPECT_GT(card["data_protection"]["at_most"]["epsilon"].get<double>(), 0);
  EXPECT_EQ(card["data_protection"]["ledgers"][0]["name"], "visits.db");
  ExpectRefusal({run, "--card", run + "/record.json"}, "record.json");
  ExpectRefusal({run, WriteRunFolder(folder_, "second").string(), "--card", Path("two.json")},
                "2 runs were given, and a card is that of one");
  EXPECT_FALSE(fs::exists(Path("two.json")));
}

TEST_F(ReportCommand, SaysWhichFileItMayNotRead) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may read everything";
  const std::string run = WriteRunFolder(folder_, "first").string();
  fs::permissions(run + "/metrics.jsonl", fs::perms::none);
  ExpectRefusal({run, "--out", Path("page.html")},
                "metrics.jsonl' cannot be shown: Permission denied");
}

}  // namespace
}  // namespace sordino
