#include "sordino/experiments/drawn_table.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

#include "sordino/base/testing/test_folder.h"

namespace sordino {
namespace {

std::string Content(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

TEST(DrawnTable, HasItsRowsWithinTheirBounds) {
  const TestFolder folder;
  const DrawnTable table{.records = 500, .columns = 3, .test_records = 200};
  WriteDrawnTable(folder, table);
  std::istringstream rows(Content(TablePath(folder, table)));
  std::string line;
  std::getline(rows, line);
  EXPECT_EQ(line, "x1,x2,x3,label");
  int count = 0;
  // The weight of x1 is negative and the largest: labels of its two halves differ in most rows.
  int agree = 0;
  while (std::getline(rows, line)) {
    std::istringstream fields(line);
    std::string field;
    double first = 0;
    for (int j = 0; j < 3; ++j) {
      std::getline(fields, field, ',');
      EXPECT_LE(std::abs(std::stod(field)), 1);
      if (j == 0) first = std::stod(field);
    }
    std::getline(fields, field, ',');
    EXPECT_TRUE(field == "yes" || field == "no");
    agree += (field == "yes") == (first < 0) ? 1 : 0;
    ++count;
  }
  EXPECT_EQ(count, 500);
  EXPECT_GT(agree, 350);
  EXPECT_NE(Content(TestTablePath(folder, table)), "");
}

TEST(DrawnTable, IsTheSameEachTimeAndItsTestRowsAreOthers) {
  const TestFolder a;
  const TestFolder b;
  const DrawnTable table{.records = 50, .columns = 2, .test_records = 50};
  WriteDrawnTable(a, table);
  WriteDrawnTable(b, table);
  EXPECT_EQ(Content(TablePath(a, table)), Content(TablePath(b, table)));
  EXPECT_NE(Content(TablePath(a, table)), Content(TestTablePath(a, table)));
}

}  // namespace
}  // namespace sordino
