#include "sordino/cli/curve_picture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

namespace sordino {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::vector<CurvePoint> Rising() {
  return {{1, {0.09, 0.1}}, {10, {0.29, 0.3}}, {100, {0.9, 1.0}}, {1000, {2.9, 3.0}}};
}

TEST(CurvePicture, TextRisesFromLeftToRight) {
  std::istringstream lines(CurveText(Rising()));
  std::string line;
  std::size_t last = std::string::npos;
  int rows = 0;
  while (std::getline(lines, line)) {
    EXPECT_LE(line.size(), 72U);
    const std::size_t star = line.find('*');
    if (star == std::string::npos) continue;
    EXPECT_LE(star, last) << line;
    last = star;
    ++rows;
  }
  EXPECT_GE(rows, 6);
}

TEST(CurvePicture, SvgIsSelfContainedAndEscapesTheCaption) {
  const std::string svg = CurveSvg(Rising(), "a < b & c", 1e-5);
  EXPECT_THAT(svg, HasSubstr("a &lt; b &amp; c"));
  EXPECT_THAT(svg, HasSubstr("prefers-color-scheme:dark"));
  EXPECT_THAT(svg, Not(HasSubstr("href")));
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_THAT(svg, ::testing::EndsWith("</svg>\n"));
  EXPECT_THAT(svg, HasSubstr("delta 1e-05"));
}

TEST(CurvePicture, PointsWithoutABoundAreLeftOut) {
  std::vector<CurvePoint> curve = Rising();
  curve.push_back({10000, {5, kInfinity}});
  EXPECT_THAT(CurveSvg(curve, "", 1e-5), Not(HasSubstr("inf")));
  const std::vector<CurvePoint> nothing = {{1, {0, kInfinity}}};
  EXPECT_THAT(CurveText(nothing), HasSubstr("no finite epsilon"));
  EXPECT_THAT(CurveSvg(nothing, "", 1e-5), HasSubstr("no finite epsilon"));
}

TEST(CurvePicture, OnePointAndAFlatLineAreDrawn) {
  for (const Interval interval : {Interval{0, 0}, Interval{1, 1}}) {
    const std::vector<CurvePoint> one = {{1, interval}};
    EXPECT_THAT(CurveText(one), HasSubstr("*"));
    EXPECT_THAT(CurveSvg(one, "", 1e-5), Not(HasSubstr("nan")));
  }
}

}  // namespace
}  // namespace sordino
