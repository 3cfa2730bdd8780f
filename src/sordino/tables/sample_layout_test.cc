#include "sordino/tables/sample_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "sordino/tables/testing/reader_test_support.h"

namespace sordino {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

PublicTable ReadText(const std::string& text, const KnownLayout& known = {}) {
  const TestFolder folder;
  std::ofstream(folder / "sample.csv", std::ios::binary) << text;
  return ReadPublicTable((folder / "sample.csv").string(), known);
}

std::string LayoutComplaint(const std::string& text) {
  return SentenceOf([&] { ReadText(text); });
}

TEST(PublicTable, DelimitersQuotesAndHeadersAreFound) {
  const PublicTable comma = ReadText("x,y\n1,\"a, b\"\n2,c\n");
  EXPECT_EQ(comma.layout.delimiter, ',');
  EXPECT_TRUE(comma.layout.header);
  EXPECT_THAT(comma.names, ElementsAre("x", "y"));
  ASSERT_EQ(comma.rows.size(), 2U);
  EXPECT_THAT(comma.rows[0], ElementsAre("1", "a, b"));
  // Decimal commas could separate too, in the rows as well as in a header that has one.
  const PublicTable decimal = ReadText("1,5;2,3\n4,0;0,1\n");
  EXPECT_EQ(decimal.layout.delimiter, ';');
  EXPECT_FALSE(decimal.layout.header);
  EXPECT_THAT(decimal.names, ElementsAre("1", "2"));
  EXPECT_EQ(ReadText("a\tb\n1\t2\n").layout.delimiter, '\t');
  EXPECT_EQ(ReadText("a|b\n1|2\n").layout.delimiter, '|');
  const PublicTable single = ReadText("a;b\n'x;y';1\n'z';2\n");
  EXPECT_EQ(single.layout.quote, '\'');
  EXPECT_THAT(single.rows[0], ElementsAre("x;y", "1"));
  EXPECT_EQ(ReadText("name,n\nO'Brien,1\n'tis,2\n").layout.quote, '"');
  EXPECT_THAT(ReadText("age\n3\n4\n").names, ElementsAre("age"));
}

TEST(PublicTable, EncodingsAreFound) {
  EXPECT_EQ(ReadText("a,b\nZ\xC3\xBCrich,1\n").layout.encoding, Encoding::kUtf8);
  const PublicTable latin = ReadText("a,b\nZ\xFCrich,1\n");
  EXPECT_EQ(latin.layout.encoding, Encoding::kWindows1252);
  EXPECT_EQ(latin.rows[0][0], "Z\xC3\xBCrich");
  EXPECT_EQ(ReadText("a,b\nZ\x81,1\n").layout.encoding, Encoding::kLatin1);
  const std::string wide(
      "\xFF\xFE"
      "a\0,\0b\0\n\0"
      "1\0,\0"
      "2\0\n\0",
      18);
  EXPECT_EQ(ReadText(wide).layout.encoding, Encoding::kUtf16);
}

TEST(PublicTable, WhatItLeavesOpenIsAsked) {
  EXPECT_THAT(LayoutComplaint("a,b;c\nx,y;z\n"), HasSubstr("give its --delimiter"));
  EXPECT_EQ(ReadText("a,b;c\nx,y;z\n", {.delimiter = ';'}).names[0], "a,b");
  EXPECT_THAT(LayoutComplaint("a,b\n1\n1,2,3\n"), HasSubstr("differ in their number of fields"));
  EXPECT_THAT(LayoutComplaint(",age\n0,34\n1,35\n"), HasSubstr("index=False"));
  EXPECT_THAT(LayoutComplaint("a,b\n"), HasSubstr("no rows"));
  EXPECT_THAT(LayoutComplaint(""), HasSubstr("no rows"));
}

}  // namespace
}  // namespace sordino
