#include "sordino/experiments/results.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sordino/experiments/testing/script_program.h"

namespace sordino {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kTwoAxes = R"(
title = "T <b> | x"
repeats = 2
[[part]]
command = "account"
[[part.axis]]
name = "noise"
values = [1, 2]
[[part.axis]]
name = "kind"
flag = false
values = [{label = "a,\"b\""}, {label = "c"}]
[[part.measure]]
name = "m"
path = "m"
[[part.measure]]
name = "s"
path = "s"
[[picture]]
name = "number"
x = "noise"
y = "m"
by = "kind"
[[picture]]
name = "series"
y = "s"
by = ["noise", "kind"]
[[picture]]
name = "dots"
x = "noise"
y = "m"
where = {kind = "c"}
each-repeat = true
[[picture]]
name = "names"
x = "kind"
y = "m"
by = "noise"
[[picture]]
name = "both"
x = "noise"
y = "m"
right = "seconds"
right-log = true
where = {kind = "c"}
)";

// m is 10 noise + repeat, s is (repeat, m).
std::vector<CellResult> Results(const Experiment& experiment) {
  std::vector<CellResult> results;
  for (const Cell& cell : MakeCells(experiment, ScriptCommands, "")) {
    CellResult result{.cell = cell, .failure = "", .finished = {2, 30}, .values = {}};
    const double m = 10 * std::stod(cell.labels[0]) + cell.repeat;
    result.values = {{false, m, {}, {}}, {true, 0, {1, 2}, {1.0 * cell.repeat, m}}};
    results.push_back(result);
  }
  return results;
}

class ResultsTest : public ::testing::Test {
 protected:
  Experiment experiment_ = ParseExperiment(kTwoAxes, "mine", false);
  std::vector<CellResult> results_ = Results(experiment_);
};

TEST_F(ResultsTest, CurvesAreMeansOverRepeatsWithDeviations) {
  const ChartPicture chart = ChartOf(experiment_, experiment_.pictures[0], results_);
  ASSERT_EQ(chart.curves.size(), 2U);
  EXPECT_EQ(chart.curves[1].name, "c");
  ASSERT_EQ(chart.curves[1].points.size(), 2U);
  EXPECT_EQ(chart.curves[1].points[1].x, 2);
  EXPECT_EQ(chart.curves[1].points[1].y, 21.5);
  EXPECT_NEAR(chart.curves[1].points[1].deviation, std::sqrt(0.5), 1e-12);
}

TEST_F(ResultsTest, FailedCellsAreLeftOut) {
  results_[0].failure = "exit code 2: no.";
  results_[0].values.clear();
  const ChartPicture chart = ChartOf(experiment_, experiment_.pictures[0], results_);
  EXPECT_EQ(chart.curves[0].points[0].y, 12);
  EXPECT_EQ(chart.curves[0].points[0].deviation, 0);
  EXPECT_THAT(ResultsCsv(experiment_, results_), HasSubstr("exit code 2: no."));
  EXPECT_THAT(SummaryPage(experiment_, results_, "x"), HasSubstr("1 of the cells failed"));
}

TEST_F(ResultsTest, SeriesAreAveragedPointByPoint) {
  const ChartPicture chart = ChartOf(experiment_, experiment_.pictures[1], results_);
  ASSERT_EQ(chart.curves.size(), 4U);
  EXPECT_EQ(chart.curves[0].name, "noise 1, a,\"b\"");
  ASSERT_EQ(chart.curves[0].points.size(), 2U);
  EXPECT_EQ(chart.curves[0].points[0].y, 1.5);
  EXPECT_EQ(chart.curves[0].points[1].y, 11.5);
}

TEST_F(ResultsTest, EachRepeatIsADotWhereAskedFor) {
  const ChartPicture chart = ChartOf(experiment_, experiment_.pictures[2], results_);
  ASSERT_EQ(chart.curves.size(), 1U);
  EXPECT_EQ(chart.curves[0].points.size(), 4U);
  EXPECT_FALSE(chart.joined);
}

TEST_F(ResultsTest, LabelsThatAreNoNumbersAreNamesOfPlaces) {
  const ChartPicture chart = ChartOf(experiment_, experiment_.pictures[3], results_);
  ASSERT_EQ(chart.x.names.size(), 2U);
  EXPECT_EQ(chart.curves[0].points[1].x, 1);
  EXPECT_FALSE(chart.joined);
}

TEST_F(ResultsTest, MeasuresOfTheRightAxisAreCurvesOfTheirOwn) {
  const ChartPicture chart = ChartOf(experiment_, experiment_.pictures[4], results_);
  ASSERT_TRUE(chart.right);
  EXPECT_EQ(chart.right->label, "seconds");
  EXPECT_TRUE(chart.right->logarithmic);
  ASSERT_EQ(chart.curves.size(), 2U);
  EXPECT_FALSE(chart.curves[0].on_right);
  EXPECT_EQ(chart.curves[0].name, "m");
  EXPECT_TRUE(chart.curves[1].on_right);
  EXPECT_EQ(chart.curves[1].points[0].y, 2);
}

TEST_F(ResultsTest, TablesHaveALineForEachCellAndPoint) {
  const std::string csv = ResultsCsv(experiment_, results_);
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 9);
  EXPECT_THAT(csv, HasSubstr("part,noise,kind,repeat,seconds,memory_mb,m,failure\n"));
  EXPECT_THAT(csv, HasSubstr("account,2,\"a,\"\"b\"\"\",1,2,30,21,\n"));
  const std::string series = SeriesCsv(experiment_, results_);
  EXPECT_EQ(std::count(series.begin(), series.end(), '\n'), 1 + 8 * 2);
  EXPECT_THAT(series, HasSubstr("account,1,c,2,s,2,12\n"));
}

TEST_F(ResultsTest, JsonHasEverything) {
  results_[1].values[0].number = std::nan("");
  const auto json = nlohmann::json::parse(ResultsJson(experiment_, results_));
  EXPECT_EQ(json["experiment"], "mine");
  EXPECT_EQ(json["axes"][1]["values"][1], "c");
  ASSERT_EQ(json["cells"].size(), 8U);
  EXPECT_EQ(json["cells"][0]["settings"]["noise"], "1");
  EXPECT_EQ(json["cells"][0]["values"]["m"], 11);
  EXPECT_EQ(json["cells"][0]["values"]["s"]["y"][1], 11);
  EXPECT_TRUE(json["cells"][1]["values"]["m"].is_null());
  EXPECT_EQ(json["pictures"][0], "number.svg");
  EXPECT_EQ(json["public"], false);
}

TEST_F(ResultsTest, JsonJoinsTheAxesOfSeveralParts) {
  const std::string part =
      "command = \"account\"\n[[part.axis]]\nname = \"noise\"\nflag = false\nvalues = [1, ";
  const Experiment two = ParseExperiment(
      "[[part]]\nname = \"a\"\n" + part + "2]\n[[part]]\nname = \"b\"\n" + part + "3]\n", "mine",
      false);
  std::vector<CellResult> results;
  for (const Cell& cell : MakeCells(two, ScriptCommands, "")) {
    results.push_back({.cell = cell, .failure = "", .finished = {}, .values = {}});
  }
  const auto json = nlohmann::json::parse(ResultsJson(two, results));
  ASSERT_EQ(json["axes"].size(), 2U);
  EXPECT_EQ(json["axes"][0]["name"], "part");
  EXPECT_EQ(json["axes"][1]["values"].size(), 3U);
  EXPECT_EQ(json["cells"][3]["settings"]["part"], "b");
}

TEST_F(ResultsTest, PageSaysWhatWasSpentAndEscapesTexts) {
  EXPECT_THAT(SummaryPage(experiment_, results_, "x"), HasSubstr("charged to the ledger"));
  EXPECT_THAT(SummaryPage(experiment_, results_, "x"), Not(HasSubstr("<b>")));
  experiment_.public_data = true;
  EXPECT_THAT(SummaryPage(experiment_, results_, "x"), HasSubstr("nothing was spent"));
  EXPECT_THAT(SummaryPage(experiment_, results_, "x"), HasSubstr("| 1 | c | 11.5 ± 0.71 |"));
}

TEST_F(ResultsTest, APictureThatACommandDrewIsThatOfTheFirstCellThatHasIt) {
  const TestFolder folder;
  const std::string text = std::string(kTwoAxes) +
                           "[[picture]]\nname = \"drawn\"\nfile = \"drawn.svg\"\n"
                           "where = {noise = 2, kind = \"c\"}\n";
  const Experiment experiment = ParseExperiment(text, "mine", false);
  const Picture& picture = experiment.pictures.back();
  std::vector<CellResult> results = Results(experiment);
  for (CellResult& result : results) {
    result.folder = folder / result.cell.id;
    folder.Write(result.cell.id + "/drawn.svg", "<svg>" + result.cell.id + "</svg>");
  }
  // noise 2, kind c: the last two, of the repeats 1 and 2
  const std::size_t first = results.size() - 2;
  EXPECT_EQ(PictureSvg(experiment, picture, results), "<svg>" + results[first].cell.id + "</svg>");
  results[first].failure = "exit code 2: no.";
  EXPECT_EQ(PictureSvg(experiment, picture, results),
            "<svg>" + results[first + 1].cell.id + "</svg>");
  folder.Write(results[first + 1].cell.id + "/drawn.svg", "<html>");
  EXPECT_EQ(PictureSvg(experiment, picture, results),
            ChartSvg(ChartOf(experiment, picture, results)));
}

TEST_F(ResultsTest, WritesItsFiles) {
  const TestFolder folder;
  WriteResults(experiment_, results_, folder.path(), "x");
  for (const char* const name : {"results.json", "results.csv", "series.csv", "summary.md",
                                 "number.svg", "series.svg", "dots.svg", "names.svg"}) {
    EXPECT_TRUE(std::filesystem::exists(folder / name)) << name;
  }
}

}  // namespace
}  // namespace sordino
