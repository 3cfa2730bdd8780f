// SHA-256, for what has to be recognised again.
#ifndef SORDINO_BASE_SHA256_H_
#define SORDINO_BASE_SHA256_H_

#include <string>
#include <string_view>

namespace sordino {

// 64 hex digits.
std::string Sha256Hex(std::string_view bytes);

}  // namespace sordino

#endif  // SORDINO_BASE_SHA256_H_
