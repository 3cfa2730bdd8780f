#include "sordino/base/testing/test_folder.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <optional>

namespace sordino {
namespace {

namespace fs = std::filesystem;

TEST(TestFolder, IsFreshEmptyAndRemovedWithWhatIsInIt) {
  std::optional<TestFolder> first(std::in_place);
  const TestFolder second;
  EXPECT_NE(first->path(), second.path());
  EXPECT_TRUE(fs::is_empty(first->path()));
  const fs::path file = first->Write("below/file", "text");
  EXPECT_EQ(fs::file_size(file), 4U);
  first.reset();
  EXPECT_FALSE(fs::exists(file.parent_path().parent_path()));
  EXPECT_TRUE(fs::exists(second.path()));
}

TEST(TestFolder, IsNotRemovedByAForkedChild) {
  std::optional<TestFolder> folder(std::in_place);
  const fs::path path = folder->path();
  const pid_t child = ::fork();
  if (child == 0) {
    folder.reset();
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(fs::exists(path));
}

}  // namespace
}  // namespace sordino
