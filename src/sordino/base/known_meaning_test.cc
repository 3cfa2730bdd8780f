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

TEST(KnownMeaning, ValuesMeanWhatIsKnownInTheirPlace) {
  constexpr std::array<std::string_view, 3> fits = {"logistic", "least-squares", "svm"};
  constexpr std::array<std::string_view, 2> networks = {"logistic", "mlp"};
  constexpr std::array<std::string_view, 3> clippings = {"flat", "layerwise", "automatic"};
  EXPECT_EQ(NameByMeaning("logistic_regression", fits), "logistic");
  EXPECT_EQ(NameByMeaning("LogReg", networks), "logistic");
  EXPECT_EQ(NameByMeaning("linear", fits), "least-squares");
  EXPECT_EQ(NameByMeaning("linear", networks), "logistic");
  EXPECT_EQ(NameByMeaning("per_layer", clippings), "layerwise");
  EXPECT_EQ(NameByMeaning("AUTO-S", clippings), "automatic");
  EXPECT_EQ(NameByMeaning("svm", clippings), "");
}

TEST(KnownMeaning, MeaningComesBeforeLetters) {
  // By its letters '--eps' is nearest to '--steps'.
  EXPECT_EQ(LikelyName("--eps", kFlags), "--epsilon");
  EXPECT_EQ(LikelyName("--bacth", kFlags), "--batch");
  EXPECT_EQ(LikelyName("--colour", kFlags), "");
}

}  // namespace
}  // namespace sordino
