#include "sordino/tables/cell_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "sordino/base/error.h"
#include "sordino/tables/table_columns.h"

namespace sordino {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// NaN where the cell is a mistake, infinity where it is missing.
double Read(const CellRules& rules, std::string_view cell) {
  double number = 0;
  const NumberError error = ReadCell(rules, cell, &number);
  if (error == NumberError::kMissing) return std::numeric_limits<double>::infinity();
  return error == NumberError::kNone ? number : std::nan("");
}

CellRules Rules(const std::vector<std::pair<std::string, std::string>>& set,
                CellForm form = CellForm::kNumber) {
  CellRules rules{.form = form};
  for (const auto& [name, value] : set) SetCellRule(rules, name, value);
  CheckCellRules(rules);
  return rules;
}

std::string RuleComplaint(const std::string& column) {
  try {
    ParseColumns({column});
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(CellRules, ADecimalCommaAndThousandsAreReadAsDeclaredAndNoOtherWay) {
  const CellRules comma = Rules({{"decimal", ","}});
  EXPECT_EQ(Read(comma, "3,5"), 3.5);
  EXPECT_EQ(Read(comma, " -0,25 "), -0.25);
  EXPECT_EQ(Read(comma, "7"), 7);
  EXPECT_TRUE(std::isnan(Read(comma, "3.5")));
  EXPECT_TRUE(std::isnan(Read(comma, "1,2,3")));
  EXPECT_TRUE(std::isnan(Read({}, "3,5")));
  const CellRules german = Rules({{"decimal", ","}, {"thousands", "."}});
  EXPECT_EQ(Read(german, "1.234.567,5"), 1234567.5);
  EXPECT_EQ(Read(german, "12"), 12);
  EXPECT_TRUE(std::isnan(Read(german, "12.34")));
  EXPECT_TRUE(std::isnan(Read(german, "1234.567")));
  EXPECT_TRUE(std::isnan(Read(german, "1,234.5")));
  EXPECT_EQ(Read(Rules({{"thousands", "'"}}), "1'234.5"), 1234.5);
  EXPECT_EQ(Read(Rules({{"thousands", "blank"}}), "1 234"), 1234);
  EXPECT_EQ(Read(Rules({{"thousands", ","}}), "-1,234.5"), -1234.5);
}

TEST(CellRules, UnitsStandOnEitherSideAndAreConverted) {
  const CellRules mass = Rules({{"unit", "kg"}, {"unit", "g*0.001"}, {"unit", "lb*0.5"}});
  EXPECT_EQ(Read(mass, "72 kg"), 72);
  EXPECT_EQ(Read(mass, "72kg"), 72);
  EXPECT_EQ(Read(mass, "500 g"), 0.5);
  EXPECT_EQ(Read(mass, "10 lb"), 5);
  EXPECT_EQ(Read(mass, "72"), 72);
  EXPECT_TRUE(std::isnan(Read(mass, "72 st")));
  EXPECT_TRUE(std::isnan(Read(mass, "kg")));
  EXPECT_EQ(Read(Rules({{"unit", "CHF"}}), "CHF 5"), 5);
  EXPECT_EQ(Read(Rules({{"unit", "%*0.01"}}), "50 %"), 0.5);
}

TEST(CellRules, CensoredValuesAreTheirLimitOrHalfOfIt) {
  const CellRules limit = Rules({{"censored", "limit"}});
  const CellRules half = Rules({{"censored", "half"}});
  EXPECT_EQ(Read(limit, "<0.5"), 0.5);
  EXPECT_EQ(Read(half, "< 0.5"), 0.25);
  EXPECT_EQ(Read(half, "\u2264 0.5"), 0.25);
  EXPECT_EQ(Read(half, ">=100"), 100);
  EXPECT_EQ(Read(half, "<-2"), -2);
  EXPECT_EQ(Read(half, "0.5"), 0.5);
  EXPECT_TRUE(std::isnan(Read({}, "<0.5")));
}

TEST(CellRules, TextIsMissingWhereThatIsDeclared) {
  const CellRules rules = Rules({{"not-a-number", "missing"}});
  for (const char* const cell : {"refused", "", "nan", "1e999"}) {
    EXPECT_TRUE(std::isinf(Read(rules, cell))) << cell;
  }
  EXPECT_EQ(Read(rules, "4"), 4);
  CellRules dates = Rules({{"not-a-number", "missing"}}, CellForm::kDate);
  EXPECT_TRUE(std::isinf(Read(dates, "2026-02-30")));
}

TEST(CellRules, DatesAreDaysAndMustBeInTheCalendar) {
  const CellRules iso{.form = CellForm::kDate};
  EXPECT_EQ(Read(iso, "1970-01-01"), 0);
  EXPECT_EQ(Read(iso, "2000-03-01"), 11017);
  EXPECT_EQ(Read(iso, "1969-12-31"), -1);
  for (const char* const cell :
       {"2026-02-29", "2026-13-01", "26-01-01", "2026-01-01x", "01.02.2026"}) {
    EXPECT_TRUE(std::isnan(Read(iso, cell))) << cell;
  }
  const CellRules swiss = Rules({{"format", "DD.MM.YYYY hh:mm"}}, CellForm::kDate);
  EXPECT_EQ(Read(swiss, "2.1.1970 12:00"), 1.5);
  EXPECT_TRUE(std::isnan(Read(swiss, "2.1.1970 24:00")));
  for (const double days : {-719468.0, -1.0, 0.0, 11017.0, 60000.0}) {
    EXPECT_EQ(Read(iso, IsoDate(days)), days);
  }
}

TEST(CellRules, BooleansAreZeroAndOne) {
  const CellRules words{.form = CellForm::kBoolean};
  for (const char* const cell : {"1", "yes", "Y", "TRUE", "t"}) EXPECT_EQ(Read(words, cell), 1);
  for (const char* const cell : {"0", "No", "n", "false", "F"}) EXPECT_EQ(Read(words, cell), 0);
  EXPECT_TRUE(std::isnan(Read(words, "2")));
  const CellRules german{.form = CellForm::kBoolean, .words = {"nein", "ja"}};
  EXPECT_EQ(Read(german, "ja"), 1);
  EXPECT_EQ(Read(german, "nein"), 0);
  EXPECT_TRUE(std::isnan(Read(german, "yes")));
}

TEST(CellRules, AColumnIsReadBackFromItsText) {
  const std::vector<std::string> texts = {
      "weight:numeric:0:300:decimal=,:thousands=.:unit=kg:unit=lb*0.4536:censored=half",
      "price:target:0:10:thousands=blank:unit=CHF",
      "torque:numeric:0:10:unit=N*m*1:unit=N*cm*0.01",
      "crp:numeric:0:500:not-a-number=missing",
      "born:date:1920-01-01:2020-12-31:format=DD.MM.YYYY:not-a-number=missing",
      "seen:date:2020-01-01:2020-12-31:\"format=YYYY-MM-DD hh:mm\"",
      "smoker:boolean",
      "sick:boolean:nein|ja:not-a-number=missing",
      "odd:boolean:\"\"\"a|b\"\"|c\""};
  for (const std::string& text : texts) {
    const TableColumn column = ParseColumns({text}).front();
    EXPECT_EQ(ColumnText(column), text);
    const TableColumn again = ParseColumns({ColumnText(column)}).front();
    EXPECT_EQ(again.cells, column.cells) << text;
    EXPECT_EQ(again.low, column.low);
    EXPECT_EQ(again.high, column.high);
  }
  const TableColumn born = ParseColumns({texts[4]}).front();
  EXPECT_EQ(born.role, ColumnRole::kNumeric);
  EXPECT_EQ(IsoDate(born.low), "1920-01-01");
  EXPECT_THAT(ParseColumns({texts[8]}).front().cells.words, ElementsAre("a|b", "c"));
}

TEST(CellRules, MistakesAreNamed) {
  EXPECT_THAT(RuleComplaint("x:numeric:0:1:decimal=;"), HasSubstr("decimal is ';'"));
  EXPECT_THAT(RuleComplaint("x:numeric:0:1:decimals=,"), HasSubstr("did you mean 'decimal'"));
  EXPECT_THAT(RuleComplaint("x:numeric:0:1:thousands=."), HasSubstr("both '.'"));
  EXPECT_THAT(RuleComplaint("x:numeric:0:1:unit=kg*0"), HasSubstr("factor above 0"));
  EXPECT_THAT(RuleComplaint("x:numeric:0:1:unit=3m"), HasSubstr("begins like a number"));
  EXPECT_THAT(RuleComplaint("x:numeric:0:1:format=YYYY"), HasSubstr("rule of dates"));
  EXPECT_THAT(RuleComplaint("x:numeric:0:1:censored=all"), HasSubstr("limit or half"));
  EXPECT_THAT(RuleComplaint("x:numeric:0:1:not-a-number=zero"), HasSubstr("missing"));
  EXPECT_THAT(RuleComplaint("x:numeric:0:1:comma"), HasSubstr("two bounds"));
  EXPECT_THAT(RuleComplaint("x:boolean:a|b:comma"), HasSubstr("cannot be read"));
  EXPECT_THAT(RuleComplaint("x:target:0:1:not-a-number=missing"), HasSubstr("cannot be missing"));
  EXPECT_THAT(RuleComplaint("x:date:0:1"), HasSubstr("birth:date:1920-01-01"));
  EXPECT_THAT(RuleComplaint("x:date:2000-01-01:2001-01-01:format=MM.DD"), HasSubstr("has no YYYY"));
  EXPECT_THAT(RuleComplaint("x:date:2000-01-01:2001-01-01:unit=kg"), HasSubstr("rule of numbers"));
  EXPECT_THAT(RuleComplaint("x:boolean:ja"), HasSubstr("two different values"));
}

}  // namespace
}  // namespace sordino
