#include "sordino/cli/experiment_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "sordino/base/testing/test_folder.h"
#include "sordino/cli/command_test_support.h"

namespace sordino {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

constexpr const char* kAccount = R"(
title = "Epsilon against noise"
[[part]]
command = "account"
[part.settings]
rate = 0.01
steps = 100
delta = 1e-5
[[part.axis]]
name = "noise"
values = [1, 2]
[[part.measure]]
name = "epsilon"
path = "epsilon.upper"
[[picture]]
name = "epsilon"
x = "noise"
y = "epsilon"
)";

std::string With(const std::string& text, const std::string& old, const std::string& now) {
  std::string changed = text;
  return changed.replace(changed.find(old), old.size(), now);
}

TEST(ExperimentCommand, RunsAFileAndWritesItsResults) {
  const TestFolder folder;
  const std::string file = folder.Write("mine.toml", kAccount).string();
  const std::string out = (folder / "out").string();
  const CommandOutcome outcome = RunProgram({"experiment", file, "--out", out, "--json"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json report = Json::parse(outcome.out);
  EXPECT_EQ(report["cells"], 2);
  EXPECT_EQ(report["failed"], 0);
  const Json results = Json::parse(ReadTestFile(out + "/results.json"));
  const Json asked = Json::parse(
      RunProgram(Words("account --rate 0.01 --steps 100 --delta 1e-5 --noise 2 --json")).out);
  EXPECT_EQ(results["cells"][1]["values"]["epsilon"], asked["epsilon"]["upper"]);
  EXPECT_THAT(ReadTestFile(out + "/epsilon.svg"), HasSubstr("<svg"));
  EXPECT_THAT(ReadTestFile(out + "/page.html"), HasSubstr("Epsilon against noise"));
  // Again, as a table, from what is kept.
  const CommandOutcome again = RunProgram({"experiment", file, "--out", out});
  EXPECT_EQ(again.exit_code, 0);
  EXPECT_THAT(again.out, HasSubstr("# Epsilon against noise"));
  EXPECT_THAT(again.out, HasSubstr("| 2 | "));
}

TEST(ExperimentCommand, MakesAPageBesideTheDocument) {
  const TestFolder folder;
  const std::string page = (folder / "page.html").string();
  const std::vector<std::string> words = {
      "experiment", "composition", "--quick", "--out", (folder / "out").string(),
      "--report",   page,          "--json"};
  const CommandOutcome outcome = RunProgram(words);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::string html = ReadTestFile(page);
  for (const char* part :
       {"The document says", "We measured", "Why they differ", "<svg", "The quick form"}) {
    EXPECT_THAT(html, HasSubstr(part));
  }
  // Another page is overwritten, another file is not.
  EXPECT_EQ(RunProgram(words).exit_code, 0);
  folder.Write("page.html", "<p>mine</p>");
  EXPECT_EQ(RunProgram(words).exit_code, 2);
}

// In the order of the documents, each with the cells of its quick form.
TEST(ExperimentCommand, AllAreThoseOfTheList) {
  const Json list = Json::parse(RunProgram({"experiment", "list", "--json"}).out)["experiments"];
  const CommandOutcome outcome = RunProgram({"experiment", "all", "--quick", "--dry-run"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("sordino plan descent"));
  EXPECT_EQ(list.front()["name"], "clipping-convergence");
}

TEST(ExperimentCommand, GoesOnWhereACellFails) {
  const TestFolder folder;
  const std::string file =
      folder.Write("mine.toml", With(kAccount, "[1, 2]", "[1, -2, 3]")).string();
  const CommandOutcome outcome =
      RunProgram({"experiment", file, "--out", (folder / "out").string(), "--json"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(Json::parse(outcome.out)["failed"], 1);
  EXPECT_THAT(outcome.err, HasSubstr("a cell failed with exit code 2: "));
  EXPECT_THAT(ReadTestFile((folder / "out/results.csv").string()), HasSubstr("account,3,"));
}

TEST(ExperimentCommand, CellsShareOneLedgerAndItsBudget) {
  const TestFolder folder;
  const std::string data = folder.Write("visits.csv", "age\n30\n40\n50\n").string();
  const std::string ledger = (folder / "visits.db").string();
  const std::string out = (folder / "out").string();
  ASSERT_EQ(RunProgram({"ledger", "init", ledger, "--epsilon", "1", "--delta", "1e-5"}).exit_code,
            0);
  const std::string text =
      "repeats = 2\n[[part]]\ncommand = \"release\"\n[part.settings]\nfile = \"" + data +
      "\"\ncount = true\nledger = \"" + ledger +
      "\"\n[[part.axis]]\nname = \"epsilon\"\nvalues = [0.1, 0.2, 5]\n";
  const std::string file = folder.Write("mine.toml", text).string();
  for (int i = 0; i < 2; ++i) {  // finished cells are not charged again
    const CommandOutcome outcome =
        RunProgram({"experiment", file, "--out", out, "--jobs", "2", "--json"});
    EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
    const Json report = Json::parse(outcome.out);
    EXPECT_EQ(report["cells"], 6);
    EXPECT_EQ(report["failed"], 2);  // 5 is more than the ledger has
    EXPECT_THAT(report["spending"].get<std::string>(), HasSubstr("ledger show"));
    const Json shown = Json::parse(RunProgram({"ledger", "show", ledger, "--json"}).out);
    EXPECT_EQ(shown["runs"].size(), 4U);
    EXPECT_NEAR(shown["epsilon"]["upper"].get<double>(), 0.6, 0.01);
  }
}

TEST(ExperimentCommand, ListsAndShowsWhatComesWithIt) {
  const Json list = Json::parse(RunProgram({"experiment", "list", "--json"}).out)["experiments"];
  ASSERT_FALSE(list.empty());
  for (const Json& entry : list) {
    EXPECT_LE(entry["quick_minutes"], 2);
    EXPECT_THAT(RunProgram({"experiment", "list"}).out,
                HasSubstr(entry["title"].get<std::string>()));
    const CommandOutcome shown =
        RunProgram({"experiment", "show", entry["name"].get<std::string>()});
    EXPECT_THAT(shown.out, HasSubstr("title = "));
  }
}

TEST(ExperimentCommand, PrintsTheCommandsOfADryRun) {
  const TestFolder folder;
  const std::string file = folder.Write("mine.toml", kAccount).string();
  const CommandOutcome outcome = RunProgram({"experiment", file, "--dry-run"});
  EXPECT_THAT(
      outcome.out,
      HasSubstr("sordino account --delta 1e-05 --rate 0.01 --steps 100 --noise 2 --json\n"));
}

TEST(ExperimentCommand, TellsMistakesInOneSentence) {
  const TestFolder folder;
  const auto refused = [&](const std::string& text, const std::string& part,
                           const std::string& out = "out") {
    const std::string file = folder.Write("mine.toml", text).string();
    const CommandOutcome outcome =
        RunProgram({"experiment", file, "--out", (folder / out).string()});
    EXPECT_EQ(outcome.exit_code, 2) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, ::testing::MatchesRegex("sordino: [^\n]+\n"));
    EXPECT_THAT(outcome.err, HasSubstr(part));
  };
  refused(With(kAccount, "rate =", "ratte ="), "'ratte' is not a setting of 'sordino account'");
  refused(With(kAccount, "[1, 2]", "[]"), "the axis 'noise' has no values");
  refused("repeats = 1000\n" + With(kAccount, "[1, 2]", "[1,2,3,4,5,6,7,8,9,10,11]"),
          "11000 cells");
  refused(With(kAccount, "\"account\"", "\"acount\""), "is not a command");
  folder.Write("full/letter", "dear");
  refused(kAccount, "not of an experiment", "full");
  folder.Write("forged/experiment.json", "<script>");
  refused(kAccount, "not what an experiment writes", "forged");
  EXPECT_FALSE(std::filesystem::exists(folder / "out"));
}

class ExperimentMistakes : public ::testing::TestWithParam<Mistake> {};
TEST_P(ExperimentMistakes, AreToldInOneSentence) { ExpectMistake(GetParam()); }
INSTANTIATE_TEST_SUITE_P(
    , ExperimentMistakes,
    ::testing::Values(Mistake{"experiment", "no experiment was given"},
                      Mistake{"experiment compositon", "did you mean 'composition'"},
                      Mistake{"experiment gone.toml", "cannot be read"},
                      Mistake{"experiment composition --jobs 0", "--jobs is 0"},
                      Mistake{"experiment composition --report x.txt", "an HTML page"},
                      Mistake{"experiment composition --quick --out /proc/x", "cannot be made"},
                      Mistake{"experiment show compositon", "did you mean 'composition'"}));

}  // namespace
}  // namespace sordino
