#include "sordino/report/coefficient_picture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sordino {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::size_t Count(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

TEST(CoefficientSvg, DrawsABarForEachAndALineForEachNoise) {
  const std::string svg = CoefficientSvg({.bars = {{"age", 0.5, 0.1}, {"<b>", -2, std::nullopt}},
                                          .title = "logistic of a.csv",
                                          .caption = "output",
                                          .warning = ""});
  EXPECT_EQ(Count(svg, "class=\"bar\""), 2U);
  EXPECT_EQ(Count(svg, "class=\"noise\""), 1U);
  EXPECT_THAT(svg, HasSubstr("&lt;b&gt;"));
  EXPECT_THAT(svg, HasSubstr("two standard deviations"));
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
}

TEST(CoefficientSvg, DrawsTheLargestOfManyAndSaysSo) {
  CoefficientPicture picture;
  for (int i = 0; i < 100; ++i) {
    picture.bars.push_back({"f" + std::to_string(i), i == 77 ? 9.0 : i / 100.0, std::nullopt});
  }
  picture.warning = "NOT PRIVATE";
  const std::string svg = CoefficientSvg(picture);
  EXPECT_EQ(Count(svg, "class=\"bar\""), kMaxCoefficientBars);
  EXPECT_THAT(svg, HasSubstr(">f77<"));
  EXPECT_THAT(svg, Not(HasSubstr(">f1<")));
  EXPECT_THAT(svg, HasSubstr("the 24 largest of 100"));
  EXPECT_THAT(svg, HasSubstr("NOT PRIVATE"));
}

TEST(CoefficientSvg, TakesNoBarsAndBarsOfNothing) {
  EXPECT_THAT(CoefficientSvg({}), HasSubstr("</svg>"));
  EXPECT_THAT(CoefficientSvg({.bars = {{"a", 0, 0.0}}, .title = "", .caption = "", .warning = ""}),
              Not(HasSubstr("nan")));
}

TEST(CoefficientSvg, LongNamesAreNarrowerAndNeverCut) {
  const std::string name = "highest level of education=" + std::string(30, 'x');
  const std::string svg = CoefficientSvg(
      {.bars = {{name, 1, 0.0}, {"age", 1, 0.0}}, .title = "", .caption = "", .warning = ""});
  EXPECT_THAT(svg,
              HasSubstr(" textLength=\"204\" lengthAdjust=\"spacingAndGlyphs\">" + name + "<"));
  EXPECT_THAT(svg, HasSubstr("text-anchor=\"end\">age<"));
}

}  // namespace
}  // namespace sordino
