#include "sordino/tables/arrow_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "sordino/tables/table_file.h"
#include "sordino/tables/testing/reader_test_support.h"

namespace sordino {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// Made by pyarrow: nulls, a dictionary, decimals, dates, times of nanoseconds, a column of lists;
// two row groups, compressed.
const std::filesystem::path kFolder = SORDINO_TABLES_TESTDATA;

bool ArrowIsInstalled() {
  const std::filesystem::path beside =
      std::filesystem::read_symlink("/proc/self/exe").parent_path() / "sordino-arrow";
  return access(beside.c_str(), X_OK) == 0;
}

std::vector<std::vector<std::string>> RowsOf(const std::filesystem::path& file,
                                             bool header = true) {
  CsvReader reader = OpenTableFile(file.string(), {.delimiter = ';', .header = header});
  std::vector<std::vector<std::string>> rows;
  while (reader.Next()) rows.emplace_back(reader.fields().begin(), reader.fields().end());
  return rows;
}

TEST(ArrowFile, IsRecognisedByItsFirstBytes) {
  EXPECT_TRUE(IsParquet("PAR1\x15"));
  EXPECT_TRUE(IsArrow(std::string_view("ARROW1\0\0", 8)));
  EXPECT_FALSE(IsParquet("PAR") || IsArrow("ARROW") || IsParquet("a,b"));
}

TEST(ArrowFile, CellsAreThoseOfTheTableWhateverTheFormatOfTheFile) {
  if (!ArrowIsInstalled()) GTEST_SKIP() << "built without Apache Arrow";
  for (const char* const name : {"patients.parquet", "patients.feather", "patients.arrow"}) {
    const auto rows = RowsOf(kFolder / name);
    ASSERT_EQ(rows.size(), 5U) << name;
    EXPECT_THAT(rows[0],
                ElementsAre("age", "weight", "city", "smoker", "born", "seen", "cost", "sick"));
    EXPECT_THAT(rows[1], ElementsAre("34", "72.5", "Zürich", "true", "1990-02-28",
                                     "2026-01-02 03:04:05", "12.50", "yes"));
    EXPECT_THAT(rows[2],
                ElementsAre("", "0.1", "Biel, Bienne", "false", "1970-01-01", "", "", "no"));
    EXPECT_THAT(rows[3], ElementsAre("61", "", "", "", "", "1969-12-31 23:59:59", "-0.05", "no"));
    EXPECT_THAT(rows[4], ElementsAre("8", "0.001", "say \"hi\"", "true", "2018-12-31",
                                     "2000-01-01 00:00:00", "3.00", "yes"));
    EXPECT_EQ(RowsOf(kFolder / name, false).size(), 4U);
  }
}

TEST(ArrowFile, ADamagedFileIsRefusedWithoutItsCells) {
  if (!ArrowIsInstalled()) GTEST_SKIP() << "built without Apache Arrow";
  const TestFolder folder;
  for (const char* const name : {"patients.parquet", "patients.arrow"}) {
    std::ifstream in(kFolder / name, std::ios::binary);
    std::string bytes((std::istreambuf_iterator<char>(in)), {});
    std::ofstream(folder / name, std::ios::binary) << bytes.substr(0, bytes.size() / 2);
    const std::string sentence = SentenceOf([&] { RowsOf(folder / name); });
    EXPECT_THAT(sentence, AllOf(HasSubstr("could not be read as a Parquet or Arrow file"),
                                HasSubstr("Arrow says")));
    // Every byte in turn: refused or read, never a crash of this program.
    for (std::size_t place = 5; place < bytes.size(); place += 97) {
      std::string changed = bytes;
      changed[place] = static_cast<char>(~changed[place]);
      std::ofstream(folder / "changed", std::ios::binary) << changed;
      SentenceOf([&] { RowsOf(folder / "changed"); });
    }
  }
}

TEST(ArrowFile, WithoutTheProgramOneSentenceSaysWhatToDo) {
  if (ArrowIsInstalled()) GTEST_SKIP() << "sordino-arrow is installed";
  EXPECT_THAT(SentenceOf([] { RowsOf(kFolder / "patients.parquet"); }),
              AllOf(HasSubstr("tools/setup --parquet"), HasSubstr("to_csv")));
}

TEST(TableFile, TextIsReadByItsLayout) {
  const TestFolder folder;
  std::ofstream(folder / "t.csv") << "a;b\n'1;2';O'Brien\n";
  CsvReader reader = OpenTableFile((folder / "t.csv").string(), {.delimiter = ';', .quote = '\''});
  ASSERT_TRUE(reader.Next());
  ASSERT_TRUE(reader.Next());
  EXPECT_THAT(reader.fields(), ElementsAre("1;2", "O'Brien"));
  std::ofstream(folder / "q.csv") << "\"a,b\"\n";
  CsvReader plain = OpenTableFile((folder / "q.csv").string(), {.quote = '\0'});
  ASSERT_TRUE(plain.Next());
  EXPECT_THAT(plain.fields(), ElementsAre("\"a", "b\""));
  std::ofstream(folder / "x") << "P";
  CsvReader one = OpenTableFile((folder / "x").string(), {});
  ASSERT_TRUE(one.Next());
  EXPECT_THAT(one.fields(), ElementsAre("P"));
}

}  // namespace
}  // namespace sordino
