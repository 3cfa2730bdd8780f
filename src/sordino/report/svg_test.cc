#include "sordino/report/svg.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace sordino {
namespace {

TEST(Svg, TextsOfFilesCannotMoveWhatIsDrawn) {
  EXPECT_EQ(SvgEscaped("<a\xE2\x80\xAE"
                       "b\xC2\x9B>"),
            "&lt;a\\u202eb\\u009b&gt;");
}

TEST(Svg, TextCannotOpenATag) {
  EXPECT_EQ(SvgEscaped("<b>a & b</b>"), "&lt;b&gt;a &amp; b&lt;/b&gt;");
}

TEST(Svg, TicksAreRoundAndAboutAsManyAsAskedFor) {
  for (double span = 1e-6; span < 1e6; span *= 1.37) {
    const double tick = TickDistance(span, 5);
    const double digit = tick / std::pow(10, std::floor(std::log10(tick * (1 + 1e-9))));
    EXPECT_THAT(digit, testing::AnyOf(testing::DoubleNear(1, 1e-6), testing::DoubleNear(2, 1e-6),
                                      testing::DoubleNear(5, 1e-6)));
    EXPECT_LE(span / tick, 5 * (1 + 1e-6));
    EXPECT_GT(span / tick, 1.9);
  }
}

TEST(Svg, StyleHoldsTheRulesOfBothReaders) {
  const std::string style = SvgStyle(".dot{fill:#000000}", ".dot{fill:#ffffff}");
  EXPECT_LT(style.find(".dot{fill:#000000}"), style.find("prefers-color-scheme:dark"));
  EXPECT_GT(style.find(".dot{fill:#ffffff}"), style.find("prefers-color-scheme:dark"));
  EXPECT_THAT(style, testing::EndsWith("}</style>\n"));
}

TEST(Svg, WhatFitsKeepsItsWidth) {
  EXPECT_EQ(SvgFit("name", 4, 20), "");
  EXPECT_EQ(SvgFit("\u00e9\u00e9\u00e9\u00e9", 4, 20), "");
  EXPECT_EQ(SvgFit("names", 4, 20), " textLength=\"20\" lengthAdjust=\"spacingAndGlyphs\"");
}

TEST(Svg, ALongHeadingIsNarrowerAndNeverCut) {
  const std::string title = "income of " + std::string(100, 'x');
  const std::string svg =
      SvgOpening({.label = "a picture", .warning = "", .title = title, .caption = "short"}, "", 60);
  EXPECT_THAT(svg, testing::HasSubstr(" textLength=\"648\" lengthAdjust=\"spacingAndGlyphs\">" +
                                      title + "</text>"));
  EXPECT_THAT(svg, testing::HasSubstr(">short</text>"));
  EXPECT_EQ(svg.find("textLength"), svg.rfind("textLength"));
  // A mark that is shown by its code is as long as the code.
  EXPECT_NE(SvgFit("ab\u202e", 4, 20), "");
}

}  // namespace
}  // namespace sordino
