// A file that a flag of a command names to be written (--picture, --out).
//
// Commands write such files through this class only (the test OutputFiles), so that none of them
// destroys what it was given or what cannot be made again. Never overwritten are:
//
//   - an input of the command, under whatever name: a link, a hard link, a file in an input folder
//   - an SQLite database, which may be a ledger, and its journal
//   - a file that a training run wrote (run_folder.h), or one in a folder that it made
//   - what is not a regular file, and what cannot be read, so that nobody knows what it is
//
// Any other file is overwritten by output of the same kind, or where --force says so.
#ifndef SORDINO_BASE_OUTPUT_FILE_H_
#define SORDINO_BASE_OUTPUT_FILE_H_

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace sordino {

struct OutputKind {
  std::string_view name;       // with its article
  std::string_view ending;     // that the name of the file must have; empty: any
  std::string_view beginning;  // of the content, by which an earlier output is known
};

inline constexpr OutputKind kSvgPicture = {"an SVG picture", ".svg", "<svg"};
inline constexpr OutputKind kPngPicture = {"a PNG picture", ".png", "\x89PNG\r\n\x1a\n"};

struct OutputRequest {
  std::string_view flag;
  std::filesystem::path path;
  OutputKind kind;
  bool force = false;
};

class OutputFile {
 public:
  // Throws Error where the file may not be overwritten, or its folder cannot be written to: call it
  // before there is anything to lose. Inputs that are empty or "-" are not files.
  OutputFile(const OutputRequest& request, std::span<const std::filesystem::path> inputs);

  // Whole and on the disk when it returns; throws std::runtime_error where that fails. A link stays
  // one and its target is written.
  void Write(std::string_view content) const;

 private:
  std::filesystem::path target_;
};

// Whether two names mean the same file, also through links. Names of files that do not exist are
// compared as they are spelled, below folders that do.
bool SameFile(const std::filesystem::path& a, const std::filesystem::path& b);

}  // namespace sordino

#endif  // SORDINO_BASE_OUTPUT_FILE_H_
