#include "sordino/base/known_meaning.h"

#include <gtest/gtest.h>

#include <array>

namespace sordino {
namespace {

constexpr std::array<std::string_view, 8> kFlags = {"--epsilon", "--lr",      "--steps", "--batch",
                                                    "--clip",    "--records", "--out",   "--test"};

TEST(KnownMeaning, FindsWhatIsCalledOtherwiseElsewhere) {
  EXPECT_EQ(NameByMeaning("--eps", kFlags), "--epsilon");
  EXPECT_EQ(NameByMeaning("--learning-rate", kFlags), "--lr");
  EXPECT_EQ(NameByMeaning("--learning_rate", kFlags), "--lr");
  EXPECT_EQ(NameByMeaning("--iterations", kFlags), "--steps");
  EXPECT_EQ(NameByMeaning("--Batch-Size", kFlags), "--batch");
  EXPECT_EQ(NameByMeaning("--max_grad_norm", kFlags), "--clip");
  EXPECT_EQ(NameByMeaning("-o", kFlags), "--out");
  EXPECT_EQ(NameByMeaning("--l_r", kFlags), "");
}

TEST(KnownMeaning, SuggestsNothingThatIsNotKnownWhereItWasTyped) {
  constexpr std::array<std::string_view, 2> few = {"--mean", "--count"};
  EXPECT_EQ(NameByMeaning("--eps", few), "");
  EXPECT_EQ(NameByMeaning("", few), "");
  EXPECT_EQ(NameByMeaning("---", few), "");
}

TEST(KnownMeaning, NamesWithoutDashesKeepNone) {
  constexpr std::array<std::string_view, 2> keys = {"epsilon", "learning-rate"};
  EXPECT_EQ(NameByMeaning("eps", keys), "epsilon");
  EXPECT_EQ(NameByMeaning("learning_rate", keys), "learning-rate");
}

TEST(KnownMeaning, MeaningComesBeforeLetters) {
  // By its letters '--eps' is nearest to '--steps'.
  EXPECT_EQ(DidYouMeanBy("--eps", kFlags), "did you mean '--epsilon'? ");
  EXPECT_EQ(DidYouMeanBy("--bacth", kFlags), "did you mean '--batch'? ");
  EXPECT_EQ(DidYouMeanBy("--colour", kFlags), "");
}

}  // namespace
}  // namespace sordino
