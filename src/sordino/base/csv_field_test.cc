#include "sordino/base/csv_field.h"

#include <gtest/gtest.h>

#include <string>

namespace sordino {
namespace {

TEST(CsvField, QuotesWhatWouldEndACell) {
  EXPECT_EQ(CsvField("plain"), "plain");
  EXPECT_EQ(CsvField(""), "");
  EXPECT_EQ(CsvField("a,b"), "\"a,b\"");
  EXPECT_EQ(CsvField("say \"hi\""), "\"say \"\"hi\"\"\"");
}

TEST(CsvField, MarksTextThatASpreadsheetWouldCompute) {
  EXPECT_EQ(CsvField("=HYPERLINK(\"x\")"), "\"'=HYPERLINK(\"\"x\"\")\"");
  for (const std::string text : {"=1+1", "+1+1", "-1+1", "@SUM(A1)", "\t=1", "\r=1", " =1", "--1",
                                 "+-1", "-", "=", "-1e5x", "- 1"}) {
    EXPECT_EQ(CsvField(text), "\"'" + text + "\"");
  }
}

TEST(CsvField, WritesNumbersAsTheyAre) {
  for (const std::string text : {"-1", "+1", "-1.5e-300", "-1e-999", "-inf", "1=1", "a@b", "a-b"}) {
    EXPECT_EQ(CsvField(text), text);
  }
}

}  // namespace
}  // namespace sordino
