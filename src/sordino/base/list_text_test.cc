#include "sordino/base/list_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "sordino/base/error.h"

namespace sordino {
namespace {

using ::testing::ElementsAre;

TEST(SplitList, TrimsValuesAndTakesQuotesWhereAValueStartsWithThem) {
  EXPECT_THAT(SplitList("Bern,Basel"), ElementsAre("Bern", "Basel"));
  EXPECT_THAT(SplitList(" Bern ,\tBasel"), ElementsAre("Bern", "Basel"));
  EXPECT_THAT(SplitList("<=50K,>50K"), ElementsAre("<=50K", ">50K"));
  EXPECT_THAT(SplitList(R"("Biel, Bienne" , Basel)"), ElementsAre("Biel, Bienne", "Basel"));
  EXPECT_THAT(SplitList(R"("5"" pipe",6" pipe)"), ElementsAre("5\" pipe", "6\" pipe"));
  EXPECT_THAT(SplitList(R"(a|"b|c")", '|'), ElementsAre("a", "b|c"));
  EXPECT_THAT(SplitList(R"(a,"")"), ElementsAre("a", ""));
  EXPECT_THAT(SplitList(R"(" a ")"), ElementsAre("a"));
}

TEST(SplitList, RefusesWhatCanBeReadInTwoWays) {
  for (const char* text : {"", ",", "a,", ",a", "a,,b", "a, ,b", "\"a", "\"a\"b", "a,\"b\" c,d"}) {
    EXPECT_THROW(SplitList(text), Error) << text;
  }
}

TEST(SplitName, EndsAtTheFirstSeparatorOutsideOfQuotes) {
  const auto income = SplitName("income=<=50K,>50K", '=');
  ASSERT_TRUE(income);
  EXPECT_EQ(income->first, "income");
  EXPECT_EQ(income->second, "<=50K,>50K");
  const auto quoted = SplitName(R"("a=b"=1,2)", '=');
  ASSERT_TRUE(quoted);
  EXPECT_EQ(quoted->first, "a=b");
  EXPECT_EQ(quoted->second, "1,2");
  EXPECT_FALSE(SplitName("0,120", '='));
  EXPECT_FALSE(SplitName(R"("<=50K")", '='));
  EXPECT_FALSE(SplitName(R"("<=50K",>=50K)", '='));
  EXPECT_FALSE(SplitName(R"("<=50K)", '='));
}

// Every list of values is read back as it was, whatever is in them but blanks at their ends.
TEST(ListValue, IsReadBackAsItWas) {
  std::mt19937 random(7);
  constexpr std::string_view kLetters = "ab,|:=\"<' ";
  for (int trial = 0; trial < 2000; ++trial) {
    for (const char separator : {',', '|'}) {
      std::vector<std::string> values(1 + random() % 4);
      std::string text;
      for (std::string& value : values) {
        for (auto i = random() % 6; i > 0; --i) value += kLetters[random() % kLetters.size()];
        value = Trimmed(value);
        if (!text.empty()) text += separator;
        text += ListValue(value, std::string(1, separator));
      }
      EXPECT_EQ(SplitList(text, separator), values) << text;
    }
  }
}

}  // namespace
}  // namespace sordino
