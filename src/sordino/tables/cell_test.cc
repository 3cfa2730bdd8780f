#include "sordino/tables/cell.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>

namespace sordino {
namespace {

TEST(ParseNumber, TakesWholeFieldsOnly) {
  double x = 0;
  EXPECT_EQ(ParseNumber(" 1.5e3\t", &x), NumberError::kNone);
  EXPECT_EQ(x, 1500);
  EXPECT_EQ(ParseNumber("+7", &x), NumberError::kNone);
  EXPECT_EQ(x, 7);
  EXPECT_EQ(ParseNumber("", &x), NumberError::kEmpty);
  EXPECT_EQ(ParseNumber("  ", &x), NumberError::kEmpty);
  EXPECT_EQ(ParseNumber("1,5", &x), NumberError::kNotANumber);
  EXPECT_EQ(ParseNumber("abc", &x), NumberError::kNotANumber);
  EXPECT_EQ(ParseNumber("NaN", &x), NumberError::kNotFinite);
  EXPECT_EQ(ParseNumber("-Infinity", &x), NumberError::kNotFinite);
  EXPECT_EQ(ParseNumber("1e400", &x), NumberError::kOutOfRange);
}

TEST(ParseNumber, ShortNumbersAreRoundedLikeLongOnes) {
  // A chain of congruential numbers: digits with a point at every place, against strtod.
  std::uint64_t state = 1;
  for (int i = 0; i < 200'000; ++i) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    std::string text =
        std::to_string((state >> 20) % (i % 3 == 0 ? 100'000U : 1'000'000'000'000'000U));
    text.insert(static_cast<std::size_t>(state >> 58) % (text.size() + 1), ".");
    if (i % 5 == 0) text.insert(0, "-");
    if (text == "." || text == "-.") continue;
    double x = 0;
    ASSERT_EQ(ParseNumber(text, &x), NumberError::kNone) << text;
    ASSERT_EQ(x, std::strtod(text.c_str(), nullptr)) << text;
  }
  double x = 0;
  EXPECT_EQ(ParseNumber("-0", &x), NumberError::kNone);
  EXPECT_TRUE(std::signbit(x));
  for (const char* bad : {".", "-", "-.", "1.2.3", "1-", "--1", "+-1", "1 2"}) {
    EXPECT_EQ(ParseNumber(bad, &x), NumberError::kNotANumber) << bad;
  }
}

}  // namespace
}  // namespace sordino
