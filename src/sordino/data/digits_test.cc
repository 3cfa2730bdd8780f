#include "sordino/data/digits.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <string>

#include "sordino/data/internal/digit_glyphs.h"
#include "sordino/data/internal/digit_renderer.h"

namespace sordino {
namespace {

// FNV-1a, 64 bits: any changed byte changes it.
std::uint64_t Checksum(const Dataset& data) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  const auto take = [&](std::uint8_t byte) { hash = (hash ^ byte) * 0x100000001b3U; };
  const auto* pixels = data.inputs.const_data_ptr<std::uint8_t>();
  for (std::int64_t i = 0; i < data.inputs.numel(); ++i) take(pixels[i]);
  const auto* labels = data.labels.const_data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < data.labels.numel(); ++i) take(static_cast<std::uint8_t>(labels[i]));
  return hash;
}

const DataSplits& AllDigits() {
  static const DataSplits digits = MakeDigits();
  return digits;
}

TEST(Digits, AreTheSameBytesOnEveryMachine) {
  EXPECT_EQ(Checksum(AllDigits().train), 0xdac9af78d3889eafU);
  EXPECT_EQ(Checksum(*AllDigits().test), 0xdca065827e959470U);
}

TEST(Digits, KeepToTheirDeclaration) {
  CheckDeclaration(AllDigits().train);
  CheckDeclaration(*AllDigits().test);
  EXPECT_EQ(AllDigits().train.size(), 60'000);
  EXPECT_EQ(AllDigits().test->size(), 10'000);
}

TEST(Digits, HoldEveryDigitEquallyOften) {
  const at::Tensor train = at::bincount(AllDigits().train.labels, {}, 10);
  EXPECT_TRUE(train.eq(6'000).all().item<bool>()) << train;
  const at::Tensor test = at::bincount(AllDigits().test->labels, {}, 10);
  EXPECT_TRUE(test.eq(1'000).all().item<bool>()) << test;
}

TEST(Digits, AShortSetIsTheBeginningOfTheWhole) {
  const DataSplits some = MakeDigits(123, 45);
  EXPECT_TRUE(at::equal(some.train.inputs, AllDigits().train.inputs.slice(0, 0, 123)));
  EXPECT_TRUE(at::equal(some.train.labels, AllDigits().train.labels.slice(0, 0, 123)));
  EXPECT_TRUE(at::equal(some.test->inputs, AllDigits().test->inputs.slice(0, 0, 45)));
  EXPECT_TRUE(at::equal(some.test->labels, AllDigits().test->labels.slice(0, 0, 45)));
}

TEST(Digits, NoImageOccursTwice) {
  std::set<std::string> images;
  const auto add = [&](const Dataset& data) {
    const auto* pixels = data.inputs.const_data_ptr<std::uint8_t>();
    for (std::int64_t i = 0; i < data.size(); ++i) {
      images.emplace(reinterpret_cast<const char*>(pixels + i * internal::kDigitPixels),
                     internal::kDigitPixels);
    }
  };
  add(AllDigits().train);
  add(*AllDigits().test);
  EXPECT_EQ(images.size(), 70'000U);
}

// Ridge regression onto one-hot labels in closed form: the linear model that needs no tuning. What
// softmax regression reaches is in docs/data.md (about 90%).
TEST(Digits, ALinearModelStaysBelow95Percent) {
  const auto features = [](const Dataset& data) {
    const at::Tensor pixels = data.inputs.flatten(1).to(at::kFloat).div_(255).sub_(0.5);
    return at::cat({pixels, at::ones({pixels.size(0), 1})}, 1);
  };
  const at::Tensor x = features(AllDigits().train);
  const at::Tensor y = at::one_hot(AllDigits().train.labels, 10).to(at::kFloat);
  const at::Tensor gram = x.t().mm(x).add_(at::eye(x.size(1)), 10);
  const at::Tensor weights = at::linalg_solve(gram, x.t().mm(y));
  const at::Tensor guesses = features(*AllDigits().test).mm(weights).argmax(1);
  const double accuracy =
      guesses.eq(AllDigits().test->labels).to(at::kDouble).mean().item<double>();
  EXPECT_LT(accuracy, 0.95);
  EXPECT_GT(accuracy, 0.60) << "the digits are not to be told apart";
}

TEST(DigitRenderer, EveryDigitHasSeveralGlyphsWithinTheirBox) {
  for (int digit = 0; digit < 10; ++digit) {
    EXPECT_GE(internal::GlyphsOf(digit).size(), 2U) << digit;
    for (const internal::Glyph glyph : internal::GlyphsOf(digit)) {
      for (const internal::GlyphStroke& stroke : glyph) {
        EXPECT_GE(stroke.points.size(), 2U) << digit;
        for (const internal::GlyphPoint point : stroke.points) {
          EXPECT_LE(std::abs(point.x), 76) << digit;
          EXPECT_LE(std::abs(point.y), 76) << digit;
        }
      }
    }
  }
}

TEST(DigitRenderer, DrawsStayWithinTheirBoundsAndReachThem) {
  internal::CounterDraws draws(7);
  std::set<int> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(draws.Between(-3, 3));
  EXPECT_EQ(seen, (std::set<int>{-3, -2, -1, 0, 1, 2, 3}));
}

}  // namespace
}  // namespace sordino
