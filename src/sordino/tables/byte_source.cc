#include "sordino/tables/byte_source.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "sordino/base/error.h"

namespace sordino {
namespace {

class FileDescriptor {
 public:
  FileDescriptor(int descriptor, bool owned) : descriptor_(descriptor), owned_(owned) {}
  ~FileDescriptor() {
    if (owned_) ::close(descriptor_);
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  int get() const { return descriptor_; }

 private:
  int descriptor_;
  bool owned_;
};

}  // namespace

ByteSource OpenFile(const std::string& path) {
  std::shared_ptr<FileDescriptor> file;
  if (path == "-") {
    file = std::make_shared<FileDescriptor>(STDIN_FILENO, false);
  } else {
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) {
      throw Error(fmt::format("the file '{}' cannot be opened: {}.", path, std::strerror(errno)));
    }
    file = std::make_shared<FileDescriptor>(descriptor, true);
    struct stat status {};
    if (::fstat(descriptor, &status) == 0 && S_ISDIR(status.st_mode)) {
      throw Error(fmt::format("'{}' is a directory; give a file.", path));
    }
#ifdef POSIX_FADV_SEQUENTIAL
    ::posix_fadvise(descriptor, 0, 0, POSIX_FADV_SEQUENTIAL);
#endif
  }
  return [file, path](std::span<char> buffer) {
    while (true) {
      const ssize_t got = ::read(file->get(), buffer.data(), buffer.size());
      if (got >= 0) return static_cast<std::size_t>(got);
      if (errno != EINTR) {
        throw Error(fmt::format("reading '{}' failed: {}.", path, std::strerror(errno)));
      }
    }
  };
}

std::uint64_t FileSize(const std::string& path) {
  struct stat status {};
  if (path == "-" || ::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return 0;
  return static_cast<std::uint64_t>(status.st_size);
}

ByteSource FromText(std::string_view text) {
  return [text, place = std::size_t{0}](std::span<char> buffer) mutable {
    const std::size_t size = std::min(buffer.size(), text.size() - place);
    std::memcpy(buffer.data(), text.data() + place, size);
    place += size;
    return size;
  };
}

}  // namespace sordino
