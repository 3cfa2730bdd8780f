#include "sordino/base/missing_setting.h"

#include <gtest/gtest.h>

namespace sordino {
namespace {

TEST(MissingSetting, AreToldWithACommandThatWouldWork) {
  EXPECT_EQ(
      MissingSentence({{"the budget", "--epsilon 3", "or --noise"}, {"delta", "--delta 1e-6"}},
                      "sordino train x.csv"),
      "2 settings are missing: the budget (--epsilon: or --noise), and delta (--delta). With "
      "values of your own this would work: sordino train x.csv --epsilon 3 --delta 1e-6");
}

TEST(MissingSetting, OneIsToldInTheSingular) {
  EXPECT_EQ(MissingSentence({{"delta", "--delta 1e-6"}}, "sordino fit"),
            "a setting is missing: delta (--delta). With values of your own this would work: "
            "sordino fit --delta 1e-6");
}

}  // namespace
}  // namespace sordino
