#include "sordino/base/sha256.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>
#include <fstream>
#include <memory>
#include <span>
#include <stdexcept>
#include <vector>

#include "sordino/base/check.h"

namespace sordino {
namespace {

constexpr std::size_t kDigestSize = 32;
constexpr std::size_t kBlock = std::size_t{1} << 20;

std::string Hex(std::span<const unsigned char, kDigestSize> digest) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string hex;
  hex.reserve(2 * digest.size());
  for (const unsigned char byte : digest) {
    hex += kDigits[byte >> 4];
    hex += kDigits[byte & 15];
  }
  return hex;
}

}  // namespace

std::string Sha256Hex(std::string_view bytes) {
  std::array<unsigned char, kDigestSize> digest{};
  unsigned int size = 0;
  const int ok =
      EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, EVP_sha256(), nullptr);
  SORDINO_CHECK(ok == 1 && size == digest.size(), "SHA-256 is not available");
  return Hex(digest);
}

std::string Sha256HexOfFile(const std::filesystem::path& file) {
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                        &EVP_MD_CTX_free);
  SORDINO_CHECK(context && EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) == 1,
                "SHA-256 is not available");
  std::ifstream in(file, std::ios::binary);
  std::vector<char> block(kBlock);
  while (in) {
    in.read(block.data(), static_cast<std::streamsize>(block.size()));
    const int ok =
        EVP_DigestUpdate(context.get(), block.data(), static_cast<std::size_t>(in.gcount()));
    SORDINO_CHECK(ok == 1, "SHA-256 is not available");
  }
  if (!in.eof()) {
    throw std::runtime_error(fmt::format("the file '{}' cannot be read.", file.string()));
  }
  std::array<unsigned char, kDigestSize> digest{};
  unsigned int size = 0;
  const int ok = EVP_DigestFinal_ex(context.get(), digest.data(), &size);
  SORDINO_CHECK(ok == 1 && size == digest.size(), "SHA-256 is not available");
  return Hex(digest);
}

}  // namespace sordino
