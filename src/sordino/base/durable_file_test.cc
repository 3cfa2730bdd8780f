#include "sordino/base/durable_file.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

#include "sordino/base/error.h"
#include "sordino/base/testing/test_folder.h"

namespace sordino {
namespace {

namespace fs = std::filesystem;

class DurableFile : public ::testing::Test {
 protected:
  static std::string Read(const fs::path& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }
  std::ptrdiff_t Files() const { return std::distance(fs::directory_iterator(root_), {}); }

  const TestFolder root_;
};

TEST_F(DurableFile, ReplacesTheWholeContentAndLeavesNothingBeside) {
  WriteWholeFile(root_ / "a", "first, and longer");
  WriteWholeFile(root_ / "a", "second");
  EXPECT_EQ(Read(root_ / "a"), "second");
  EXPECT_EQ(Files(), 1);
}

TEST_F(DurableFile, AFailureLeavesWhatWasThere) {
  WriteWholeFile(root_ / "a", "first");
  EXPECT_THROW(WriteWholeFile(root_ / "absent" / "a", "x"), std::runtime_error);
  fs::create_directories(root_ / "folder" / "inside");
  EXPECT_THROW(WriteWholeFile(root_ / "folder", "x"), std::runtime_error);
  EXPECT_EQ(Read(root_ / "a"), "first");
  EXPECT_EQ(Files(), 2);
}

TEST_F(DurableFile, AFolderThatIsNotThereCannotBeSynced) {
  EXPECT_NO_THROW(SyncFolder(root_));
  EXPECT_NO_THROW(SyncFolder(""));
  EXPECT_THROW(SyncFolder(root_ / "absent"), std::runtime_error);
}

TEST_F(DurableFile, AFullDiskIsAFailureAndAMissingRightIsAMistake) {
  const auto is_mistake = [](int error) {
    try {
      ThrowFileError(error, "it cannot be written.");
    } catch (const Error&) {
      return true;
    } catch (const std::runtime_error&) {
      return false;
    }
  };
  for (const int error : {ENOSPC, EDQUOT, EIO, EFBIG}) EXPECT_FALSE(is_mistake(error)) << error;
  for (const int error : {EACCES, ENOENT, ENOTDIR, EROFS}) EXPECT_TRUE(is_mistake(error)) << error;
}

}  // namespace
}  // namespace sordino
