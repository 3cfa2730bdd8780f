#include "sordino/data/augmentation.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/reflection_pad2d.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "sordino/base/error.h"

namespace sordino {
namespace {

at::Tensor RandomImages(std::int64_t n, std::int64_t channels, std::int64_t height,
                        std::int64_t width) {
  return at::randint(0, 256, {n, channels, height, width}, at::kLong).to(at::kByte);
}

// By libtorch's padding and slicing.
at::Tensor Changed(const at::Tensor& image, bool flip, std::int64_t shift, std::int64_t down,
                   std::int64_t right) {
  at::Tensor padded = image.to(at::kFloat);
  if (shift > 0) padded = at::reflection_pad2d(padded, {shift, shift, shift, shift});
  const at::Tensor moved = padded.slice(1, shift - down, shift - down + image.size(1))
                               .slice(2, shift - right, shift - right + image.size(2));
  return (flip ? moved.flip({2}) : moved).to(at::kByte);
}

using Place = std::array<std::int64_t, 3>;  // flip, down, right

// Which change was made, found by trying all of them.
std::optional<Place> WhichChange(const at::Tensor& image, const at::Tensor& copy,
                                 std::int64_t shift) {
  for (std::int64_t flip = 0; flip < 2; ++flip) {
    for (std::int64_t down = -shift; down <= shift; ++down) {
      for (std::int64_t right = -shift; right <= shift; ++right) {
        if (Changed(image, flip == 1, shift, down, right).equal(copy)) {
          return Place{flip, down, right};
        }
      }
    }
  }
  return std::nullopt;
}

TEST(Augment, LeavesImagesThatNothingWasAskedFor) {
  const at::Tensor images = RandomImages(4, 3, 5, 6);
  EXPECT_TRUE(Augment(images, {}, 1).equal(images));
}

TEST(Augment, MirrorsAndShiftsWithReflectedEdgesAndNothingElse) {
  at::Tensor images = RandomImages(12, 3, 7, 5);
  for (const std::int64_t shift : {0, 1, 2, 4}) {
    for (const bool flip : {false, true}) {
      const at::Tensor made = Augment(images, {.flip = flip, .shift = shift}, 7);
      ASSERT_EQ(made.sizes(), images.sizes());
      ASSERT_EQ(made.scalar_type(), at::kByte);
      for (std::int64_t i = 0; i < images.size(0); ++i) {
        const std::optional<Place> change = WhichChange(images[i], made[i], shift);
        ASSERT_TRUE(change.has_value()) << "image " << i << ", shift " << shift;
        if (!flip) {
          EXPECT_EQ((*change)[0], 0);
        }
      }
    }
  }
}

TEST(Augment, ReadsImagesThatLieInAnyOrder) {
  const at::Tensor images = RandomImages(6, 4, 5, 3).permute({0, 3, 2, 1});
  const AugmentationOptions options{.flip = true, .shift = 1};
  EXPECT_TRUE(Augment(images, options, 3).equal(Augment(images.contiguous(), options, 3)));
}

// All 2 * 3 * 3 changes alike by chi-square with 17 degrees of freedom over 9000 copies, 500
// expected in each. False alarms below 1e-9: Laurent and Massart (2000), Lemma 1, with x = 20.73
// gives 17 + 2 sqrt(17 x) + 2 x = 96.
TEST(Augment, DrawsEveryChangeEquallyOften) {
  const at::Tensor image = at::arange(16, at::kByte).view({1, 1, 4, 4});
  const at::Tensor made =
      Augment(image, {.flip = true, .shift = 1, .multiplicity = 9000}, 12).squeeze(0);
  std::map<std::vector<std::uint8_t>, double> counts;
  for (std::int64_t i = 0; i < 9000; ++i) {
    const std::uint8_t* pixels = made.const_data_ptr<std::uint8_t>() + 16 * i;
    ++counts[{pixels, pixels + 16}];
  }
  ASSERT_EQ(counts.size(), 18u);
  double statistic = 0;
  for (const auto& [pixels, count] : counts) statistic += (count - 500) * (count - 500) / 500;
  EXPECT_LT(statistic, 96);
}

TEST(Augment, MakesCopiesOfEachExampleSideBySide) {
  const at::Tensor images = RandomImages(5, 1, 6, 6);
  const at::Tensor made = Augment(images, {.flip = true, .shift = 2, .multiplicity = 8}, 3);
  ASSERT_EQ(made.sizes(), (std::vector<std::int64_t>{5, 8, 1, 6, 6}));
  for (std::int64_t i = 0; i < 5; ++i) {
    bool differ = false;
    for (std::int64_t k = 0; k < 8; ++k) {
      ASSERT_TRUE(WhichChange(images[i], made[i][k], 2).has_value());
      differ = differ || !made[i][k].equal(made[i][0]);
    }
    EXPECT_TRUE(differ) << "all copies of example " << i << " are the same";
  }
  // Without a change that is random, the copies are the image.
  const at::Tensor same = Augment(images, {.multiplicity = 3}, 3);
  for (std::int64_t k = 0; k < 3; ++k) EXPECT_TRUE(same.select(1, k).equal(images));
}

TEST(Augment, DependsOnSeedPlaceAndCopyOnly) {
  const at::Tensor images = RandomImages(1, 1, 8, 8).expand({64, 1, 8, 8});
  const AugmentationOptions options{.flip = true, .shift = 2, .multiplicity = 4};
  const at::Tensor made = Augment(images, options, 5);
  EXPECT_TRUE(Augment(images, options, 5).equal(made));
  EXPECT_FALSE(Augment(images, options, 6).equal(made));
  // The beginning of a batch does not know how long the batch is, nor how many copies follow.
  EXPECT_TRUE(Augment(images.slice(0, 0, 10), options, 5).equal(made.slice(0, 0, 10)));
  const AugmentationOptions two{.flip = true, .shift = 2, .multiplicity = 2};
  EXPECT_TRUE(Augment(images, two, 5).equal(made.slice(1, 0, 2)));
  at::Tensor elsewhere;
  std::thread([&] { elsewhere = Augment(images, options, 5); }).join();
  EXPECT_TRUE(elsewhere.equal(made));
  // Equal images at different places change differently.
  EXPECT_FALSE(made[0].equal(made[1]) && made[1].equal(made[2]) && made[2].equal(made[3]));
}

TEST(Augment, TakesAnEmptyBatch) {
  EXPECT_EQ(Augment(at::empty({0, 3, 8, 8}, at::kByte), {.flip = true}, 1).sizes(),
            (std::vector<std::int64_t>{0, 3, 8, 8}));
  EXPECT_EQ(
      Augment(at::empty({0, 3, 8, 8}, at::kByte), {.flip = true, .multiplicity = 4}, 1).sizes(),
      (std::vector<std::int64_t>{0, 4, 3, 8, 8}));
}

TEST(Augment, RefusesWhatItCannotDo) {
  const at::Tensor images = RandomImages(2, 1, 8, 5);
  EXPECT_NO_THROW(Augment(images, {.shift = 4}, 1));
  for (const AugmentationOptions& wrong :
       {AugmentationOptions{.shift = 5}, AugmentationOptions{.shift = -1},
        AugmentationOptions{.shift = std::int64_t{1} << 62}, AugmentationOptions{.multiplicity = 0},
        AugmentationOptions{.multiplicity = -3},
        AugmentationOptions{.multiplicity = std::int64_t{1} << 40}}) {
    EXPECT_THROW(Augment(images, wrong, 1), Error);
  }
  EXPECT_THROW(Augment(images[0], {.flip = true}, 1), Error);
  EXPECT_THROW(Augment(images.to(at::kFloat), {.flip = true}, 1), Error);
}

}  // namespace
}  // namespace sordino
