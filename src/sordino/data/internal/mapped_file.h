// The bytes of a file that is not read into memory: the system fetches a page when it is touched,
// and may drop it again.
//
// A page that cannot be fetched, because the file was cut or its disk fails, is a signal (SIGBUS)
// and not an error that could be returned. A handler of it ends the process with one sentence and
// exit code 2, as a file that cannot be read does. What was charged and written before is on the
// disk. Signals at other addresses go the way they went without it.
#ifndef SORDINO_DATA_INTERNAL_MAPPED_FILE_H_
#define SORDINO_DATA_INTERNAL_MAPPED_FILE_H_

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace sordino::internal {

class MappedFile {
 public:
  // Null for what is not a file with bytes in it, or cannot be opened or mapped, and where 64 files
  // are mapped already.
  static std::shared_ptr<const MappedFile> Open(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  // Whoever writes to them ends the program. A file that others change shows the change.
  std::span<const std::byte> bytes() const { return bytes_; }
  // For the handler.
  bool Holds(const std::byte* address) const;
  std::string_view sentence() const { return sentence_; }

 private:
  MappedFile(std::span<const std::byte> bytes, std::string sentence);
  const std::span<const std::byte> bytes_;
  const std::string sentence_;  // for a page that cannot be fetched
};

}  // namespace sordino::internal

#endif  // SORDINO_DATA_INTERNAL_MAPPED_FILE_H_
