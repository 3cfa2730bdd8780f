#include "sordino/report/chart_picture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <regex>
#include <string>
#include <vector>

namespace sordino {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// The places of the dots of a picture, those of its legend aside.
std::vector<std::pair<double, double>> Dots(const std::string& svg) {
  static const std::regex kDot("cx=\"([0-9.]+)\" cy=\"([0-9.]+)\" r=\"3\"");
  std::vector<std::pair<double, double>> dots;
  for (std::sregex_iterator it(svg.begin(), svg.end(), kDot), end; it != end; ++it) {
    dots.emplace_back(std::stod((*it)[1]), std::stod((*it)[2]));
  }
  return dots;
}

ChartPicture OneCurve(std::vector<ChartPoint> points) {
  ChartPicture picture;
  picture.title = "title";
  picture.x.label = "steps";
  picture.y.label = "loss";
  picture.curves.push_back({"curve", std::move(points)});
  return picture;
}

TEST(ChartPicture, PlacesPointsInProportion) {
  const auto dots = Dots(ChartSvg(OneCurve({{0, 0}, {5, 10}, {10, 5}})));
  ASSERT_EQ(dots.size(), 3U);
  EXPECT_NEAR(dots[1].first - dots[0].first, dots[2].first - dots[1].first, 0.02);
  EXPECT_NEAR(dots[0].second - dots[1].second, 2 * (dots[0].second - dots[2].second), 0.02);
}

TEST(ChartPicture, PlacesPowersAtEqualDistancesOnALogarithmicAxis) {
  ChartPicture picture = OneCurve({{1, 1e-6}, {10, 1e-4}, {100, 1e-2}});
  picture.x.logarithmic = true;
  picture.y.logarithmic = true;
  const auto dots = Dots(ChartSvg(picture));
  ASSERT_EQ(dots.size(), 3U);
  EXPECT_NEAR(dots[1].first - dots[0].first, dots[2].first - dots[1].first, 0.02);
  EXPECT_NEAR(dots[1].second - dots[0].second, dots[2].second - dots[1].second, 0.02);
}

TEST(ChartPicture, LeavesOutWhatAnAxisCannotShow) {
  ChartPicture picture = OneCurve({{1, 1}, {2, 0}, {3, std::nan("")}, {4, HUGE_VAL}, {5, 2}});
  picture.y.logarithmic = true;
  EXPECT_EQ(Dots(ChartSvg(picture)).size(), 2U);
  picture.y.logarithmic = false;
  EXPECT_EQ(Dots(ChartSvg(picture)).size(), 3U);
}

TEST(ChartPicture, ErrorBarsReachOneDeviationBothWays) {
  const std::string svg = ChartSvg(OneCurve({{0, 0}, {1, 10, 5}, {2, 20}}));
  const auto dots = Dots(svg);
  std::smatch bar;
  ASSERT_TRUE(std::regex_search(svg, bar, std::regex("bar\" .*y1=\"([0-9.]+)\" y2=\"([0-9.]+)\"")));
  const double low = std::stod(bar[1]);
  const double high = std::stod(bar[2]);
  EXPECT_NEAR(low - dots[1].second, dots[1].second - high, 0.02);
  EXPECT_NEAR(low - high, dots[0].second - dots[1].second, 0.02);
}

TEST(ChartPicture, NamesPlacesOfAnAxisOfNames) {
  ChartPicture picture = OneCurve({{0, 1}, {1, 2}});
  picture.x.names = {"frozen", "scratch"};
  picture.joined = false;
  const std::string svg = ChartSvg(picture);
  EXPECT_THAT(svg, HasSubstr(">frozen<"));
  EXPECT_THAT(svg, HasSubstr(">scratch<"));
  EXPECT_THAT(svg, Not(HasSubstr("<polyline")));
}

// 10 on the left and 0.5 on the right are both halfway up.
TEST(ChartPicture, PlacesCurvesOfTheRightAxisByThatAxis) {
  ChartPicture picture = OneCurve({{0, 0}, {1, 10}, {2, 20}});
  picture.right = ChartAxis{.label = "accuracy", .logarithmic = false, .names = {}};
  picture.curves.push_back(
      {.name = "accuracy", .points = {{0, 0}, {1, 0.5, 0.1}, {2, 1}}, .on_right = true});
  const std::string svg = ChartSvg(picture);
  const auto dots = Dots(svg);
  ASSERT_EQ(dots.size(), 6U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(dots[i].first, dots[i + 3].first, 0.02);
    EXPECT_NEAR(dots[i].second, dots[i + 3].second, 0.02);
  }
  EXPECT_THAT(svg, HasSubstr(">accuracy<"));
  EXPECT_THAT(svg, HasSubstr(">accuracy (right)<"));
  EXPECT_THAT(svg, HasSubstr("stroke-dasharray"));
  // Without such an axis the chart is wider.
  EXPECT_GT(Dots(ChartSvg(OneCurve({{0, 0}, {1, 10}, {2, 20}})))[2].first, dots[2].first + 50);
}

TEST(ChartPicture, TakesARightAxisAlone) {
  ChartPicture picture = OneCurve({});
  picture.right = ChartAxis{.label = "r", .logarithmic = true, .names = {}};
  picture.curves.push_back({.name = "r", .points = {{0, 1}, {1, 100}}, .on_right = true});
  EXPECT_EQ(Dots(ChartSvg(picture)).size(), 2U);
}

TEST(ChartPicture, EscapesEveryText) {
  ChartPicture picture = OneCurve({{0, 1}});
  picture.title = picture.caption = picture.x.label = picture.y.label = "<b>&";
  picture.x.names = {"<i>"};
  picture.curves[0].name = "<script>";
  const std::string svg = ChartSvg(picture);
  EXPECT_THAT(svg, Not(HasSubstr("<b>")));
  EXPECT_THAT(svg, Not(HasSubstr("<i>")));
  EXPECT_THAT(svg, Not(HasSubstr("<script>")));
  EXPECT_THAT(svg, HasSubstr("&lt;script&gt;"));
}

TEST(ChartPicture, SaysThatThereIsNothingToDraw) {
  EXPECT_THAT(ChartSvg(OneCurve({})), HasSubstr("nothing to draw"));
  EXPECT_THAT(ChartSvg(OneCurve({{std::nan(""), 1}})), HasSubstr("nothing to draw"));
}

TEST(ChartPicture, DrawsAnyNumberOfCurves) {
  ChartPicture picture = OneCurve({{0, 1}});
  for (int i = 0; i < 99; ++i) picture.curves.push_back({"x", {{1.0 * i, 2}}});
  const std::string svg = ChartSvg(picture);
  EXPECT_EQ(Dots(svg).size(), 100U);
  EXPECT_THAT(svg, HasSubstr("and 82 more"));
}

}  // namespace
}  // namespace sordino
