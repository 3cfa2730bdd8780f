#include "sordino/base/options.h"

#include <gtest/gtest.h>

#include <limits>

#include "sordino/base/error.h"
#include "sordino/base/testing/sample_options.h"

namespace sordino {
namespace {

constexpr OptionSpec kCount{.key = "count",
                            .flag = "--count",
                            .value_name = "N",
                            .help = "How many",
                            .what = "the count",
                            .type = OptionType::kWhole,
                            .low = 1};
constexpr OptionSpec kFile{.key = "file",
                           .flag = "--file",
                           .value_name = "FILE",
                           .help = "Where from",
                           .what = "the file",
                           .type = OptionType::kText,
                           .fallback = std::string_view("none")};

std::string MistakeOf(const OptionValues& values, const OptionSpec& spec) {
  try {
    values.Check(spec);
  } catch (const Error& error) {
    return error.what();
  }
  return "no mistake";
}

TEST(OptionValues, AreWhatWasGivenOrTheFallback) {
  const OptionValues none;
  EXPECT_EQ(none.Number(kMomentum), 0);
  EXPECT_FALSE(none.Switch(kNesterov));
  EXPECT_EQ(none.Text(kFile), "none");
  const OptionValues given{{"momentum", 0.5}, {"nesterov", true}, {"file", "a.txt"}, {"count", 3}};
  EXPECT_EQ(given.Number(kMomentum), 0.5);
  EXPECT_TRUE(given.Switch(kNesterov));
  EXPECT_EQ(given.Text(kFile), "a.txt");
  EXPECT_EQ(given.Whole(kCount), 3);
}

TEST(OptionValues, AWholeNumberIsANumberAndNotTheOtherWayRound) {
  OptionValues values{{"momentum", 0}};
  EXPECT_EQ(MistakeOf(values, kMomentum), "no mistake");
  EXPECT_EQ(values.Number(kMomentum), 0);
  EXPECT_EQ(std::get<std::optional<double>>(values.SlotOf(kMomentum)), 0.0);
  EXPECT_EQ(MistakeOf({{"count", 2.5}}, kCount), "the count must be a whole number.");
  EXPECT_EQ(MistakeOf({{"momentum", "much"}}, kMomentum), "the momentum must be a number.");
  EXPECT_EQ(MistakeOf({{"nesterov", 1}}, kNesterov), "Nesterov's momentum must be true or false.");
  EXPECT_EQ(MistakeOf({{"file", true}}, kFile), "the file must be a text.");
}

TEST(OptionValues, OutsideTheRangeAreAMistakeAtBothEnds) {
  EXPECT_EQ(MistakeOf({{"momentum", 1.0}}, kMomentum),
            "the momentum is 1; it must be at least 0 and less than 1.");
  EXPECT_NE(MistakeOf({{"momentum", -0.1}}, kMomentum), "no mistake");
  EXPECT_NE(MistakeOf({{"momentum", std::numeric_limits<double>::quiet_NaN()}}, kMomentum),
            "no mistake");
  EXPECT_EQ(MistakeOf({{"momentum", 0.0}}, kMomentum), "no mistake");
  EXPECT_NE(MistakeOf({{"count", 0}}, kCount), "no mistake");
  EXPECT_NE(MistakeOf({{"count", std::int64_t{1} << 60}}, kCount), "no mistake");
  EXPECT_EQ(MistakeOf({{"count", 1}}, kCount), "no mistake");
}

TEST(OptionValues, ASlotIsEmptyUntilItIsFilled) {
  OptionValues values;
  OptionValues::Slot& slot = values.SlotOf(kCount);
  EXPECT_FALSE(values.Has("count"));
  EXPECT_TRUE(values.Keys().empty());
  EXPECT_EQ(values, OptionValues());
  slot = std::optional<std::int64_t>(5);
  EXPECT_TRUE(values.Has("count"));
  EXPECT_EQ(values.Whole(kCount), 5);
  EXPECT_EQ(values, (OptionValues{{"count", 5}}));
  values.Remove("count");
  EXPECT_FALSE(values.Has("count"));
}

TEST(OptionValues, KnowTheirFallback) {
  EXPECT_TRUE((OptionValues{{"momentum", 0.0}}).IsFallback(kMomentum));
  EXPECT_TRUE((OptionValues{{"momentum", 0}}).IsFallback(kMomentum));
  EXPECT_FALSE((OptionValues{{"momentum", 0.9}}).IsFallback(kMomentum));
  EXPECT_TRUE((OptionValues{{"nesterov", false}}).IsFallback(kNesterov));
  EXPECT_TRUE((OptionValues{{"file", "none"}}).IsFallback(kFile));
  EXPECT_FALSE((OptionValues{{"count", 1}}).IsFallback(kCount));
}

TEST(OptionText, IsThatOfAFile) {
  EXPECT_EQ(OptionText(0.9), "0.9");
  EXPECT_EQ(OptionText(1e-8), "1e-08");
  EXPECT_EQ(OptionText(std::int64_t{20}), "20");
  EXPECT_EQ(OptionText(true), "true");
  EXPECT_EQ(OptionText({}), "");
}

TEST(OptionsDeath, AnOptionWithoutAValueIsNotRead) {
  EXPECT_DEATH((void)OptionValues().Whole(kCount), "no value of its type");
  EXPECT_DEATH((void)OptionValues({{"momentum", true}}).Number(kMomentum), "no value of its type");
  constexpr OptionSpec kNameless{.key = "x", .flag = "x", .help = "x", .what = "x"};
  EXPECT_DEATH(CheckSpec(kNameless), "lacks its key, flag");
}

TEST(OptionSpec, ItsOwnValuesAreInItsRange) {
  EXPECT_NO_THROW(CheckSpec(kMomentum));
  OptionSpec wrong = kMomentum;
  wrong.recipe = 1.5;
  EXPECT_THROW(CheckSpec(wrong), Error);
}

}  // namespace
}  // namespace sordino
