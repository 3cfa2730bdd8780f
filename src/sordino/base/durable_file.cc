#include "sordino/base/durable_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "sordino/base/error.h"

namespace sordino {
namespace {

[[noreturn]] void FailToWrite(const std::filesystem::path& file, int error) {
  throw std::runtime_error(
      fmt::format("the file '{}' cannot be written: {}.", file.string(), std::strerror(error)));
}

}  // namespace

void WriteWholeFile(const std::filesystem::path& file, std::string_view content) {
  std::filesystem::path draft = file;
  draft += fmt::format(".{}.tmp", getpid());
  const int descriptor = open(draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor < 0) FailToWrite(file, errno);
  std::size_t written = 0;
  while (written < content.size()) {
    const ssize_t count = write(descriptor, content.data() + written, content.size() - written);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      const int error = errno;
      close(descriptor);
      unlink(draft.c_str());
      FailToWrite(file, error);
    }
    written += static_cast<std::size_t>(count);
  }
  const bool synced = fsync(descriptor) == 0;
  const bool closed = close(descriptor) == 0;
  if (!synced || !closed || rename(draft.c_str(), file.c_str()) != 0) {
    const int error = errno;
    unlink(draft.c_str());
    FailToWrite(file, error);
  }
  SyncFolder(file.parent_path());
}

void SyncFolder(const std::filesystem::path& folder) {
  const char* const name = folder.empty() ? "." : folder.c_str();
  const int descriptor = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  // EINVAL: a file system that has no such sync and does not need it.
  const bool synced = descriptor >= 0 && (fsync(descriptor) == 0 || errno == EINVAL);
  const int error = errno;
  if (descriptor >= 0) close(descriptor);
  if (!synced) FailToWrite(folder, error);
}

bool IsDiskFailure(int error) {
  return error == ENOSPC || error == EDQUOT || error == EIO || error == EFBIG;
}

void ThrowFileError(int error, const std::string& sentence) {
  if (IsDiskFailure(error)) throw std::runtime_error(sentence);
  throw Error(sentence);
}

}  // namespace sordino
