// Files that are whole and on the disk, or not there.
#ifndef SORDINO_BASE_DURABLE_FILE_H_
#define SORDINO_BASE_DURABLE_FILE_H_

#include <filesystem>
#include <string>
#include <string_view>

namespace sordino {

// Writes a file beside the target, syncs it, renames it to the target and syncs the folder. Throws
// std::runtime_error where that fails.
void WriteWholeFile(const std::filesystem::path& file, std::string_view content);

// What was made, moved or removed in the folder is on the disk when it returns. Empty: the current
// folder. Throws std::runtime_error where that fails.
void SyncFolder(const std::filesystem::path& folder);

// Whether the number of an error (errno) says that the disk is full or fails, which is not the
// mistake of whoever named the file.
bool IsDiskFailure(int error);
// Throws std::runtime_error for such an error, and Error for any other.
[[noreturn]] void ThrowFileError(int error, const std::string& sentence);

}  // namespace sordino

#endif  // SORDINO_BASE_DURABLE_FILE_H_
