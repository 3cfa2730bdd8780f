#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "sordino/tables/public_sample.h"
#include "sordino/tables/testing/reader_test_support.h"

namespace sordino {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<DraftColumn> ReadBook(const std::string& text, std::vector<std::string>& missing) {
  const TestFolder folder;
  std::ofstream(folder / "book.csv") << text;
  return ReadCodebook((folder / "book.csv").string(), {}, missing);
}

std::string BookComplaint(const std::string& text) {
  std::vector<std::string> missing;
  return SentenceOf([&] { ReadBook(text, missing); });
}

TEST(Codebook, DeclaresKindsBoundsValuesUnitsAndFormats) {
  std::vector<std::string> missing = {"?"};
  const std::vector<DraftColumn> columns = ReadBook(
      "field,kind,low,high,values,unit,format,missing\n"
      "age,numeric,0,120,,,,?|NA\n"
      "born,date,1920-01-01,2020-12-31,,,DD.MM.YYYY,\n"
      "smoker,boolean,,,nein|ja,,,\n"
      "weight,,0,300,,kg,,\n"
      "sick,label,,,\"no,yes\",,,\n"
      "name,string,,,,,,\n",
      missing);
  std::vector<std::string> texts;
  for (const DraftColumn& column : columns) {
    texts.push_back(column.declared ? ColumnText(*column.declared) : "");
  }
  EXPECT_THAT(texts,
              ElementsAre("age:numeric:0:120", "born:date:1920-01-01:2020-12-31:format=DD.MM.YYYY",
                          "smoker:boolean:nein|ja", "weight:numeric:0:300:unit=kg",
                          "sick:label:no|yes", ""));
  EXPECT_THAT(missing, ElementsAre("?", "NA"));
}

TEST(Codebook, BoundsMayHaveADecimalComma) {
  std::vector<std::string> missing;
  const std::vector<DraftColumn> columns =
      ReadBook("name;min;max\nweight;0,5;300,25\nchange;-1,5;2\n", missing);
  EXPECT_EQ(ColumnText(*columns[0].declared), "weight:numeric:0.5:300.25");
  EXPECT_EQ(ColumnText(*columns[1].declared), "change:numeric:-1.5:2");
  EXPECT_THAT(BookComplaint("name;min;max\nweight;0;1,234\n"), HasSubstr("column 'weight'"));
}

TEST(Codebook, MistakesNameTheColumn) {
  EXPECT_THAT(BookComplaint("a,b\nx,numeric\n"), HasSubstr("call it 'name'"));
  EXPECT_THAT(BookComplaint("name,low,high\nage,9,3\n"), HasSubstr("column 'age'"));
  EXPECT_THAT(BookComplaint("name,kind\nage,numerical\n"), HasSubstr("column 'age'"));
}

}  // namespace
}  // namespace sordino
