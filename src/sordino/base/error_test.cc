#include "sordino/base/error.h"

#include <gtest/gtest.h>

#include <array>

namespace sordino {
namespace {

constexpr std::array<std::string_view, 3> kNames = {"poisson", "fixed", "none"};

TEST(NearestName, FindsTheNameBehindATypo) {
  EXPECT_EQ(NearestName("poison", kNames), "poisson");
  EXPECT_EQ(NearestName("fxied", kNames), "fixed");
}

TEST(NearestName, IsEmptyWhenNothingIsNear) { EXPECT_EQ(NearestName("stratified", kNames), ""); }

TEST(NearestName, HandlesEmptyInput) {
  EXPECT_EQ(NearestName("", {}), "");
  EXPECT_EQ(NearestName("fixed", {}), "");
}

}  // namespace
}  // namespace sordino
