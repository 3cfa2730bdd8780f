#include "sordino/base/exact_count.h"

#include <gtest/gtest.h>

#include <limits>

#include "sordino/base/error.h"

namespace sordino {
namespace {

TEST(ExactCount, TakesEveryWholeNumberUpToItsLimit) {
  EXPECT_EQ(ExactCount(0, "0", "--steps"), 0U);
  EXPECT_EQ(ExactCount(1e6, "1e6", "--steps"), 1000000U);
  EXPECT_EQ(ExactCount(0x1p53, "2^53", "--steps"), kMaxExactCount);
}

TEST(ExactCount, RefusesWhatIsNoCountWithTheTextAndItsPlace) {
  for (const double number : {-1.0, 0.5, 0x1p53 + 2, std::numeric_limits<double>::infinity(),
                              std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_THROW(ExactCount(number, "x", "--steps"), Error) << number;
  }
  try {
    ExactCount(0.5, "0.5", "--steps");
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "'0.5' in --steps is not a whole number; give one from 0 to 2^53.");
  }
}

}  // namespace
}  // namespace sordino
