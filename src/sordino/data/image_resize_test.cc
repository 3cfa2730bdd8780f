#include "sordino/data/image_resize.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sordino/base/error.h"

namespace sordino {
namespace {

using ::testing::HasSubstr;

std::string MistakeOf(const std::string& text) {
  try {
    ParseResize(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(ImageResize, WidthComesFirst) {
  const Resize resize = ParseResize("64x48:pad");
  EXPECT_EQ(resize.width, 64);
  EXPECT_EQ(resize.height, 48);
  EXPECT_EQ(resize.rule, ResizeRule::kPad);
  EXPECT_EQ(ParseResize("1x16384").rule, ResizeRule::kStretch);
  for (const char* text : {"64", "64x", "x64", "0x4", "4x16385", "-1x4", "4x4x4", "4 x4", "4X4"}) {
    EXPECT_THAT(MistakeOf(text), HasSubstr("such as 64x48")) << text;
  }
  EXPECT_THAT(MistakeOf("4x4:crpo"), HasSubstr("did you mean 'crop'?"));
}

// A picture of 2 x 6 whose columns are 0, 50, ..., 250.
at::Tensor Wide() {
  return at::arange(0, 300, 50, at::kLong).to(at::kByte).expand({3, 2, 6}).contiguous();
}

TEST(ImageResize, CropTakesTheMiddleInProportion) {
  const at::Tensor square = Resized(Wide(), {.width = 2, .height = 2, .rule = ResizeRule::kCrop});
  ASSERT_EQ(square.sizes().vec(), (std::vector<std::int64_t>{3, 2, 2}));
  EXPECT_EQ(square[0][0][0].item<int>(), 100);
  EXPECT_EQ(square[2][1][1].item<int>(), 150);
  const at::Tensor tall = Resized(Wide().transpose(1, 2).contiguous(),
                                  {.width = 1, .height = 1, .rule = ResizeRule::kCrop});
  EXPECT_EQ(tall[0][0][0].item<int>(), 125);
}

TEST(ImageResize, PadKeepsAllOfThePictureAndItsProportions) {
  const at::Tensor white = at::full({1, 2, 6}, 255, at::kByte);
  const at::Tensor page = Resized(white, {.width = 6, .height = 6, .rule = ResizeRule::kPad});
  EXPECT_EQ(page.sum(at::kLong).item<std::int64_t>(), 255 * 12);
  EXPECT_EQ(page[0][1][3].item<int>(), 0);
  EXPECT_EQ(page[0][2][0].item<int>(), 255);
  EXPECT_EQ(page[0][3][5].item<int>(), 255);
  EXPECT_EQ(page[0][4][3].item<int>(), 0);
}

TEST(ImageResize, AnyRuleGivesTheSizeForAnyPicture) {
  for (const ResizeRule rule : {ResizeRule::kStretch, ResizeRule::kCrop, ResizeRule::kPad}) {
    for (const std::int64_t h : {1, 2, 7, 900}) {
      for (const std::int64_t w : {1, 3, 8, 1100}) {
        const at::Tensor grey = at::full({1, h, w}, 77, at::kByte);
        const at::Tensor fit = Resized(grey, {.width = 5, .height = 4, .rule = rule});
        ASSERT_EQ(fit.sizes().vec(), (std::vector<std::int64_t>{1, 4, 5})) << h << ' ' << w;
        EXPECT_EQ(fit.max().item<int>(), 77);
        if (rule != ResizeRule::kPad) {
          EXPECT_EQ(fit.min().item<int>(), 77);
        }
      }
    }
  }
}

TEST(ImageResize, APictureOfTheSizeKeepsItsPixels) {
  for (const ResizeRule rule : {ResizeRule::kStretch, ResizeRule::kCrop, ResizeRule::kPad}) {
    EXPECT_TRUE(Resized(Wide(), {.width = 6, .height = 2, .rule = rule}).equal(Wide()));
  }
}

}  // namespace
}  // namespace sordino
