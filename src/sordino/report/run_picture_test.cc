#include "sordino/report/run_picture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <string>
#include <vector>

namespace sordino {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const RunPictureText kRunText = {"digits, mlp", "delta 1e-05", ""};

std::vector<RunPoint> RunPoints() { return {{100, 0.5, 0.61}, {200, 0.8, 0.74}, {300, 1.1, 0.79}}; }

// The coordinates of the line of a kind.
std::vector<std::pair<double, double>> PointsOfLine(const std::string& svg,
                                                    const std::string& kind) {
  std::smatch match;
  const std::regex line("class=\"" + kind + " line\" points=\"([^\"]*)\"");
  if (!std::regex_search(svg, match, line)) return {};
  std::vector<std::pair<double, double>> points;
  const std::string list = match[1];
  const std::regex pair("([0-9.]+),([0-9.]+)");
  for (auto it = std::sregex_iterator(list.begin(), list.end(), pair); it != std::sregex_iterator();
       ++it) {
    points.emplace_back(std::stod((*it)[1]), std::stod((*it)[2]));
  }
  return points;
}

TEST(RunPicture, DrawsBothCurvesAndNamesEveryAxis) {
  const std::string svg = RunSvg(RunPoints(), kRunText);
  EXPECT_THAT(svg, HasSubstr(">test accuracy</text>"));
  EXPECT_THAT(svg, HasSubstr(">epsilon spent</text>"));
  EXPECT_THAT(svg, HasSubstr(">steps</text>"));
  EXPECT_THAT(svg, HasSubstr(">79.00%</text>"));
  EXPECT_THAT(svg, HasSubstr(">epsilon 1.1</text>"));
  const auto accuracy = PointsOfLine(svg, "accuracy");
  ASSERT_EQ(accuracy.size(), 3U);
  const auto epsilon = PointsOfLine(svg, "epsilon");
  ASSERT_EQ(epsilon.size(), 4U);  // from 0 on
  for (const auto& line : {accuracy, epsilon}) {
    for (std::size_t i = 1; i < line.size(); ++i) {
      EXPECT_GT(line[i].first, line[i - 1].first);
      EXPECT_LT(line[i].second, line[i - 1].second);  // both rise
    }
    for (const auto& [x, y] : line) {
      EXPECT_GE(x, 76);
      EXPECT_LE(x, 644.01);
      EXPECT_GE(y, 87.99);
      EXPECT_LE(y, 376.01);
    }
  }
}

TEST(RunPicture, StandsAloneInLightAndDark) {
  const std::string svg = RunSvg(RunPoints(), kRunText);
  EXPECT_THAT(svg, HasSubstr("prefers-color-scheme:dark"));
  EXPECT_THAT(svg, Not(HasSubstr("href")));
  EXPECT_THAT(svg, Not(HasSubstr("url(")));
  EXPECT_EQ(svg.rfind("</svg>\n"), svg.size() - 7);
}

TEST(RunPicture, AWarningIsTheFirstThingInIt) {
  EXPECT_THAT(RunSvg(RunPoints(), kRunText), Not(HasSubstr("class=\"warning\"")));
  RunPictureText text = kRunText;
  text.warning = "NOT PRIVATE";
  const std::string svg = RunSvg(RunPoints(), text);
  EXPECT_LT(svg.find("NOT PRIVATE"), svg.find("digits, mlp"));
}

TEST(RunPicture, WithoutPrivacyThereIsNoEpsilon) {
  const std::vector<RunPoint> points = {{1, std::nullopt, 0.2}, {2, std::nullopt, 0.9}};
  const std::string svg = RunSvg(points, kRunText);
  EXPECT_THAT(svg, Not(HasSubstr("epsilon spent")));
  EXPECT_TRUE(PointsOfLine(svg, "epsilon").empty());
  EXPECT_EQ(PointsOfLine(svg, "accuracy").size(), 2U);
}

TEST(RunPicture, WithoutATestSetThereIsNoAccuracy) {
  const std::vector<RunPoint> points = {{10, 0.3, std::nullopt}};
  const std::string svg = RunSvg(points, kRunText);
  EXPECT_THAT(svg, Not(HasSubstr("test accuracy<")));
  EXPECT_EQ(PointsOfLine(svg, "epsilon").size(), 2U);
}

TEST(RunPicture, NothingAndOnePointAndEqualPointsAreDrawn) {
  EXPECT_THAT(RunSvg({}, kRunText), HasSubstr("There is nothing to draw yet."));
  const std::vector<RunPoint> one = {{5, 0.0, 0.1}};
  EXPECT_THAT(RunSvg(one, kRunText), Not(HasSubstr("nan")));
  const std::vector<RunPoint> equal = {{0, 0.0, 1.0}, {7, 2.0, 1.0}, {9, 2.0, 1.0}};
  const std::string svg = RunSvg(equal, kRunText);
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_THAT(svg, Not(HasSubstr("inf")));
  EXPECT_THAT(svg, HasSubstr(">100%</text>"));
}

TEST(RunPicture, TextIsEscaped) {
  const std::string svg = RunSvg(RunPoints(), {"a<b & c>d", "", ""});
  EXPECT_THAT(svg, HasSubstr("a&lt;b &amp; c&gt;d"));
}

}  // namespace
}  // namespace sordino
