#include "sordino/report/ledger_picture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace sordino {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const LedgerPictureText kText = {"visits.db", "epsilon 8, delta 1e-05", "", 8};
constexpr std::int64_t kDay = 86'400'000;

std::vector<LedgerPoint> Points() {
  return {{19'000 * kDay, "release mean of age", 0.1, 0.5},
          {19'001 * kDay, "train mlp", 0.4, 2.0},
          {19'001 * kDay, "train mlp", 0.7, 3.1},
          {19'002 * kDay, "train mlp", 0.65, std::nullopt},
          {19'003 * kDay, "release count", 0.8, 3.4}};
}

using Line = std::vector<std::pair<double, double>>;

// The text between a mark and the quote after it, from `from` on, which moves on; empty: no more.
std::string Quoted(const std::string& svg, const std::string& mark, std::size_t& from) {
  const std::size_t place = svg.find(mark, from);
  if (place == std::string::npos) return "";
  const std::size_t begin = place + mark.size();
  from = svg.find('"', begin);
  return svg.substr(begin, from - begin);
}

std::vector<Line> Lines(const std::string& svg, const std::string& kind) {
  std::vector<Line> lines;
  const std::string mark = "<polyline class=\"" + kind + "\" points=\"";
  std::size_t from = 0;
  for (std::string list = Quoted(svg, mark, from); !list.empty(); list = Quoted(svg, mark, from)) {
    std::istringstream in(list);
    Line line;
    char comma = 0;
    for (double x = 0, y = 0; in >> x >> comma >> y;) line.emplace_back(x, y);
    EXPECT_TRUE(in.eof()) << list;
    lines.push_back(line);
  }
  return lines;
}

double BudgetHeight(const std::string& svg) {
  std::size_t from = svg.find("<line class=\"budget\"");
  EXPECT_NE(from, std::string::npos);
  return std::stod(Quoted(svg, " y1=\"", from));
}

TEST(LedgerPicture, IsAStaircaseBelowTheLineOfTheWholeBudget) {
  const std::string svg = LedgerSvg(Points(), kText);
  for (const char* text : {">used of the budget</text>", ">composed epsilon (dotted)</text>",
                           ">the whole budget</text>", ">100%</text>"}) {
    EXPECT_THAT(svg, HasSubstr(text));
  }
  EXPECT_THAT(svg, HasSubstr(">charges, 2022-01-08 to 2022-01-11</text>"));
  const std::vector<Line> first = Lines(svg, "line run0");
  const std::vector<Line> second = Lines(svg, "line run1");
  const std::vector<Line> third = Lines(svg, "line run2");
  ASSERT_EQ(first.size(), 1U);
  ASSERT_EQ(second.size(), 1U);
  ASSERT_EQ(third.size(), 1U);
  ASSERT_EQ(second[0].size(), 7U);
  // Where one run ends the next begins, at the same height.
  EXPECT_EQ(first[0].back(), second[0].front());
  EXPECT_EQ(second[0].back(), third[0].front());
  EXPECT_LT(second[0][3].second, second[0][2].second);  // a charge goes up
  EXPECT_GT(second[0][6].second, second[0][4].second);  // a return goes down
  const double budget = BudgetHeight(svg);
  for (const auto& line : {first[0], second[0], third[0]}) {
    for (const auto& [x, y] : line) {
      EXPECT_GE(x, 76);
      EXPECT_LE(x, 644.01);
      EXPECT_GT(y, budget);
      EXPECT_LE(y, 330.01);
    }
  }
  // 80% of the way from the axis to the line.
  EXPECT_NEAR(third[0].back().second, 330 - 0.8 * (330 - budget), 0.1);
}

TEST(LedgerPicture, RunsOfOneNameHaveOneColourAndALegend) {
  std::vector<LedgerPoint> points = Points();
  points.push_back({19'004 * kDay, "release mean of age", 0.9, std::nullopt});
  const std::string svg = LedgerSvg(points, kText);
  EXPECT_EQ(Lines(svg, "line run0").size(), 2U);
  EXPECT_THAT(svg, HasSubstr(">release mean of age</text>"));
  EXPECT_THAT(svg, HasSubstr(">train mlp</text>"));
  EXPECT_THAT(svg, Not(HasSubstr("key run3")));
}

TEST(LedgerPicture, ManyRunsShareTheLastColour) {
  std::vector<LedgerPoint> points;
  points.reserve(20);
  for (int i = 0; i < 20; ++i) points.push_back({0, "run " + std::to_string(i), 0.05 * i, 0.1 * i});
  const std::string svg = LedgerSvg(points, kText);
  EXPECT_THAT(svg, HasSubstr(">run 4</text>"));
  EXPECT_THAT(svg, Not(HasSubstr(">run 5</text>")));
  EXPECT_THAT(svg, HasSubstr(">15 more</text>"));
}

TEST(LedgerPicture, DrawsTheComposedEpsilonWhereItWasComputed) {
  const std::vector<Line> epsilon = Lines(LedgerSvg(Points(), kText), "epsilon line");
  ASSERT_EQ(epsilon.size(), 1U);
  EXPECT_EQ(epsilon[0].size(), 5U);  // from 0, and one of the five was left out
  // On the right axis the budget is the line of the budget.
  const double budget = BudgetHeight(LedgerSvg(Points(), kText));
  EXPECT_NEAR(epsilon[0].back().second, 330 - 3.4 / 8 * (330 - budget), 0.1);
  std::vector<LedgerPoint> points = Points();
  for (LedgerPoint& point : points) point.epsilon = std::numeric_limits<double>::infinity();
  const std::string svg = LedgerSvg(points, kText);
  EXPECT_THAT(svg, Not(HasSubstr("composed epsilon")));
  EXPECT_THAT(svg, Not(HasSubstr("inf")));
}

TEST(LedgerPicture, WithoutABudgetThereIsTheComposedEpsilonOnly) {
  LedgerPictureText text = kText;
  text.epsilon = std::numeric_limits<double>::infinity();
  const std::string svg = LedgerSvg(Points(), text);
  EXPECT_THAT(svg, Not(HasSubstr("budget</text>")));
  EXPECT_TRUE(Lines(svg, "line run0").empty());
  const std::vector<Line> epsilon = Lines(svg, "epsilon line");
  ASSERT_EQ(epsilon.size(), 1U);
  for (const auto& [x, y] : epsilon[0]) EXPECT_GE(y, 92);
  EXPECT_THAT(svg, HasSubstr(">3</text>"));
}

TEST(LedgerPicture, StandsAloneInLightAndDark) {
  const std::string svg = LedgerSvg(Points(), kText);
  EXPECT_THAT(svg, HasSubstr("prefers-color-scheme:dark"));
  EXPECT_THAT(svg, Not(HasSubstr("href")));
  EXPECT_THAT(svg, Not(HasSubstr("url(")));
  EXPECT_EQ(svg.rfind("</svg>\n"), svg.size() - 7);
}

TEST(LedgerPicture, AWarningIsTheFirstThingInIt) {
  EXPECT_THAT(LedgerSvg(Points(), kText), Not(HasSubstr("class=\"warning\"")));
  LedgerPictureText text = kText;
  text.warning = "NOT PRIVATE";
  const std::string svg = LedgerSvg(Points(), text);
  EXPECT_LT(svg.find("NOT PRIVATE"), svg.find("visits.db"));
}

TEST(LedgerPicture, NothingOneAndVeryManyChargesAreDrawn) {
  EXPECT_THAT(LedgerSvg({}, kText), HasSubstr("Nothing was charged yet."));
  const std::vector<LedgerPoint> one = {{0, "a", 0, 0.0}};
  const std::string single = LedgerSvg(one, kText);
  EXPECT_THAT(single, Not(HasSubstr("nan")));
  EXPECT_THAT(single, Not(HasSubstr("inf")));
  std::vector<LedgerPoint> many(100'000);
  for (std::size_t i = 0; i < many.size(); ++i) {
    many[i] = {0, "train", static_cast<double>(i + 1) / 100'000, std::nullopt};
  }
  const std::string svg = LedgerSvg(many, kText);
  EXPECT_LT(svg.size(), 100'000U);
  const std::vector<Line> lines = Lines(svg, "line run0");
  ASSERT_EQ(lines.size(), 1U);
  // Thinned out, and still from the first to the last charge.
  EXPECT_NEAR(lines[0].front().second, 330, 0.01);
  EXPECT_NEAR(lines[0].back().second, BudgetHeight(svg), 0.1);
  EXPECT_NEAR(lines[0].back().first, 644, 0.01);
}

TEST(LedgerPicture, MoreThanTheBudgetStaysInThePicture) {
  std::vector<LedgerPoint> points = Points();
  points.push_back({19'005 * kDay, "other rules", 2.5, 9.0});
  const std::string svg = LedgerSvg(points, kText);
  const std::vector<Line> lines = Lines(svg, "line run3");
  ASSERT_EQ(lines.size(), 1U);
  for (const auto& [x, y] : lines[0]) EXPECT_GE(y, 92);
  EXPECT_GT(BudgetHeight(svg), 200);
  EXPECT_THAT(svg, HasSubstr(">250%</text>"));
}

TEST(LedgerPicture, TextIsEscapedAndLongNamesAreWhole) {
  std::vector<LedgerPoint> points = Points();
  points[0].run = "a<b & c";
  points[1].run = "x";
  for (int i = 0; i < 60; ++i) points[1].run += "\u00e9";
  const std::string svg = LedgerSvg(points, {"t<i>tle", "", "", 8});
  EXPECT_THAT(svg, HasSubstr("a&lt;b &amp; c"));
  EXPECT_THAT(svg, HasSubstr("t&lt;i&gt;tle"));
  EXPECT_THAT(svg, HasSubstr(" lengthAdjust=\"spacingAndGlyphs\">" + points[1].run + "</text>"));
}

}  // namespace
}  // namespace sordino
