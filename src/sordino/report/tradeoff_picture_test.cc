#include "sordino/report/tradeoff_picture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sordino/base/quantity.h"

namespace sordino {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::vector<TradeoffPoint> Curve(double mu) {
  std::vector<TradeoffPoint> curve;
  for (int i = 0; i <= 100; ++i) curve.push_back({i / 100.0, GaussianTradeoff(mu, i / 100.0)});
  return curve;
}

TEST(TradeoffPicture, IsSelfContainedAndEscapesTheCaption) {
  const std::string svg = TradeoffSvg(Curve(1), PrivacyLine{2, 0.02}, "a < b & c");
  EXPECT_THAT(svg, ::testing::StartsWith("<svg xmlns="));
  EXPECT_THAT(svg, ::testing::EndsWith("</svg>\n"));
  EXPECT_THAT(svg, HasSubstr("a &lt; b &amp; c"));
  EXPECT_THAT(svg, HasSubstr("prefers-color-scheme:dark"));
  EXPECT_THAT(svg, Not(HasSubstr("href")));
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
}

// Corners of the square: (0, 0) is at 76, 380 and (1, 1) at 388, 68.
TEST(TradeoffPicture, DrawsTheDiagonalTheClaimAndTheCurveWhereTheyAre) {
  const std::vector<TradeoffPoint> curve = {{0, 1}, {0.25, 0.25}, {1, 0}};
  const std::string svg = TradeoffSvg(curve, PrivacyLine{0, 0.5}, "");
  EXPECT_THAT(svg, HasSubstr("class=\"even line\" points=\"76.00,68.00 388.00,380.00\""));
  EXPECT_THAT(svg,
              HasSubstr("class=\"curve line\" points=\"76.00,68.00 154.00,302.00 388.00,380.00\""));
  // 1/2 - x until it is 0.
  EXPECT_THAT(svg, HasSubstr("class=\"claim line\" points=\"76.00,224.00 154.00,302.00 "
                             "232.00,380.00 388.00,380.00\""));
  EXPECT_THAT(svg, HasSubstr("epsilon 0,"));
  EXPECT_THAT(svg, HasSubstr("delta 0.5"));
  EXPECT_THAT(svg, HasSubstr("75.00 % of the time"));
}

TEST(TradeoffPicture, ShowsNoBoundBelowItself) {
  const std::string svg = TradeoffSvg(Curve(1), PrivacyLine{1.828201, 1.23401e-6}, "");
  EXPECT_THAT(svg, HasSubstr("epsilon 1.829,"));
  EXPECT_THAT(svg, HasSubstr("delta 1.235e-06"));
  EXPECT_THAT(TradeoffSvg(Curve(1), PrivacyLine{2, 0}, ""), HasSubstr("delta 0<"));
}

TEST(TradeoffPicture, WithoutAFiniteEpsilonClaimsNothing) {
  for (const std::string& svg :
       {TradeoffSvg(Curve(1), std::nullopt, ""),
        TradeoffSvg(Curve(1), PrivacyLine{kInfinity, 0}, ""), TradeoffSvg({}, std::nullopt, "")}) {
    EXPECT_THAT(svg, Not(HasSubstr("claimed")));
    EXPECT_THAT(svg, Not(HasSubstr("claim line\" points")));
    EXPECT_THAT(svg, Not(HasSubstr("inf")));
    EXPECT_THAT(svg, ::testing::EndsWith("</svg>\n"));
  }
}

}  // namespace
}  // namespace sordino
