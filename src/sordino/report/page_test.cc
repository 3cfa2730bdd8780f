#include "sordino/report/page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <regex>

#include "sordino/base/error.h"
#include "sordino/report/testing/run_folder_files.h"

namespace sordino {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

// The data of a page, as a browser reads them.
Json DataOf(const std::string& page) {
  const std::string begin = "id=\"data\">";
  const std::size_t from = page.find(begin) + begin.size();
  return Json::parse(page.substr(from, page.find("</script>", from) - from));
}

TEST(Page, IsSmallAndLoadsNothing) {
  const std::string page = ReportPage({});
  EXPECT_LT(page.size(), 400'000U);
  EXPECT_TRUE(page.starts_with("<!DOCTYPE html>"));
  EXPECT_THAT(page, HasSubstr("default-src 'none'; script-src 'sha256-"));
  EXPECT_THAT(page, Not(HasSubstr("unsafe-inline")));
  EXPECT_THAT(page, Not(HasSubstr("connect-src")));
  // Attributes that load: only the empty icon.
  const std::regex loads("<[^>]* (src|href)=\"([^\"]*)\"");
  for (std::sregex_iterator it(page.begin(), page.begin() + 3000, loads), end; it != end; ++it) {
    EXPECT_EQ((*it)[2], "data:,");
  }
  ReportContent watched;
  watched.is_watched = true;
  EXPECT_THAT(ReportPage(watched), HasSubstr("connect-src 'self'"));
}

TEST(Page, HoldsTheLicenceOfItsCharts) {
  const std::string page = ReportPage({});
  EXPECT_THAT(page, HasSubstr("Permission is hereby granted, free of charge"));
  EXPECT_THAT(page, HasSubstr("Chart.js v3.9.1"));
}

TEST(Page, NamesFromFilesCannotBecomeMarkup) {
  const std::string evil = "</script><script>alert(1)</script><img src=x onerror=alert(2)>&lt;";
  ReportContent content;
  ReportRun run;
  run.name = run.data = run.model = run.statement = evil;
  run.settings = run.hashes = {{evil, evil}};
  content.runs = {run};
  ReportLedger ledger;
  ledger.name = ledger.budget = evil;
  ledger.runs.push_back({.time = evil, .who = evil, .what = evil, .event = evil});
  content.ledgers = {ledger};
  ReportExperiment experiment;
  experiment.name = experiment.title = evil;
  experiment.axes = {{evil, {evil}}};
  content.experiments = {experiment};
  content.version = evil;
  const std::string page = ReportPage(content);
  EXPECT_THAT(page, Not(HasSubstr("<script>alert")));
  EXPECT_THAT(page, Not(HasSubstr("<img src")));
  EXPECT_EQ(DataOf(page)["runs"][0]["name"], evil);
  EXPECT_EQ(DataOf(page)["ledgers"][0]["runs"][0]["who"], evil);
}

// A right-to-left override, a C1 control and a line separator, wherever a file can put a text.
TEST(Page, TextsOfFilesCannotMoveWhatIsShown) {
  const std::string evil =
      "a\xE2\x80\xAE"
      "b\xC2\x9B"
      "c\xE2\x80\xA8"
      "d\x1b";
  const std::string shown = "a\\u202eb\\u009bc\\u2028d\\u001b";
  ReportContent content;
  ReportRun run;
  run.name = run.data = run.model = evil;
  run.statement = evil + "\nsecond line";
  run.settings = {{evil, evil}};
  content.runs = {run};
  ReportLedger ledger;
  ledger.name = evil;
  ledger.runs.push_back({.time = evil, .who = evil, .what = evil, .event = evil});
  content.ledgers = {ledger};
  ReportExperiment experiment;
  experiment.axes = {{evil, {evil}}};
  ReportCell cell;
  cell.values = {{evil, 1.0}};
  experiment.cells = {cell};
  content.experiments = {experiment};
  const Json data = DataOf(ReportPage(content));
  EXPECT_EQ(data["runs"][0]["name"], shown);
  EXPECT_EQ(data["runs"][0]["statement"], shown + "\nsecond line");
  EXPECT_EQ(data["ledgers"][0]["runs"][0]["what"], shown);
  EXPECT_EQ(data["experiments"][0]["axes"][0]["name"], shown);
  EXPECT_EQ(data["experiments"][0]["cells"][0]["values"].begin().key(), shown);
  EXPECT_THAT(data.dump(), Not(HasSubstr("\xE2\x80\xAE")));
}

TEST(Page, TakesTextThatIsNotUtf8) {
  ReportContent content;
  ReportRun run;
  run.name = "bad \xff\xfe name";
  content.runs = {run};
  EXPECT_NO_THROW(DataOf(ReportPage(content)));
}

TEST(Page, HoldsTheNumbersOfTheRunExactly) {
  const TestFolder folder;
  ReportContent content;
  content.runs = {ReadReportRun(WriteRunFolder(folder, "first"))};
  content.runs[0].guarantee = GuaranteeOf(Event::Parse(content.runs[0].event), 1e-5, 0);
  const Json run = DataOf(ReportPage(content))["runs"][0];
  EXPECT_EQ(run["points"][1]["test_accuracy"], 0.76);
  EXPECT_EQ(run["points"][1]["step"], 200);
  EXPECT_EQ(run["without_privacy"], false);
  EXPECT_EQ(run["hashes"].back()[0], "statement.txt");
  EXPECT_EQ(run["guarantee"]["epsilon"], content.runs[0].guarantee->epsilon);
  EXPECT_EQ(run["audit"]["attackers"][0]["epsilon_lower"]["gdp"], 0.42);
  EXPECT_EQ(Json::parse(ReportJson(content)), DataOf(ReportPage(content)));
}

TEST(Page, ThinsLongCurvesAndKeepsTheirEnds) {
  ReportContent content;
  ReportRun run;
  for (int i = 1; i <= 100'000; ++i) {
    ReportPoint point;
    point.step = i;
    run.points.push_back(point);
  }
  content.runs = {run};
  const Json shown = DataOf(ReportPage(content))["runs"][0];
  EXPECT_LE(shown["points"].size(), 1002U);
  EXPECT_EQ(shown["points"].front()["step"], 1);
  EXPECT_EQ(shown["points"].back()["step"], 100'000);
  EXPECT_EQ(shown["evaluations"], 100'000);
}

TEST(Page, HasNoNumberWhereThereIsNone) {
  ReportContent content;
  ReportLedger ledger;
  ledger.epsilon = std::numeric_limits<double>::infinity();
  ledger.composed = {0, std::numeric_limits<double>::infinity()};
  content.ledgers = {ledger};
  const Json data = DataOf(ReportPage(content));
  EXPECT_TRUE(data["ledgers"][0]["epsilon"].is_null());
  EXPECT_TRUE(data["ledgers"][0]["composed"]["upper"].is_null());
}

}  // namespace
}  // namespace sordino
