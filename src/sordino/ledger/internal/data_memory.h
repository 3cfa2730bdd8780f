// Which data had a description that names a ledger, kept apart from the data.
//
// A description lies beside one name of the data. A hard link, a copy or a new name has none, and
// would be released without a charge. So whoever finds a description leaves, in the folder where
// heads of ledgers are remembered (witness.h), what the data can be recognised by:
//
//   - their device and inode: a hard link, also where the content has changed since
//   - their content (the size, the first and the last megabyte): a copy, or the file after a move
//
// Both are file names made by HMAC-SHA-256 under a key of this folder, which only its owner can
// read: without the key they confirm no guess about the data. The files hold the paths of the data
// and of their description. What cannot be read or written is not remembered; a description that is
// gone counts no more.
#ifndef SORDINO_LEDGER_INTERNAL_DATA_MEMORY_H_
#define SORDINO_LEDGER_INTERNAL_DATA_MEMORY_H_

#include <filesystem>
#include <optional>

namespace sordino {

class DataMemory {
 public:
  // Below the folder of DefaultWitnessFolder(); empty: nothing is remembered.
  explicit DataMemory(const std::filesystem::path& state);

  // Of regular files. Never throws.
  void Remember(const std::filesystem::path& data, const std::filesystem::path& description) const;
  // The description of the same data under another name. Never throws.
  std::optional<std::filesystem::path> DescriptionOf(const std::filesystem::path& data) const;

 private:
  std::filesystem::path folder_;
};

}  // namespace sordino

#endif  // SORDINO_LEDGER_INTERNAL_DATA_MEMORY_H_
