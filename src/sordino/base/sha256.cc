#include "sordino/base/sha256.h"

#include <openssl/evp.h>

#include <array>

#include "sordino/base/check.h"

namespace sordino {

std::string Sha256Hex(std::string_view bytes) {
  std::array<unsigned char, 32> digest{};
  unsigned int size = 0;
  const int ok =
      EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, EVP_sha256(), nullptr);
  SORDINO_CHECK(ok == 1 && size == digest.size(), "SHA-256 is not available");
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string hex;
  hex.reserve(2 * digest.size());
  for (const unsigned char byte : digest) {
    hex += kDigits[byte >> 4];
    hex += kDigits[byte & 15];
  }
  return hex;
}

}  // namespace sordino
