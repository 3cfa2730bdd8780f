#include "sordino/base/check.h"

#include <gtest/gtest.h>

namespace sordino {
namespace {

TEST(CheckDeathTest, StopsTheProgramAndNamesWhatIsBroken) {
  EXPECT_DEATH(SORDINO_CHECK(1 + 1 == 3, "arithmetic"), "privacy invariant is broken: arithmetic");
}

TEST(Check, PassesSilentlyWhenTheConditionHolds) { SORDINO_CHECK(true, "never"); }

TEST(Check, EvaluatesItsConditionOnceInEveryBuildType) {
  int calls = 0;
  SORDINO_CHECK(++calls == 1, "evaluated more than once");
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace sordino
