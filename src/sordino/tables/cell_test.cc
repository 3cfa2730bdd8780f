#include "sordino/tables/cell.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace sordino
