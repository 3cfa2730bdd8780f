#include "sordino/cli/interval_text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>

#include "sordino/base/quantity.h"

namespace sordino {
namespace {

TEST(IntervalText, ShownBoundsStayOnTheirSide) {
  std::mt19937_64 bits(7);
  std::uniform_real_distribution<double> exponent(-322, 308);
  for (int i = 0; i < 20000; ++i) {
    const double value = std::pow(10, exponent(bits));
    const std::string upper = UpperText(value);
    const std::string lower = LowerText(value);
    EXPECT_GE(std::strtod(upper.c_str(), nullptr), value) << upper;
    EXPECT_LE(std::strtod(lower.c_str(), nullptr), value) << lower;
    if (value < 1e-300) continue;
    EXPECT_LE(std::strtod(upper.c_str(), nullptr), value * (1 + 1.01e-6)) << upper;
    EXPECT_GE(std::strtod(lower.c_str(), nullptr), value * (1 - 1.01e-6)) << lower;
  }
}

TEST(IntervalText, RoundNumbersStayRound) {
  for (const double value : {0.0, 1.0, 0.5, 1e-5, 223.0}) {
    EXPECT_EQ(UpperText(value), LowerText(value)) << value;
  }
  EXPECT_EQ(UpperText(9.99999999), "10");
  EXPECT_EQ(LowerText(9.99999999), "9.999999");
  EXPECT_EQ(UpperText(kInfinity), "infinity");
}

TEST(IntervalText, TablesAlignNumbersToTheRight) {
  EXPECT_EQ(AlignedTable({{"name", "n", "note"}, {"a", "10", "x"}, {"b", "2"}}, 2),
            "name   n  note\n"
            "a     10  x\n"
            "b      2\n");
}

}  // namespace
}  // namespace sordino
