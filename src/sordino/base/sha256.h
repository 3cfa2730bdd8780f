// SHA-256, for what has to be recognised again.
#ifndef SORDINO_BASE_SHA256_H_
#define SORDINO_BASE_SHA256_H_

#include <filesystem>
#include <string>
#include <string_view>

namespace sordino {

// 64 hex digits.
std::string Sha256Hex(std::string_view bytes);
// Of what is in the file. Throws std::runtime_error where it cannot be read.
std::string Sha256HexOfFile(const std::filesystem::path& file);

}  // namespace sordino

#endif  // SORDINO_BASE_SHA256_H_
