#include "sordino/random/aes_ctr.h"

#include <openssl/evp.h>

#include <algorithm>

#include "sordino/base/check.h"

namespace sordino::internal {
namespace {

// Counter mode adds the keystream to an input; a shared block of zeros as the input spares one
// pass over the output. 16 KiB amortises the call and still lies in the first-level cache.
constexpr std::size_t kChunk = 16384;
alignas(64) constexpr std::array<unsigned char, kChunk> kZeros{};

unsigned char* Bytes(std::byte* p) { return reinterpret_cast<unsigned char*>(p); }
const unsigned char* Bytes(const std::byte* p) { return reinterpret_cast<const unsigned char*>(p); }

}  // namespace

struct AesCtr::Context {
  EVP_CIPHER_CTX* evp = EVP_CIPHER_CTX_new();
  Context() = default;
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ~Context() { EVP_CIPHER_CTX_free(evp); }  // wipes the key schedule
};

AesCtr::AesCtr(const CipherKey& key, const CounterBlock& counter)
    : context_(std::make_unique<Context>()) {
  SORDINO_CHECK(context_->evp != nullptr, "OpenSSL gave no cipher context");
  // Fetched once: the look-up takes longer than a small block of keystream.
  static EVP_CIPHER* const cipher = EVP_CIPHER_fetch(nullptr, "AES-256-CTR", nullptr);
  SORDINO_CHECK(cipher != nullptr, "OpenSSL has no AES-256-CTR");
  const int ok =
      EVP_EncryptInit_ex2(context_->evp, cipher, Bytes(key.data()), Bytes(counter.data()), nullptr);
  SORDINO_CHECK(ok == 1, "OpenSSL could not set the key of the noise generator");
}

AesCtr::~AesCtr() = default;
AesCtr::AesCtr(AesCtr&&) noexcept = default;
AesCtr& AesCtr::operator=(AesCtr&&) noexcept = default;

void AesCtr::Keystream(std::span<std::byte> out) {
  SORDINO_CHECK(context_ != nullptr, "a generator was used after it was moved from");
  while (!out.empty()) {
    const std::size_t size = std::min(out.size(), kChunk);
    int written = 0;
    const int ok = EVP_EncryptUpdate(context_->evp, Bytes(out.data()), &written, kZeros.data(),
                                     static_cast<int>(size));
    SORDINO_CHECK(ok == 1 && written == static_cast<int>(size),
                  "OpenSSL stopped giving keystream for the noise");
    out = out.subspan(size);
  }
}

}  // namespace sordino::internal
