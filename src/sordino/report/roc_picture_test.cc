#include "sordino/report/roc_picture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace sordino {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(RocSvg, DrawsCurvesOnLogarithmicAxes) {
  RocPicture picture;
  picture.title = "Attack <1>";
  picture.curves.push_back({"losses", {{0, 0}, {0.01, 0.1}, {1, 1}}});
  const std::string svg = RocSvg(picture);
  EXPECT_THAT(svg, HasSubstr("Attack &lt;1&gt;"));
  // 0.01 is the middle of four decades; 0.1 is three quarters of the way up.
  EXPECT_THAT(svg,
              HasSubstr("class=\"c0 line\" points=\"76.00,380.00 232.00,146.00 388.00,68.00\""));
  EXPECT_THAT(svg, Not(HasSubstr("<polygon")));
  EXPECT_THAT(svg, HasSubstr(">losses</text>"));
}

TEST(RocSvg, ShadesWhatIsClaimed) {
  RocPicture picture;
  picture.claim = {{.epsilon = 1, .delta = 0}};
  const std::string svg = RocSvg(picture);
  EXPECT_THAT(svg, HasSubstr("<polygon class=\"limit\""));
  // At a false positive rate of 10^-4 at most e 10^-4: 0.4343 / 4 of the side above the bottom.
  EXPECT_THAT(svg, HasSubstr("points=\"76.00,346.13 "));
}

TEST(RocSvg, LeavesOutPointsThatNobodySees) {
  RocPicture picture;
  picture.curves.push_back({"many", {}});
  for (int i = 0; i <= 100000; ++i) picture.curves[0].points.emplace_back(i * 1e-5, i * 1e-5);
  EXPECT_LT(RocSvg(picture).size(), 60'000);
}

}  // namespace
}  // namespace sordino
