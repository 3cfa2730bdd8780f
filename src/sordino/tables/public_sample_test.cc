#include "sordino/tables/public_sample.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "sordino/tables/table_schema.h"
#include "sordino/tables/testing/reader_test_support.h"

namespace sordino {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A schema from a sample, which is one that can be read.
class PublicSampleTest : public ::testing::Test {
 protected:
  std::string TextOf(const std::string& sample, const std::string& predicted = "",
                     const std::string& codebook = "") {
    PublicSources sources{.predicted = predicted};
    if (!sample.empty()) sources.sample = Write("sample.csv", sample);
    if (!codebook.empty()) sources.codebook = Write("codebook.csv", codebook);
    return SchemaFromPublic(sources).text;
  }
  TableSchema SchemaOf(const std::string& sample, const std::string& predicted = "",
                       const std::string& codebook = "") {
    return ParseSchema(TextOf(sample, predicted, codebook), "schema.toml");
  }
  std::string ColumnOf(const std::string& sample, const std::string& name = "x") {
    const TableSchema schema = SchemaOf(sample);
    const TableColumn* const column = schema.Find(name);
    return column == nullptr ? "ignored" : ColumnText(*column);
  }

 private:
  std::string Write(const char* name, const std::string& text) {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return (folder_ / name).string();
  }
  TestFolder folder_;
};

std::string Lines(const std::vector<std::string>& cells) {
  std::string text = "x;z\n";
  for (const std::string& cell : cells) text += cell + ";q\n";
  return text;
}

TEST_F(PublicSampleTest, NumbersHaveBoundsThatAreRoundedOutward) {
  EXPECT_EQ(ColumnOf(Lines({"17", "90", "33"})), "x:numeric:17:90");
  EXPECT_EQ(ColumnOf(Lines({"1", "99999"})), "x:numeric:0:100000");
  EXPECT_EQ(ColumnOf(Lines({"0.12", "0.587"})), "x:numeric:0.12:0.59");
  EXPECT_EQ(ColumnOf(Lines({"-3", "4.25"})), "x:numeric:-3:4.3");
  EXPECT_EQ(ColumnOf(Lines({"1,5", "2,25", "10,5"})), "x:numeric:1.5:10.5:decimal=,");
  EXPECT_EQ(ColumnOf(Lines({"1.234,5", "2,25"})), "x:numeric:0:1300:decimal=,:thousands=.");
  EXPECT_EQ(ColumnOf(Lines({"72 kg", "80 kg", "90"})), "x:numeric:72:90:unit=kg");
  EXPECT_EQ(ColumnOf(Lines({"CHF 72", "CHF 80"})), "x:numeric:72:80:unit=CHF");
  EXPECT_EQ(ColumnOf(Lines({"<0.5", "3", "7.5"})), "x:numeric:0.5:7.5:censored=limit");
  EXPECT_EQ(ColumnOf(Lines({"1", "2", "3", "4", "5", "6", "refused"})),
            "x:numeric:1:6:not-a-number=missing");
}

TEST_F(PublicSampleTest, WhatAPointOrACommaMeansIsTakenFromOtherColumnsOrAsked) {
  EXPECT_EQ(ColumnOf(Lines({"1,234", "5,678"})), "ignored");
  EXPECT_THAT(TextOf(Lines({"1,234", "5,678"})), HasSubstr("is 1,234 a thousand?"));
  EXPECT_EQ(ColumnOf("x;z\n1,234;0,5\n5,678;1,75\n"), "x:numeric:1.2:5.7:decimal=,");
  EXPECT_EQ(ColumnOf("x;z\n1,234;0.5\n5,678;1.75\n"), "x:numeric:1200:5700:thousands=,");
  EXPECT_EQ(ColumnOf("x;z\n1.234;0,5\n5.678;1,75\n"), "x:numeric:1200:5700:decimal=,:thousands=.");
}

TEST_F(PublicSampleTest, DatesAndBooleansAreFoundAndDoubtfulDatesAreAsked) {
  EXPECT_EQ(ColumnOf(Lines({"2001-05-06", "1999-12-31"})), "x:date:1999-01-01:2001-12-31");
  EXPECT_EQ(ColumnOf(Lines({"31.1.2001", "6.12.1999"})),
            "x:date:1999-01-01:2001-12-31:format=DD.MM.YYYY");
  EXPECT_EQ(ColumnOf(Lines({"01/31/2001", "02/03/2002"})),
            "x:date:2001-01-01:2002-12-31:format=MM/DD/YYYY");
  EXPECT_EQ(ColumnOf(Lines({"01/03/2001", "02/03/2002"})), "ignored");
  EXPECT_THAT(TextOf(Lines({"01/03/2001", "02/03/2002"})),
              HasSubstr("format = \"DD/MM/YYYY\" or \"MM/DD/YYYY\""));
  EXPECT_EQ(ColumnOf(Lines({"Yes", "no", "NA"})), "x:boolean");
  EXPECT_EQ(ColumnOf(Lines({"0", "1", "1"})), "x:numeric:0:1");
}

TEST_F(PublicSampleTest, TextWithFewValuesIsACategoryWithARest) {
  EXPECT_EQ(ColumnOf(Lines({"Bern", "Basel", "Bern", "?"})), "x:categorical:Basel|Bern|*");
  std::vector<std::string> names;
  for (int i = 0; i < 60; ++i) names.push_back("name" + std::to_string(i));
  EXPECT_EQ(ColumnOf(Lines(names)), "ignored");
  EXPECT_THAT(TextOf("patient_id,x\n17,1\n18,2\n"), HasSubstr("kind = \"user\""));
  const TableSchema schema = SchemaOf(Lines({"1", "?", "NA", "2"}));
  EXPECT_THAT(schema.missing, ElementsAre("?", "NA"));
  EXPECT_EQ(schema.delimiter, ';');
  EXPECT_EQ(schema.header, true);
}

TEST_F(PublicSampleTest, TheColumnToPredictIsALabelOrATarget) {
  const std::string sample = "y,x,cost\nno,1,10.5\nyes,2,20\nno,3,30\n";
  EXPECT_EQ(ColumnText(*SchemaOf(sample, "y").Find("y")), "y:label:no|yes");
  EXPECT_EQ(ColumnText(*SchemaOf(sample, "cost").Find("cost")), "cost:target:10:30");
  EXPECT_EQ(ColumnText(*SchemaOf("y,x\n0,1\n1,2\n", "y").Find("y")), "y:label:0|1");
  EXPECT_EQ(ColumnText(*SchemaOf("y,x\n<=50K,1\n>50K,2\n<=50K,3\n", "y").Find("y")),
            "y:label:<=50K|>50K");
  EXPECT_THAT(SentenceOf([&] { TextOf(sample, "z"); }), HasSubstr("no column 'z'"));
}

TEST_F(PublicSampleTest, ACodebookWinsOverTheSample) {
  const std::string codebook =
      "Variable;Type;Min;Max;Categories;Unit;Missing\n"
      "age;integer;0;120;;years;-9\n"
      "city;factor;;;Bern|Biel, Bienne;;\n"
      "sex;nominal;;;1=male|2=female;;\n"
      "note;text;;;;;\n"
      "dose;float;;;;mg;\n";
  const TableSchema schema = SchemaOf("age,extra\n17,1\n90,2\n", "", codebook);
  EXPECT_EQ(ColumnText(*schema.Find("age")), "age:numeric:0:120:unit=years");
  EXPECT_EQ(ColumnText(*schema.Find("city")), "city:categorical:Bern|Biel, Bienne");
  EXPECT_EQ(ColumnText(*schema.Find("sex")), "sex:categorical:1|2");
  EXPECT_EQ(ColumnText(*schema.Find("extra")), "extra:numeric:1:2");
  EXPECT_EQ(schema.Find("note"), nullptr);
  EXPECT_EQ(schema.Find("dose"), nullptr);
  EXPECT_THAT(schema.missing, ElementsAre("-9"));
  EXPECT_THAT(TextOf("", "", codebook), AllOf(HasSubstr("without bounds"), HasSubstr("codebook")));
}

// Bounds stand in the codebook; how cells are written, in the sample alone.
TEST_F(PublicSampleTest, ACodebookLeavesWhatItCannotSayToTheSample) {
  const std::string codebook =
      "name;kind;low;high;unit\n"
      "weight;numeric;0;300;\n"
      "crp;numeric;0;500;mg/l\n"
      "born;date;1900-01-01;2020-12-31;\n"
      "sum;numeric;0;9000;\n"
      "city;categorical;;;\n";
  const std::string sample =
      "weight;crp;born;city\n"
      "70,5 kg;<0,5;31.1.2001;A\n"
      "80 kg;12,25;6.12.1999;B\n"
      "90 kg;3,75;6.12.1998;A\n";
  const TableSchema schema = SchemaOf(sample, "", codebook);
  EXPECT_EQ(ColumnText(*schema.Find("weight")), "weight:numeric:0:300:decimal=,:unit=kg");
  EXPECT_EQ(ColumnText(*schema.Find("crp")),
            "crp:numeric:0:500:decimal=,:unit=mg/l:censored=limit");
  EXPECT_EQ(ColumnText(*schema.Find("born")), "born:date:1900-01-01:2020-12-31:format=DD.MM.YYYY");
  EXPECT_EQ(ColumnText(*schema.Find("city")), "city:categorical:A|B|*");
  // What the sample leaves open stays asked.
  EXPECT_THAT(TextOf("sum\n\"1,234\"\n\"5,678\"\n", "", codebook),
              HasSubstr("is 1,234 a thousand?"));
}

}  // namespace
}  // namespace sordino
