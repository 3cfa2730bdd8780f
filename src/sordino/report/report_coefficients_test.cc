#include "sordino/report/report_coefficients.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sordino/base/error.h"
#include "sordino/base/testing/test_folder.h"

namespace sordino {
namespace {

using ::testing::HasSubstr;

constexpr const char* kHeader = "feature,class,coefficient,noise,lower,upper\n";

TEST(ReportCoefficients, ReadsWhatAFitWrites) {
  const TestFolder folder;
  EXPECT_TRUE(ReadReportCoefficients(folder / "none").empty());
  folder.Write("fit/coefficients.csv",
               std::string(kHeader) + "age,,0.61,0.1,0.4,0.8\n\"a,b\",yes,-1.25e-3,,,\n");
  const auto list = ReadReportCoefficients(folder / "fit");
  ASSERT_EQ(list.size(), 2U);
  EXPECT_EQ(list[0].feature, "age");
  EXPECT_EQ(list[0].value, 0.61);
  EXPECT_EQ(list[0].deviation, 0.1);
  EXPECT_EQ(list[0].lower, 0.4);
  EXPECT_EQ(list[0].upper, 0.8);
  EXPECT_EQ(list[1].feature, "a,b");
  EXPECT_EQ(list[1].score, "yes");
  EXPECT_EQ(list[1].value, -1.25e-3);
  EXPECT_EQ(list[1].deviation, std::nullopt);
}

TEST(ReportCoefficients, TakesTheFirstOfMany) {
  const TestFolder folder;
  std::string table = kHeader;
  for (std::size_t i = 0; i < kMaxReportCoefficients + 5; ++i) table += "x,,1,,,\n";
  folder.Write("fit/coefficients.csv", table);
  EXPECT_EQ(ReadReportCoefficients(folder / "fit").size(), kMaxReportCoefficients);
}

TEST(ReportCoefficients, RefusesAnotherTable) {
  const TestFolder folder;
  for (const std::string& table :
       {std::string("planted,31337\n"), std::string(), std::string(kHeader) + "age,,many,,,\n",
        std::string(kHeader) + "age,,1\n", std::string(kHeader) + "\"age\"x,,1,,,\n"}) {
    folder.Write("fit/coefficients.csv", table);
    try {
      ReadReportCoefficients(folder / "fit");
      ADD_FAILURE() << table;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("coefficients.csv' cannot be shown: it is not a table"));
      EXPECT_THAT(error.what(), ::testing::Not(HasSubstr("31337")));
    }
  }
}

}  // namespace
}  // namespace sordino
