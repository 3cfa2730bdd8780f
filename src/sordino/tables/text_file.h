// Small files as a text.
#ifndef SORDINO_TABLES_TEXT_FILE_H_
#define SORDINO_TABLES_TEXT_FILE_H_

#include <string>
#include <string_view>

namespace sordino {

// The whole text of a file, or of standard input for "-". Throws Error where it cannot be read;
// `advice` says what to do where it is larger than 64 MiB.
std::string ReadTextFile(const std::string& path, std::string_view advice);

}  // namespace sordino

#endif  // SORDINO_TABLES_TEXT_FILE_H_
