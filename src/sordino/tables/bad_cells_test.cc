#include "sordino/tables/bad_cells.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sordino/tables/testing/reader_test_support.h"

namespace sordino {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

BadCell Told(const std::string& what, const std::string& detail) {
  return {.what = what, .sentence = "only " + what + ".", .detail = detail};
}

TEST(BadCells, TellsEachKindOnceInTheOrderOfTheDeclaration) {
  BadCells forward;
  BadCells backward;
  forward.Add(BadCells::PlaceOf(0), 1, [] { return Told("a", "line 3"); });
  forward.Add(BadCells::PlaceOf(1), 0, [] { return Told("b", "line 4"); });
  forward.Add(BadCells::PlaceOf(0), 1, [] { return Told("again", "line 5"); });
  backward.Add(BadCells::PlaceOf(1), 0, [] { return Told("b", "line 1"); });
  backward.Add(BadCells::PlaceOf(0), 1, [] { return Told("a", "line 2"); });
  std::string first;
  std::string second;
  try {
    forward.Refuse("t.csv");
  } catch (const DataError& error) {
    first = error.what();
    EXPECT_EQ(error.detail(), "a: line 3; b: line 4");
  }
  try {
    backward.Refuse("t.csv");
  } catch (const DataError& error) {
    second = error.what();
  }
  EXPECT_EQ(first, second);
  EXPECT_THAT(first, HasSubstr("'t.csv' does not keep to what was declared: a; b. "));
}

TEST(BadCells, OneKindIsToldByItsOwnSentenceAndNoneIsNoError) {
  BadCells bad;
  bad.Refuse("t.csv");
  EXPECT_TRUE(bad.empty());
  bad.Add(BadCells::kRow, 0, [] { return Told("a", "line 3"); });
  EXPECT_EQ(SentenceOf([&] { bad.Refuse("t.csv"); }), "only a. (line 3)");
}

TEST(BadCells, ALongListEnds) {
  BadCells bad;
  for (std::size_t i = 0; i < 200; ++i) {
    bad.Add(BadCells::PlaceOf(i), 0, [i] { return Told("column" + std::to_string(i) + "!", "x"); });
  }
  const std::string sentence = SentenceOf([&] { bad.Refuse("t.csv"); });
  EXPECT_THAT(sentence, HasSubstr("column29!; and more."));
  EXPECT_THAT(sentence, Not(HasSubstr("column30!")));
}

}  // namespace
}  // namespace sordino
