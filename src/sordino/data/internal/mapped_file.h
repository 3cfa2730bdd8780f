// The bytes of a file that is not read into memory: the system fetches a page when it is touched,
// and may drop it again.
#ifndef SORDINO_DATA_INTERNAL_MAPPED_FILE_H_
#define SORDINO_DATA_INTERNAL_MAPPED_FILE_H_

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>

namespace sordino::internal {

class MappedFile {
 public:
  // Null for what is not a file with bytes in it, or cannot be opened or mapped.
  static std::shared_ptr<const MappedFile> Open(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  // Whoever writes to them ends the program. A file that others change shows the change, and one
  // that was cut off ends the program too.
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  explicit MappedFile(std::span<const std::byte> bytes) : bytes_(bytes) {}
  const std::span<const std::byte> bytes_;
};

}  // namespace sordino::internal

#endif  // SORDINO_DATA_INTERNAL_MAPPED_FILE_H_
