#include "sordino/distributed/internal/message_seal.h"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>

#include "sordino/base/check.h"

namespace sordino::internal {
namespace {

using CipherContext = std::unique_ptr<EVP_CIPHER_CTX, decltype(&EVP_CIPHER_CTX_free)>;
using Iv = std::array<unsigned char, 12>;

// OpenSSL counts in int.
constexpr std::size_t kMostAtOnce = std::size_t{1} << 30;

unsigned char* Bytes(void* place) { return static_cast<unsigned char*>(place); }
const unsigned char* Bytes(const void* place) { return static_cast<const unsigned char*>(place); }

// The receiver and the number, 96 bits.
Iv IvOf(const MessageSeal::Address& address) {
  Iv iv{};
  for (std::size_t i = 0; i < 4; ++i) {
    iv[i] = static_cast<unsigned char>(address.receiver >> (8 * i));
  }
  for (std::size_t i = 0; i < 8; ++i) {
    iv[4 + i] = static_cast<unsigned char>(address.number >> (8 * i));
  }
  return iv;
}

void RequireCipher(bool is_right) { SORDINO_CHECK(is_right, "AES-256-GCM is not available"); }

CipherContext Begin(const std::string& key, const MessageSeal::Address& address, bool encrypts) {
  CipherContext context(EVP_CIPHER_CTX_new(), &EVP_CIPHER_CTX_free);
  const Iv iv = IvOf(address);
  RequireCipher(context && EVP_CipherInit_ex(context.get(), EVP_aes_256_gcm(), nullptr,
                                             Bytes(static_cast<const void*>(key.data())), iv.data(),
                                             encrypts ? 1 : 0) == 1);
  return context;
}

void Update(EVP_CIPHER_CTX* context, const unsigned char* in, unsigned char* out,
            std::size_t bytes) {
  for (std::size_t done = 0; done < bytes;) {
    const std::size_t now = std::min(bytes - done, kMostAtOnce);
    int written = 0;
    RequireCipher(
        EVP_CipherUpdate(context, out + done, &written, in + done, static_cast<int>(now)) == 1 &&
        written == static_cast<int>(now));
    done += now;
  }
}

}  // namespace

std::string RandomHex() {
  std::array<unsigned char, 32> bytes{};
  SORDINO_CHECK(::getentropy(bytes.data(), bytes.size()) == 0,
                "the operating system gives no random bytes");
  std::string hex;
  for (const unsigned char byte : bytes) hex += fmt::format("{:02x}", byte);
  return hex;
}

std::string Mac(std::string_view key, const std::vector<std::string_view>& parts) {
  std::string text;
  for (const std::string_view part : parts) {
    text += fmt::format("{}:", part.size());
    text += part;
  }
  std::string mac(kMacBytes, '\0');
  unsigned int size = 0;
  const unsigned char* const done = HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
                                         Bytes(static_cast<const void*>(text.data())), text.size(),
                                         Bytes(static_cast<void*>(mac.data())), &size);
  SORDINO_CHECK(done != nullptr && size == kMacBytes, "HMAC-SHA-256 is not available");
  return mac;
}

bool IsSameMac(std::string_view one, std::string_view other) {
  return one.size() == other.size() && CRYPTO_memcmp(one.data(), other.data(), one.size()) == 0;
}

MessageSeal::MessageSeal(std::string_view secret, std::string_view nonce, int ranks) {
  keys_.reserve(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    keys_.push_back(Mac(secret, {"messages", nonce, fmt::format("{}", rank)}));
  }
}

void MessageSeal::Seal(const Address& address, const void* plain, std::size_t bytes,
                       void* sealed) const {
  const CipherContext context =
      Begin(keys_[static_cast<std::size_t>(address.sender)], address, true);
  unsigned char* const out = Bytes(sealed);
  Update(context.get(), Bytes(plain), out, bytes);
  int written = 0;
  RequireCipher(EVP_CipherFinal_ex(context.get(), out + bytes, &written) == 1);
  RequireCipher(EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_GCM_GET_TAG,
                                    static_cast<int>(kTagBytes), out + bytes) == 1);
}

bool MessageSeal::Open(const Address& address, const void* sealed, void* plain,
                       std::size_t bytes) const {
  const CipherContext context =
      Begin(keys_[static_cast<std::size_t>(address.sender)], address, false);
  const unsigned char* const in = Bytes(sealed);
  Update(context.get(), in, Bytes(plain), bytes);
  std::array<unsigned char, kTagBytes> tag{};
  std::copy(in + bytes, in + bytes + kTagBytes, tag.begin());
  RequireCipher(EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_GCM_SET_TAG,
                                    static_cast<int>(kTagBytes), tag.data()) == 1);
  std::array<unsigned char, kTagBytes> nothing{};
  int written = 0;
  return EVP_CipherFinal_ex(context.get(), nothing.data(), &written) == 1;
}

}  // namespace sordino::internal
