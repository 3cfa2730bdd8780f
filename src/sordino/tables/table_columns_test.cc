#include "sordino/tables/table_columns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sordino/base/error.h"

namespace sordino {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;

std::string Complaint(const std::vector<std::string>& columns) {
  try {
    ParseColumns(columns);
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), EndsWith("."));
    return error.what();
  }
  return "";
}

TEST(ParseColumns, TakesNamesAndValuesInQuotes) {
  const std::vector<TableColumn> columns =
      ParseColumns({R"("a:b":numeric:-1:2.5)", R"(income:label:<=50K|>50K)",
                    R"(city:categorical:"Biel|Bienne"| Bern |"")", "at:categorical:10:30|11:00"});
  EXPECT_EQ(columns[0].name, "a:b");
  EXPECT_EQ(columns[0].low, -1);
  EXPECT_EQ(columns[0].high, 2.5);
  EXPECT_THAT(columns[1].values, ElementsAre("<=50K", ">50K"));
  EXPECT_THAT(columns[2].values, ElementsAre("Biel|Bienne", "Bern", ""));
  EXPECT_THAT(columns[3].values, ElementsAre("10:30", "11:00"));
}

TEST(ParseColumns, AValueMayHaveSeveralSpellings) {
  const std::vector<TableColumn> columns = ParseColumns(
      {R"(income:label:<=50K~"<=50K."|">50K"~">50K|50K"~"a~b")", R"(city:categorical:"a~b"|c)"});
  const TableColumn& income = columns[0];
  EXPECT_THAT(income.values, ElementsAre("<=50K", ">50K"));
  EXPECT_EQ(income.ValueOf("<=50K."), 0);
  EXPECT_EQ(income.ValueOf(">50K"), 1);
  EXPECT_EQ(income.ValueOf(">50K|50K"), 1);
  EXPECT_EQ(income.ValueOf("a~b"), 1);
  EXPECT_EQ(income.ValueOf("a"), 2);
  EXPECT_THAT(columns[1].values, ElementsAre("a~b", "c"));
  for (const TableColumn& column : columns) {
    EXPECT_EQ(ColumnText(ParseColumns({ColumnText(column)})[0]), ColumnText(column));
  }
  EXPECT_THAT(Complaint({"sick:label:no~n|yes~n"}), HasSubstr("different values"));
  EXPECT_THAT(Complaint({"sick:label:no~|yes"}), HasSubstr("empty"));
}

TEST(ParseColumns, ATargetHasBoundsAndStandsInThePlaceOfALabel) {
  const TableColumn column = ParseColumns({"cost:target:0:5000"})[0];
  EXPECT_EQ(column.role, ColumnRole::kTarget);
  EXPECT_EQ(column.high, 5000);
  EXPECT_EQ(column.Features(), 0);
  EXPECT_EQ(ColumnText(column), "cost:target:0:5000");
  EXPECT_THAT(Complaint({"cost:target:5:1"}), HasSubstr("cost:target:0:5000"));
  EXPECT_THAT(Complaint({"cost:target:0:1", "sick:label:no|yes"}), HasSubstr("at most one label"));
}

TEST(ParseColumns, MistakesGetOneSentence) {
  EXPECT_EQ(Complaint({"age:numeric:0:120", "sick:label:no|yes", "id:user"}), "");
  for (const char* bad : {"age", "age:", "age:number:0:1", ":numeric:0:1", "id:user:x", ""}) {
    EXPECT_THAT(Complaint({bad}), HasSubstr("cannot be read")) << bad;
  }
  for (const char* bad :
       {"age:numeric", "age:numeric:1", "age:numeric:2:1", "age:numeric:1:1", "age:numeric:a:b",
        "age:numeric:0:inf", "age:numeric:-1e308:1e308", "age:numeric:0:1:2"}) {
    EXPECT_THAT(Complaint({bad}), HasSubstr("needs two bounds")) << bad;
  }
  for (const char* bad : {"c:categorical", "c:categorical:a", "c:categorical:a| a"}) {
    EXPECT_THAT(Complaint({"x:numeric:0:1", bad}), HasSubstr("two different values")) << bad;
  }
  EXPECT_THAT(Complaint({"c:label:a|"}), HasSubstr("a value that is empty"));
  EXPECT_THAT(Complaint({"x:numeric:0:1", "y:label:a|*"}), HasSubstr("no class for the rest"));
  EXPECT_THAT(Complaint({"x:numeric:0:1", "x:numeric:0:2"}), HasSubstr("declared twice"));
  EXPECT_THAT(Complaint({"x:numeric:0:1", "y:label:a|b", "z:label:a|b"}), HasSubstr("2 labels"));
  EXPECT_THAT(Complaint({"x:numeric:0:1", "y:user", "z:user"}), HasSubstr("2 users"));
}

TEST(ColumnText, IsReadBackToTheSameColumn) {
  for (const char* const text :
       {"age:numeric:0:120", "x:numeric:-0.1:1e+300", R"("a:b":user)", R"("a""b":user)",
        R"(c:categorical:"a|b"|""|"""q"|5" pipe|*)", "income:label:<=50K|>50K"}) {
    const std::string again = ColumnText(ParseColumns({text})[0]);
    EXPECT_EQ(ColumnText(ParseColumns({again})[0]), again);
    const TableColumn first = ParseColumns({text})[0];
    const TableColumn second = ParseColumns({again})[0];
    EXPECT_EQ(first.name, second.name) << text;
    EXPECT_EQ(first.role, second.role) << text;
    EXPECT_EQ(first.low, second.low) << text;
    EXPECT_EQ(first.high, second.high) << text;
    EXPECT_EQ(first.values, second.values) << text;
  }
}

TEST(TableColumns, TextIsHashedIntoADeclaredNumberOfFeatures) {
  const std::vector<TableColumn> columns = ParseColumns({"note:text:1024", "\"a:b\":text:2"});
  EXPECT_EQ(columns[0].role, ColumnRole::kText);
  EXPECT_EQ(columns[0].Features(), 1024);
  EXPECT_EQ(columns[1].name, "a:b");
  for (const TableColumn& column : columns) {
    EXPECT_EQ(ColumnText(ParseColumns({ColumnText(column)})[0]), ColumnText(column));
  }
  for (const char* wrong : {"note:text", "note:text:", "note:text:1", "note:text:65537",
                            "note:text:2.5", "note:text:x"}) {
    EXPECT_THROW(ParseColumns({wrong}), Error) << wrong;
  }
}

}  // namespace
}  // namespace sordino
