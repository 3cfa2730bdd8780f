#include "sordino/tables/csv_reader.h"

#include <gtest/gtest.h>

#include <random>

#include "sordino/base/csv_field.h"
#include "sordino/base/error.h"
#include "sordino/base/testing/test_folder.h"

namespace sordino {
namespace {

using Rows = std::vector<std::vector<std::string>>;

Rows ReadAll(CsvReader& reader) {
  Rows rows;
  while (reader.Next()) {
    rows.emplace_back();
    for (const std::string_view field : reader.fields()) rows.back().emplace_back(field);
  }
  return rows;
}

Rows Parse(std::string_view text) {
  CsvReader reader(FromText(text));
  return ReadAll(reader);
}

TEST(CsvReader, SplitsPlainRecords) {
  EXPECT_EQ(Parse("a,b\n1,2\n"), (Rows{{"a", "b"}, {"1", "2"}}));
  EXPECT_EQ(Parse("a,b\n1,2"), (Rows{{"a", "b"}, {"1", "2"}}));
  EXPECT_EQ(Parse("a,,\n,\n"), (Rows{{"a", "", ""}, {"", ""}}));
  EXPECT_EQ(Parse(""), Rows{});
}

TEST(CsvReader, ReadsBackWhatCsvFieldWrote) {
  const std::vector<std::string> values{"plain", "a,b",     "say \"hi\"", "\"",       "two\nlines",
                                        "cr\r",  "\r\n,\"", " blank ",    "caf\u00e9"};
  std::string text;
  for (const std::string& value : values) text += CsvField(value) + ",";
  text += "end\n";
  std::vector<std::string> expected = values;
  expected.emplace_back("end");
  EXPECT_EQ(Parse(text), Rows{expected});
  EXPECT_EQ(CsvField("plain"), "plain");
}

TEST(CsvReader, TakesCrlfByteOrderMarkAndBlankLines) {
  EXPECT_EQ(Parse("\xEF\xBB\xBF"
                  "a,b\r\n\r\n1,2\r\n\n\n3,4\r\n"),
            (Rows{{"a", "b"}, {"1", "2"}, {"3", "4"}}));
}

// A record whose only field is empty counts, as it does beside others.
TEST(CsvReader, ABlankLineIsARecordWhereRecordsHaveOneField) {
  EXPECT_EQ(Parse("x\n1\n\n3\r\n\r\n"), (Rows{{"x"}, {"1"}, {""}, {"3"}, {""}}));
  EXPECT_EQ(Parse("\n\nx\n1\n"), (Rows{{"x"}, {"1"}}));
}

TEST(CsvReader, UnescapesQuotedFields) {
  EXPECT_EQ(Parse("\"a,b\",\"c\"\"d\"\n\"two\nlines\",x\r\n\"\",\"q\"\r\n"),
            (Rows{{"a,b", "c\"d"}, {"two\nlines", "x"}, {"", "q"}}));
  EXPECT_EQ(Parse("x,\"end\""), (Rows{{"x", "end"}}));
}

TEST(CsvReader, SplitsAtAnotherSeparatorWhereOneIsGiven) {
  CsvReader reader(FromText("a,b\tc\n\"x\ty\"\t\"q\"\"\"\r\n\t\n"), '\t');
  EXPECT_EQ(ReadAll(reader), (Rows{{"a,b", "c"}, {"x\ty", "q\""}, {"", ""}}));
}

TEST(CsvReader, SaysWhichEncodingItDoesNotRead) {
  using std::string_literals::operator""s;
  const auto complaint = [](const std::string& text) -> std::string {
    try {
      CsvReader(FromText(text), ',', "odd.csv");
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  for (const std::string& text :
       {"\xFF\xFE"s + "a\0,\0b\0\n\0"s, "\xFE\xFF"s + "\0a\0\n"s, "a\0b\0\n\0"s, "\0a\0\n"s}) {
    EXPECT_NE(complaint(text).find("'odd.csv' is text in UTF-16"), std::string::npos);
  }
  EXPECT_NE(complaint("a,b\r1,2\r3,4\r").find("'odd.csv' end in carriage returns"),
            std::string::npos);
  for (const char* const text : {"a,b\r\n1,2\r\n", "a,b\r", "a,b", "a,b\n\"x\ry\",2\n", ""}) {
    EXPECT_EQ(complaint(text), "") << text;
  }
}

TEST(CsvReader, NumbersTheLines) {
  CsvReader reader(FromText("h,i\n\"a\nb\",c\n\nlast,d\n"));
  ASSERT_TRUE(reader.Next());
  EXPECT_EQ(reader.line(), 1U);
  ASSERT_TRUE(reader.Next());
  EXPECT_EQ(reader.line(), 2U);
  ASSERT_TRUE(reader.Next());
  EXPECT_EQ(reader.line(), 5U);
  EXPECT_FALSE(reader.Next());
}

TEST(CsvReader, ReportsBrokenQuotesAndGoesOnBehindTheLine) {
  for (const char* bad : {"\"a\"b,1\n", "a\"b,1\n", "\"never closed,1\n"}) {
    const std::string text = std::string(bad) + "ok,2\n";
    CsvReader reader(FromText(text));
    ASSERT_TRUE(reader.Next());
    EXPECT_FALSE(reader.broken().empty()) << bad;
    ASSERT_TRUE(reader.Next());
    EXPECT_TRUE(reader.broken().empty());
    EXPECT_EQ(reader.fields()[0], "ok");
    EXPECT_EQ(reader.line(), 2U);
    EXPECT_FALSE(reader.Next());
  }
}

TEST(CsvReader, SurvivesARecordLongerThanItsBuffer) {
  for (const bool quoted : {false, true}) {
    std::string text = "a,b\n";
    if (quoted) text += '"';
    text += std::string(5'000'000, 'x') + "\n1,2\n";
    CsvReader reader(FromText(text));
    ASSERT_TRUE(reader.Next());
    ASSERT_TRUE(reader.Next());
    EXPECT_FALSE(reader.broken().empty());
    ASSERT_TRUE(reader.Next());
    EXPECT_EQ(reader.fields().size(), 2U);
    EXPECT_EQ(reader.line(), 3U);
    EXPECT_FALSE(reader.Next());
  }
}

// A source that hands out a few bytes at a time reaches every place where a block can end.
TEST(CsvReader, DoesNotDependOnWhereBlocksEnd) {
  const std::string text =
      "\xEF\xBB\xBFname,value\r\n\"a \"\"b\"\",\r\n c\",1\r\nplain,2\n\n\"x\",\"\"\r\nlast,\"3\"";
  const Rows expected = Parse(text);
  ASSERT_EQ(expected.size(), 5U);
  for (const std::size_t piece : {1U, 2U, 3U, 5U, 7U}) {
    CsvReader reader([text, piece, place = std::size_t{0}](std::span<char> out) mutable {
      const std::size_t size = std::min({out.size(), piece, text.size() - place});
      text.copy(out.data(), size, place);
      place += size;
      return size;
    });
    EXPECT_EQ(ReadAll(reader), expected) << piece;
  }
}

TEST(CsvReader, RoundTripsRandomTablesAcrossBlocks) {
  std::mt19937 random(7);
  const std::string alphabet = "ab,\"\n\r 1";
  Rows rows;
  std::string text;
  while (text.size() < 3'500'000) {
    rows.emplace_back();
    const std::size_t columns = 1 + random() % 4;
    for (std::size_t i = 0; i < columns; ++i) {
      std::string field = "v";  // no blank lines
      for (std::size_t size = random() % 60; size > 0; --size) {
        field += alphabet[random() % alphabet.size()];
      }
      const bool quote = field.find_first_of(",\"\n\r") != std::string::npos || random() % 4 == 0;
      if (i > 0) text += ',';
      if (quote) {
        text += '"';
        for (const char c : field) text += c == '"' ? std::string("\"\"") : std::string(1, c);
        text += '"';
      } else {
        text += field;
      }
      rows.back().push_back(std::move(field));
    }
    text += random() % 2 == 0 ? "\n" : "\r\n";
  }
  EXPECT_EQ(Parse(text), rows);
}

TEST(CsvReader, NeverCrashesOnGarbage) {
  std::mt19937 random(11);
  const std::string alphabet =
      "\",\n\r\xEF\xBB\xBF"
      "a";
  for (int round = 0; round < 3000; ++round) {
    std::string text;
    for (std::size_t size = random() % 40; size > 0; --size) {
      text += alphabet[random() % alphabet.size()];
    }
    // Lines that end in CR alone are refused.
    if (text.find('\n') == std::string::npos) text += '\n';
    CsvReader reader(FromText(text));
    std::uint64_t last = 0;
    while (reader.Next()) {
      EXPECT_GT(reader.line(), last);
      last = reader.line();
      EXPECT_EQ(reader.fields().empty(), !reader.broken().empty());
    }
    EXPECT_EQ(reader.bytes(), text.size());
  }
}

TEST(OpenFile, NamesTheFileThatCannotBeRead) {
  EXPECT_THROW(OpenFile("/no/such/file.csv"), Error);
  const TestFolder folder;
  EXPECT_THROW(OpenFile(folder.path().string()), Error);
}

TEST(OpenFile, ReadsWhatWasWritten) {
  const TestFolder folder;
  const std::string path = folder.Write("table.csv", "a\n1\n").string();
  CsvReader reader(OpenFile(path));
  EXPECT_EQ(ReadAll(reader), (Rows{{"a"}, {"1"}}));
  EXPECT_EQ(FileSize(path), 4U);
}

}  // namespace
}  // namespace sordino
