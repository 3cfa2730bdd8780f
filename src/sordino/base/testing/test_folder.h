// A fresh folder for one test or benchmark, removed with the object.
//
// Tests run side by side, several in one process or each in its own, and more than one build of the
// project may run on a machine: a fixed name in the temporary folder collides. Every test makes its
// files in a TestFolder (tests/test_folder_test.py).
#ifndef SORDINO_BASE_TESTING_TEST_FOLDER_H_
#define SORDINO_BASE_TESTING_TEST_FOLDER_H_

#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

namespace sordino {

class TestFolder {
 public:
  TestFolder() : TestFolder(std::filesystem::temp_directory_path()) {}
  // In memory where the machine has a folder for that: for tests that write thousands of files.
  static TestFolder InMemory() {
    constexpr const char* kMemory = "/dev/shm";
    return ::access(kMemory, W_OK) == 0 ? TestFolder(kMemory) : TestFolder();
  }
  ~TestFolder() {
    if (::getpid() != owner_) return;  // a forked child leaves the folder to its parent
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  // NOLINTNEXTLINE(google-explicit-constructor): it stands wherever a path does
  operator const std::filesystem::path&() const { return path_; }
  std::filesystem::path operator/(const std::filesystem::path& name) const { return path_ / name; }

  // Writes a file below the folder and returns its path.
  std::filesystem::path Write(const std::filesystem::path& name, std::string_view content) const {
    std::filesystem::path file = path_ / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << content;
    return file;
  }
  std::filesystem::path Write(const std::filesystem::path& name,
                              std::span<const std::byte> content) const {
    return Write(name,
                 std::string_view(reinterpret_cast<const char*>(content.data()), content.size()));
  }

 private:
  explicit TestFolder(const std::filesystem::path& parent) {
    std::string name = (parent / "sordino-test-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) {
      throw std::system_error(errno, std::generic_category(), "no folder " + name);
    }
    path_ = name;
  }

  std::filesystem::path path_;
  pid_t owner_ = ::getpid();
};

}  // namespace sordino

#endif  // SORDINO_BASE_TESTING_TEST_FOLDER_H_
