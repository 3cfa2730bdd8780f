#include "sordino/tables/arrow_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <system_error>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/tables/data_error.h"

extern char** environ;

namespace sordino {
namespace {

constexpr const char* kProgram = "sordino-arrow";
// What posix_spawnp, or the shell, says of a program that is not there.
constexpr int kNotFound = 127;

[[noreturn]] void ThrowNotInstalled(const std::string& path) {
  throw Error(fmt::format(
      "'{0}' is a Parquet or Arrow file, and {1}, which reads them, is not installed; run "
      "'tools/setup --parquet' and build again, or write the table as CSV: python3 -c \"import "
      "pandas; pandas.read_parquet('{0}').to_csv('table.csv', index=False)\".",
      path, kProgram));
}

// Beside this program, else wherever a shell would find it.
std::string ArrowProgram() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::filesystem::path beside = self.parent_path() / kProgram;
  return !error && access(beside.c_str(), X_OK) == 0 ? beside.string() : kProgram;
}

// A program that runs, and the pipes that it writes to.
class ArrowProcess {
 public:
  ArrowProcess(const std::string& path, bool header) : path_(path) {
    std::array<int, 2> text{};
    std::array<int, 2> words{};
    if (pipe2(text.data(), O_CLOEXEC) != 0) ThrowSystem();
    if (pipe2(words.data(), O_CLOEXEC) != 0) {
      close(text[0]);
      close(text[1]);
      ThrowSystem();
    }
    text_ = text[0];
    words_ = words[0];
    posix_spawn_file_actions_t actions{};
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, text[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, words[1], STDERR_FILENO);
    std::vector<std::string> arguments = {kProgram, header ? "--header" : "--no-header", path};
    std::array<char*, 4> argv = {arguments[0].data(), arguments[1].data(), arguments[2].data(),
                                 nullptr};
    const int failure =
        posix_spawnp(&child_, ArrowProgram().c_str(), &actions, nullptr, argv.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    close(text[1]);
    close(words[1]);
    if (failure == 0) return;
    child_ = -1;
    Close();
    if (failure == ENOENT) ThrowNotInstalled(path);
    errno = failure;
    ThrowSystem();
  }
  ArrowProcess(const ArrowProcess&) = delete;
  ArrowProcess& operator=(const ArrowProcess&) = delete;
  // Without its reader the program ends at its next line.
  ~ArrowProcess() {
    Close();
    if (child_ > 0) Wait();
  }

  std::size_t Read(std::span<char> buffer) {
    const std::size_t got = ReadFrom(text_, buffer);
    if (got > 0 || child_ < 0) return got;
    std::string words(512, '\0');
    words.resize(ReadFrom(words_, words));
    const int status = Wait();
    if (WIFEXITED(status) && WEXITSTATUS(status) == kNotFound) ThrowNotInstalled(path_);
    if (status == 0) return 0;
    throw DataError(
        fmt::format(
            "'{}' could not be read as a Parquet or Arrow file: it is cut off or damaged, or "
            "its columns are of a kind that has no cells.",
            path_),
        fmt::format("Arrow says {}", QuotedText(words, 400)));
  }

 private:
  [[noreturn]] static void ThrowSystem() {
    throw std::system_error(errno, std::generic_category(), kProgram);
  }

  static std::size_t ReadFrom(int file, std::span<char> buffer) {
    while (true) {
      const ssize_t got = read(file, buffer.data(), buffer.size());
      if (got >= 0) return static_cast<std::size_t>(got);
      if (errno != EINTR) ThrowSystem();
    }
  }

  void Close() {
    close(text_);
    close(words_);
  }

  int Wait() {
    int status = 0;
    while (waitpid(child_, &status, 0) < 0 && errno == EINTR) {
    }
    child_ = -1;
    return status;
  }

  std::string path_;
  int text_ = -1;
  int words_ = -1;
  pid_t child_ = -1;
};

}  // namespace

bool IsParquet(std::string_view beginning) { return beginning.starts_with("PAR1"); }

bool IsArrow(std::string_view beginning) { return beginning.starts_with("ARROW1"); }

ByteSource ArrowTableText(const std::string& path, bool header) {
  const auto process = std::make_shared<ArrowProcess>(path, header);
  return [process](std::span<char> buffer) { return process->Read(buffer); };
}

}  // namespace sordino
