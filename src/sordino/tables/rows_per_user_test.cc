#include "sordino/tables/rows_per_user.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sordino/base/error.h"

namespace sordino {
namespace {

TEST(RowsPerUser, KeepsTheFirstRowsOfEachUser) {
  RowsPerUser cap(2);
  EXPECT_TRUE(cap.Keep("a"));
  EXPECT_TRUE(cap.Keep("b"));
  EXPECT_TRUE(cap.Keep("a"));
  EXPECT_FALSE(cap.Keep("a"));
  EXPECT_TRUE(cap.Keep("b"));
  EXPECT_FALSE(cap.Keep("b"));
  EXPECT_TRUE(cap.Keep(""));
}

TEST(RowsPerUser, RemovingAUserLeavesTheOthersRowsAsTheyWere) {
  // All files of 7 rows by users a, b, c: for each, dropping b's rows must not change which rows
  // of a and c are kept.
  for (int file = 0; file < 2187; ++file) {
    std::vector<char> users;
    for (int i = 0, rest = file; i < 7; ++i, rest /= 3) {
      users.push_back(static_cast<char>('a' + rest % 3));
    }
    RowsPerUser with(2);
    RowsPerUser without(2);
    for (const char user : users) {
      const bool kept = with.Keep(std::string(1, user));
      if (user != 'b') {
        ASSERT_EQ(without.Keep(std::string(1, user)), kept);
      }
    }
  }
}

TEST(RowsPerUser, RefusesACapOfZero) { EXPECT_THROW(RowsPerUser(0), Error); }

}  // namespace
}  // namespace sordino
