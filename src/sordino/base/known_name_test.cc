#include "sordino/base/known_name.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

#include "sordino/base/error.h"

namespace sordino {
namespace {

constexpr std::array<std::string_view, 3> kAllNames = {"poisson", "fixed", "full"};

std::string Sentence(std::string_view given) {
  try {
    IndexOfName("the sampling", given, kAllNames);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(KnownName, IsFoundAtItsPlace) {
  for (std::size_t i = 0; i < kAllNames.size(); ++i) {
    EXPECT_EQ(IndexOfName("the sampling", kAllNames[i], kAllNames), i);
  }
}

TEST(KnownName, MistakeIsOneSentenceWithTheNearestName) {
  EXPECT_EQ(Sentence("posson"),
            "the sampling is 'posson', which is not known; did you mean 'poisson'? it can be "
            "poisson, fixed or full.");
  EXPECT_EQ(Sentence("everything"),
            "the sampling is 'everything', which is not known; it can be poisson, fixed or full.");
  EXPECT_EQ(Sentence("full-batch"),
            "the sampling is 'full-batch', which is not known; did you mean 'full'? it can be "
            "poisson, fixed or full.");
  EXPECT_LT(Sentence(std::string(10'000, 'x')).size(), 150U);
}

TEST(KnownName, ListsReadLikeWords) {
  EXPECT_EQ(OneOf(std::span(kAllNames).first(1)), "poisson");
  EXPECT_EQ(OneOf(std::span(kAllNames).first(2)), "poisson or fixed");
  EXPECT_EQ(OneOf({}), "");
}

}  // namespace
}  // namespace sordino
