// Tables that break solvers and readers, through `sordino fit`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "sordino/runs/fit_run.h"
#include "sordino/torch_cli/testing/fit_table.h"
#include "sordino/torch_cli/testing/points_table.h"

namespace sordino {
namespace {

using OrderedJson = nlohmann::ordered_json;
using ::testing::HasSubstr;
using ::testing::Not;

using FitTables = FitTable;

// Whatever there is of them: not even the refusal says how many.
TEST_F(FitTables, ValuesThatAreNotDeclaredAreRefusedBeforeTheCharge) {
  const std::string ledger = Place("points.db");
  ASSERT_EQ(RunProgram({"ledger", "init", ledger, "--epsilon", "8", "--delta", "1e-5"}).exit_code,
            0);
  const std::string before = ReadTestFile(ledger);
  std::string all = PointsTable(500);
  for (std::size_t at = 0; (at = all.find(",no\n", at)) != std::string::npos;) {
    all.replace(at, 4, ",nein\n");
  }
  std::string said;
  for (const std::string& table : {PointsTable(500) + "0.5,0.5,nein\n", all}) {
    const CommandOutcome outcome = Fit(table, "--epsilon 5 --records 500 --ledger " + ledger);
    ExpectRefusal(outcome, "a value that is not declared in the column 'above'");
    EXPECT_THAT(outcome.err, Not(HasSubstr("nein")));
    said = said.empty() ? outcome.err : said;
    EXPECT_EQ(outcome.err, said);
  }
  const std::vector<std::string> columns = {"x:numeric:0:1", "y:categorical:a|b",
                                            "above:label:no|yes"};
  ExpectRefusal(Fit("x,y,above\n1,c,no\n", "--epsilon 5 --records 500 --ledger " + ledger, columns),
                "a value that is not declared in the column 'y'");
  EXPECT_EQ(ReadTestFile(ledger), before);
  EXPECT_FALSE(std::filesystem::exists(Place("run")));
  ExpectRefusal(Fit(all, "--epsilon 5 --on-error ignore"), "it can be refuse or skip");
  ExpectRefusal(RunProgram({"fit", "digits", "--epsilon", "5", "--on-error", "skip"}),
                "rows of a table");
}

TEST_F(FitTables, RowsThatAreLeftOutAreCountedAndNotShown) {
  std::string table = PointsTable(500);
  for (int i = 0; i < 7; ++i) table += "0.5,0.5,SECRET-DIAGNOSIS\n";
  table += "SECRET-AGE,0.5,no\n";
  const CommandOutcome outcome =
      Fit(table, "--epsilon 5 --records 500 --on-error skip --show-private");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("8 rows that do not keep to the declaration were left out"));
  EXPECT_THAT(outcome.err + outcome.out, Not(HasSubstr("SECRET")));
  const CommandOutcome silent =
      Fit(table, "--epsilon 5 --records 500 --on-error skip", kPoints, "silent");
  ASSERT_EQ(silent.exit_code, 0) << silent.err;
  EXPECT_THAT(silent.err, Not(HasSubstr("8 rows")));
}

// What reads the run later knows the encoding from its settings.
TEST_F(FitTables, AnotherEncodingIsDeclaredOnce) {
  std::string table = "city,above\n";
  for (int i = 0; i < 200; ++i) table += i % 2 == 0 ? "Z\xFCrich,no\n" : "Bern,yes\n";
  const std::vector<std::string> columns = {"city:categorical:Zürich|Bern", "above:label:no|yes"};
  const std::string flags = "--epsilon 30 --records 200";
  ExpectRefusal(Fit(table, flags, columns), "is not valid utf-8");
  ASSERT_EQ(Fit(table, flags + " --encoding latin-1", columns).exit_code, 0);
  const CommandOutcome outcome =
      RunProgram({"predict", "--run", Place("run"), "--data",
                  folder_.Write("new.csv", "city\nZ\xFCrich\nBern\n").string()});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, ::testing::MatchesRegex("class,probability\nno,[^\n]*\nyes,[^\n]*\n"));
}

// Under replace-one the number of rows is fixed: a row that cannot be used is blank and counts.
TEST_F(FitTables, UnderReplaceOneARowThatIsLeftOutIsBlankAndCounts) {
  std::string table = PointsTable(400);
  for (int i = 0; i < 5; ++i) table += "0.5,0.5,?\n";
  const CommandOutcome outcome =
      Fit(table, "--epsilon 5 --adjacency replace-one --on-error skip --json");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(OrderedJson::parse(outcome.out)["plan"]["records"], 405);
}

// Tables that break solvers: each ends in a model of finite numbers.
TEST_F(FitTables, OddTablesEndInAModel) {
  const auto rows = [](int count, auto&& row) {
    std::string table = "x,y,above\n";
    for (int i = 0; i < count; ++i) table += row(i) + "\n";
    return table;
  };
  const std::string separable =
      rows(200, [](int i) { return i % 2 == 0 ? std::string("0,0,no") : std::string("1,1,yes"); });
  const std::string constant =
      rows(200, [](int i) { return std::string("0.5,0.5,") + (i % 2 == 0 ? "no" : "yes"); });
  const std::string single = rows(200, [](int) { return std::string("0.3,0.9,yes"); });
  const std::string one = rows(1, [](int) { return std::string("0.3,0.9,yes"); });
  const std::string huge = rows(
      200, [](int i) { return std::string(i % 2 == 0 ? "1e300,-1e300,no" : "-1e300,1e300,yes"); });
  const std::string missing =
      rows(200, [](int i) { return std::string("?,?,") + (i % 2 == 0 ? "no" : "yes"); });
  const std::string empty = rows(0, [](int) { return std::string(); });
  const std::vector<std::pair<std::string, std::string>> tables = {
      {"separable", separable}, {"constant", constant}, {"single-class", single}, {"one", one},
      {"huge", huge},           {"missing", missing},   {"empty", empty}};
  for (const auto& [name, table] : tables) {
    for (const std::string_view method : FitMethodNames()) {
      if (method == "adassp") continue;
      const std::string run = name + "-" + std::string(method);
      const CommandOutcome outcome =
          Fit(table, "--epsilon 1 --records 200 --json --missing ? --method " + std::string(method),
              kPoints, run);
      ASSERT_EQ(outcome.exit_code, 0) << run << outcome.err;
      const OrderedJson report = OrderedJson::parse(outcome.out);
      for (const auto& [feature, value] : report["coefficients"].items()) {
        EXPECT_TRUE(value.is_number()) << run << feature;
      }
    }
  }
  const CommandOutcome none = Fit(empty, "--epsilon 1", kPoints, "none");
  EXPECT_EQ(none.exit_code, 0) << none.err;
}

// The same for numbers, by every method that predicts them.
TEST_F(FitTables, OddTablesOfNumbersEndInAModel) {
  const std::vector<std::string> columns = {"x:numeric:0:1", "y:numeric:0:1", "z:target:0:1"};
  const auto repeated = [](const std::string& row, int count) {
    std::string table = "x,y,z\n";
    for (int i = 0; i < count; ++i) table += row + '\n';
    return table;
  };
  const std::vector<std::pair<std::string, std::string>> tables = {
      {"constant", repeated("0.5,0.5,0.5", 100)},    {"one", repeated("0.3,0.9,1", 1)},
      {"huge", repeated("1e300,-1e300,1e300", 100)}, {"missing", repeated("?,?,0.5", 100)},
      {"no-target", repeated("0.5,0.5,?", 100)},     {"empty", repeated("", 0)}};
  for (const auto& [name, table] : tables) {
    for (const std::string_view method : FitMethodNames()) {
      const std::string run = name + "-" + std::string(method);
      const CommandOutcome outcome =
          Fit(table,
              "--model least-squares --epsilon 1 --records 100 --json --missing ? --on-error skip "
              "--method " +
                  std::string(method),
              columns, run);
      ASSERT_EQ(outcome.exit_code, 0) << run << outcome.err;
      const OrderedJson report = OrderedJson::parse(outcome.out);
      EXPECT_EQ(report["coefficients"].size(), 3U);
      for (const auto& [feature, value] : report["coefficients"].items()) {
        EXPECT_TRUE(value.is_number()) << run << feature;
      }
    }
  }
}

TEST_F(FitTables, MoreColumnsThanRowsAndTheSameColumnTwiceEndInAModel) {
  std::string table = "label";
  std::vector<std::string> columns = {"label:label:no|yes"};
  for (int j = 0; j < 40; ++j) {
    table += ",c" + std::to_string(j);
    columns.push_back("c" + std::to_string(j) + ":numeric:0:1");
  }
  table += '\n';
  for (int i = 0; i < 10; ++i) {
    table += i % 2 == 0 ? "no" : "yes";
    for (int j = 0; j < 40; ++j) table += i % 2 == 0 ? ",0.25" : ",0.75";  // all columns alike
    table += '\n';
  }
  for (const std::string_view method : FitMethodNames()) {
    if (method == "adassp") continue;
    const CommandOutcome outcome =
        Fit(table, "--epsilon 2 --records 10 --json --method " + std::string(method), columns,
            "wide-" + std::string(method));
    ASSERT_EQ(outcome.exit_code, 0) << method << outcome.err;
    EXPECT_EQ(OrderedJson::parse(outcome.out)["coefficients"].size(), 41U);
  }
}

// Notes whose words tell the class, beside a number that does not.
std::string NotesTable(int rows) {
  std::string csv = "note,x,sick\n";
  for (int i = 0; i < rows; ++i) {
    csv += std::string(i % 2 == 0 ? "\"Fever, cough at night" : "\"all well today") + " no" +
           std::to_string(i % 7) + "\",0." + std::to_string(i % 10) +
           (i % 2 == 0 ? ",yes\n" : ",no\n");
  }
  return csv;
}

TEST_F(FitTables, FreeTextIsHashedIntoFeatures) {
  const std::vector<std::string> columns = {"note:text:32", "x:numeric:0:1", "sick:label:no|yes"};
  const std::string test = folder_.Write("test.csv", NotesTable(101)).string();
  const CommandOutcome outcome =
      Fit(NotesTable(4000), "--epsilon 3 --records 4000 --json --test " + test, columns);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const nlohmann::json json = nlohmann::json::parse(outcome.out);
  EXPECT_GT(json["test_accuracy"], 0.95);
  EXPECT_EQ(json["coefficients"].size(), 34U);  // 32 buckets, x and the intercept
  EXPECT_TRUE(json["coefficients"].contains("note#31"));
  // sqrt(1 + 1 + 1/4): no norm of hashed words exceeds 1.
  EXPECT_NEAR(json["plan"]["row_bound"].get<double>(), 1.5, 1e-9);
  const std::string fresh =
      folder_.Write("new.csv", "note,x\ncough and fever at night,0.5\nall well today,0.5\n")
          .string();
  const CommandOutcome predicted = RunProgram({"predict", Place("run"), fresh});
  ASSERT_EQ(predicted.exit_code, 0) << predicted.err;
  EXPECT_THAT(predicted.out,
              ::testing::MatchesRegex("class,probability\n[a-z]+,[^\n]+\nno,[^\n]+\n"));
}

}  // namespace
}  // namespace sordino
