#include "sordino/tables/table_schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sordino/base/error.h"
#include "sordino/base/testing/test_folder.h"

namespace sordino {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kCensus = R"(
[table]
header = false
delimiter = "tab"
missing = ["?", ""]
rows-per-user = 3

[[column]]
name = "age"
kind = "numeric"
low = 17
high = 90.5

[[column]]
name = "fnlwgt"
kind = "ignored"

[[column]]
name = "income"
kind = "label"
values = [" <=50K", ">50K", "a, \"b\""]

[[column]]
name = "who"
kind = "user"
)";

std::string Complaint(const std::string& text) {
  try {
    ParseSchema(text, "schema.toml");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(ParseSchema, AListInsideValuesGivesTheSpellingsOfOneValue) {
  const TableSchema schema = ParseSchema(
      "[[column]]\nname = 'income'\nkind = 'label'\nvalues = [['<=50K', '<=50K.'], '>50K']\n"
      "[[column]]\nname = 'cost'\nkind = 'ignored'\n",
      "census.toml");
  const TableColumn* const income = schema.Find("income");
  ASSERT_NE(income, nullptr);
  EXPECT_EQ(income->values.size(), 2U);
  EXPECT_EQ(income->ValueOf("<=50K."), 0U);
  EXPECT_EQ(income->ValueOf(">50K"), 1U);
  const TableSchema target =
      ParseSchema("[[column]]\nname = 'cost'\nkind = 'target'\nlow = 0\nhigh = 10\n", "cost.toml");
  EXPECT_EQ(target.Find("cost")->role, ColumnRole::kTarget);
}

TEST(TableSchema, DeclaresLayoutAndColumns) {
  const TableSchema schema = ParseSchema(kCensus, "schema.toml");
  EXPECT_EQ(schema.header, false);
  EXPECT_EQ(schema.delimiter, '\t');
  EXPECT_THAT(schema.missing, ElementsAre("?", ""));
  EXPECT_EQ(schema.rows_per_user, 3);
  ASSERT_EQ(schema.columns.size(), 3U);
  EXPECT_EQ(schema.columns[0].low, 17);
  EXPECT_EQ(schema.columns[0].high, 90.5);
  EXPECT_THAT(schema.columns[1].values, ElementsAre("<=50K", ">50K", "a, \"b\""));
  EXPECT_EQ(schema.Find("who")->role, ColumnRole::kUser);
  EXPECT_EQ(schema.Find("fnlwgt"), nullptr);
  const TableSchema bare = ParseSchema("[[column]]\nname = 'a'\nkind = 'user'\n", "bare");
  EXPECT_FALSE(bare.header || bare.delimiter || bare.rows_per_user != 0);
}

TEST(TableSchema, MistakesNameTheFileTheLineAndWhatIsAllowed) {
  const auto column = [](const std::string& rest) {
    return Complaint("[[column]]\nname = 'age'\n" + rest);
  };
  EXPECT_THAT(column("kind = 'numerc'"),
              AllOf(HasSubstr("schema.toml, line 3"), HasSubstr("did you mean 'numeric'"),
                    HasSubstr("ignored")));
  EXPECT_THAT(column("kind = 'numeric'\nlow = 0"), HasSubstr("needs low and high"));
  EXPECT_THAT(column("kind = 'numeric'\nlow = 2\nhigh = 1"), HasSubstr("needs two bounds"));
  EXPECT_THAT(column("kind = 'numeric'\nlow = 2\nhigh = inf"), HasSubstr("finite number"));
  EXPECT_THAT(column("kind = 'label'"), HasSubstr("needs values"));
  EXPECT_THAT(column("kind = 'label'\nvalues = [['a'], []]"), HasSubstr("is empty"));
  EXPECT_THAT(column("kind = 'target'"), HasSubstr("needs low and high"));
  EXPECT_THAT(column("kind = 'label'\nvalues = 'a'"), HasSubstr("list of texts"));
  EXPECT_THAT(column("kind = 'label'\nvalues = ['a', 1]"), HasSubstr("text in quotes"));
  EXPECT_THAT(column("kind = 'label'\nvalues = ['a', ' a']"), HasSubstr("two different values"));
  EXPECT_THAT(column("kind = 'user'\nlow = 1"), HasSubstr("neither"));
  EXPECT_THAT(column("kinds = 'user'"), HasSubstr("did you mean 'kind'"));
  EXPECT_THAT(column(""), HasSubstr("needs a name and a kind"));
  EXPECT_THAT(column("kind = 'user'\n[[column]]\nname = 'age'\nkind = 'user'"),
              HasSubstr("declared twice"));
  EXPECT_THAT(Complaint(""), HasSubstr("no columns"));
  EXPECT_THAT(Complaint("column = 3"), HasSubstr("no columns"));
  EXPECT_THAT(Complaint("tabel = 3"), HasSubstr("did you mean 'table'"));
  EXPECT_THAT(Complaint("table = 3"), HasSubstr("[table]"));
  EXPECT_THAT(Complaint("[table]\nheader = 1"), HasSubstr("true or false"));
  EXPECT_THAT(Complaint("[table]\ndelimiter = 'ab'"), HasSubstr("one character"));
  EXPECT_THAT(Complaint("[table]\nencoding = 'utf8'"), HasSubstr("did you mean 'utf-8'?"));
  EXPECT_THAT(Complaint("[table]\nrows-per-user = 0"), HasSubstr("from 1"));
  EXPECT_THAT(Complaint("[table\n"), HasSubstr("not TOML"));
  // A table for each of a million names would overflow the stack when they are freed.
  std::string deep = "[";
  for (int i = 0; i < 1'000'000; ++i) deep += "a.";
  EXPECT_THAT(Complaint(deep + "a]\n"),
              HasSubstr("schema.toml, line 1: keys and brackets are nested"));
  const TestFolder folder;
  EXPECT_THROW(ReadSchema(folder / "none.toml"), Error);
}

TEST(TableSchema, RulesForCellsHoldForTheTableOrAColumn) {
  const TableSchema schema = ParseSchema(R"(
[table]
quote = "'"
decimal = ","
not-a-number = "missing"

[[column]]
name = "weight"
kind = "numeric"
low = 0
high = 300
unit = { kg = 1, lb = 0.4536 }

[[column]]
name = "crp"
kind = "numeric"
low = 0
high = 500
decimal = "."
censored = "half"

[[column]]
name = "born"
kind = "date"
low = 1920-01-01
high = "2020-12-31"
format = "DD.MM.YYYY"

[[column]]
name = "smoker"
kind = "boolean"
values = ["nein", "ja"]

[[column]]
name = "cost"
kind = "target"
low = 0
high = 10
)",
                                         "rules.toml");
  EXPECT_EQ(schema.quote, '\'');
  std::vector<std::string> texts;
  for (const TableColumn& column : schema.columns) texts.push_back(ColumnText(column));
  EXPECT_THAT(
      texts,
      ElementsAre("weight:numeric:0:300:decimal=,:unit=kg:unit=lb*0.4536:not-a-number=missing",
                  "crp:numeric:0:500:censored=half:not-a-number=missing",
                  "born:date:1920-01-01:2020-12-31:format=DD.MM.YYYY:not-a-number=missing",
                  "smoker:boolean:nein|ja:not-a-number=missing", "cost:target:0:10:decimal=,"));
  const auto column = [](const std::string& rest) {
    return Complaint("[[column]]\nname = 'x'\n" + rest);
  };
  EXPECT_THAT(column("kind = 'date'\nlow = 0\nhigh = 1"), HasSubstr("a date such as 2026-02-28"));
  EXPECT_THAT(column("kind = 'boolean'\nlow = 0\nhigh = 1"), HasSubstr("neither low nor high"));
  EXPECT_THAT(column("kind = 'label'\nvalues = ['a', 'b']\nunit = 'kg'"), HasSubstr("has no unit"));
  EXPECT_THAT(column("kind = 'numeric'\nlow = 0\nhigh = 1\nunit = { kg = 0 }"),
              HasSubstr("line 6: the unit"));
  EXPECT_THAT(Complaint("[table]\nquote = '`'"), HasSubstr("the quote is"));
}

// Rules of [table] concern the cells of numbers. A run writes each column down by ColumnText and
// reads it back, so no kind may carry a rule that its text cannot.
TEST(TableSchema, RulesOfTheTableLeaveColumnsWithoutNumbersAlone) {
  const TableSchema schema = ParseSchema(R"(
[table]
decimal = ","
thousands = "."
censored = "half"
not-a-number = "missing"

[[column]]
name = "weight"
kind = "numeric"
low = 0
high = 300

[[column]]
name = "dose"
kind = "numeric"
low = 0
high = 1
decimal = "."
thousands = "none"

[[column]]
name = "city"
kind = "categorical"
values = ["3,5", "*"]

[[column]]
name = "sick"
kind = "label"
values = ["no", "yes"]

[[column]]
name = "born"
kind = "date"
low = 1920-01-01
high = 2020-12-31

[[column]]
name = "smoker"
kind = "boolean"

[[column]]
name = "note"
kind = "text"
buckets = 64

[[column]]
name = "who"
kind = "user"
)",
                                         "rules.toml");
  std::vector<std::string> texts;
  for (const TableColumn& column : schema.columns) texts.push_back(ColumnText(column));
  EXPECT_THAT(
      texts,
      ElementsAre("weight:numeric:0:300:decimal=,:thousands=.:censored=half:"
                  "not-a-number=missing",
                  "dose:numeric:0:1:censored=half:not-a-number=missing", "city:categorical:3,5|*",
                  "sick:label:no|yes", "born:date:1920-01-01:2020-12-31:not-a-number=missing",
                  "smoker:boolean:not-a-number=missing", "note:text:64", "who:user"));
  const std::vector<TableColumn> again = ParseColumns(texts);
  ASSERT_EQ(again.size(), schema.columns.size());
  for (std::size_t i = 0; i < again.size(); ++i) {
    EXPECT_EQ(again[i].values, schema.columns[i].values) << texts[i];
    EXPECT_EQ(again[i].cells, schema.columns[i].cells) << texts[i];
  }
}

TEST(TableSchema, PatternsStandForTheColumnsOfATableThatNoOtherLineNames) {
  const TableSchema schema = ParseSchema(R"(
[[column]]
names = "lab_*"
kind = "numeric"
low = 0
high = 500

[[column]]
names = ["height", "*_note", "lab_id"]
kind = "ignored"

[[column]]
name = "lab_sex"
kind = "categorical"
values = ["f", "m"]

[[column]]
name = "a*"
kind = "boolean"
)",
                                         "patterns.toml");
  const std::vector<std::string> names = {"lab_2",      "lab_id", "height", "lab_sex", "lab_",
                                          "lab_a_note", "x",      "lab_1",  "a*"};
  std::vector<std::string> found;
  for (const TableColumn& column : schema.ColumnsOf(names)) found.push_back(column.name);
  // Named ones first; then in the order of the table.
  EXPECT_THAT(found, ElementsAre("lab_sex", "a*", "lab_2", "lab_", "lab_1"));
  EXPECT_EQ(schema.Find("lab_7")->high, 500);
  EXPECT_EQ(schema.Find("lab_id"), nullptr);
  EXPECT_EQ(schema.Find("lab_b_note"), nullptr);
  EXPECT_EQ(schema.Find("aa"), nullptr);  // `name` is no pattern
  try {
    schema.ColumnsOf(std::vector<std::string>{"x"});
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("like 'lab_*'"));
  }
  EXPECT_THAT(Complaint("[[column]]\nnames = '**'\nkind = 'boolean'"),
              HasSubstr("more than stars"));
  EXPECT_THAT(Complaint("[[column]]\nnames = 'y*'\nkind = 'label'\nvalues = ['a', 'b']"),
              HasSubstr("cannot be that of a label"));
  EXPECT_THAT(Complaint("[[column]]\nname = 'a'\nnames = 'y*'\nkind = 'user'"),
              HasSubstr("names instead"));
}

TEST(TableSchema, TextHasBuckets) {
  const TableSchema schema =
      ParseSchema("[[column]]\nname = \"note\"\nkind = \"text\"\nbuckets = 64\n", "s.toml");
  EXPECT_EQ(ColumnText(schema.columns[0]), "note:text:64");
  EXPECT_THROW(ParseSchema("[[column]]\nname = \"note\"\nkind = \"text\"\n", "s.toml"), Error);
  EXPECT_THROW(ParseSchema("[[column]]\nname = \"id\"\nkind = \"user\"\nbuckets = 64\n", "s.toml"),
               Error);
}

}  // namespace
}  // namespace sordino
