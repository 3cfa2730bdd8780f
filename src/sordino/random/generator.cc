#include "sordino/random/generator.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/random.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "sordino/base/check.h"
#include "sordino/random/internal/fork_guard.h"

namespace sordino {
namespace {

using internal::CipherKey;
using internal::ForkGeneration;

// What is hashed to derive one secret from another: a label that separates the uses, then
// fixed-width big-endian fields, so that no two messages coincide.
class Message {
 public:
  explicit Message(std::string_view label) { Append(std::as_bytes(std::span(label))); }

  Message& Append(std::span<const std::byte> bytes) {
    SORDINO_CHECK(size_ + bytes.size() <= data_.size(), "the key derivation message is too long");
    std::memcpy(data_.data() + size_, bytes.data(), bytes.size());
    size_ += bytes.size();
    return *this;
  }

  Message& Append64(std::uint64_t value) {
    std::array<std::byte, 8> bytes;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      bytes[i] = static_cast<std::byte>(value >> (8 * (7 - i)));
    }
    return Append(bytes);
  }

  Message& Append(const StreamKey& key) {
    return Append64(key.step).Append64(std::uint64_t{key.rank} << 32 | key.tensor);
  }

  CipherKey Derive(const CipherKey& secret) const {
    CipherKey derived;
    unsigned int size = 0;
    const unsigned char* ok = HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
                                   reinterpret_cast<const unsigned char*>(data_.data()), size_,
                                   reinterpret_cast<unsigned char*>(derived.data()), &size);
    SORDINO_CHECK(ok != nullptr && size == derived.size(), "OpenSSL could not derive a key");
    return derived;
  }

 private:
  std::array<std::byte, 128> data_{};
  std::size_t size_ = 0;
};

// A secret keys either HMAC or AES, never both: the cipher gets a derived key.
internal::AesCtr CipherOf(const CipherKey& secret) {
  CipherKey key = Message("sordino stream 1").Derive(secret);
  internal::AesCtr cipher(key, internal::CounterBlock{});
  OPENSSL_cleanse(key.data(), key.size());
  return cipher;
}

}  // namespace

bool internal::OsEntropy(std::span<std::byte> out) {
  while (!out.empty()) {
    const ssize_t got = getrandom(out.data(), out.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    out = out.subspan(static_cast<std::size_t>(got));
  }
  return true;
}

Generator::~Generator() { OPENSSL_cleanse(buffer_.data(), sizeof(buffer_)); }

Generator::Generator(Generator&& other) noexcept
    : buffer_(other.buffer_),
      next_(std::exchange(other.next_, kWords)),
      generation_(other.generation_) {}

Generator& Generator::operator=(Generator&& other) noexcept {
  buffer_ = other.buffer_;
  generation_ = other.generation_;
  next_ = std::exchange(other.next_, kWords);
  return *this;
}

std::uint64_t Generator::Next64() {
  if (next_ == kWords || generation_ != ForkGeneration()) [[unlikely]]
    Refill();
  return buffer_[next_++];
}

void Generator::Refill() {
  generation_ = ForkGeneration();
  Fill(std::as_writable_bytes(std::span(buffer_)));
  next_ = 0;
}

SecureGenerator::SecureGenerator() : SecureGenerator(&internal::OsEntropy) {}

// The cipher of the zero secret gives out nothing: KeyFromEntropy replaces it or stops.
SecureGenerator::SecureGenerator(internal::EntropySource entropy)
    : entropy_(entropy), cipher_(CipherKey{}, internal::CounterBlock{}) {
  KeyFromEntropy();
}

SecureGenerator::SecureGenerator(internal::EntropySource entropy, const CipherKey& secret,
                                 const Nonce& nonce)
    : entropy_(entropy),
      secret_(secret),
      nonce_(nonce),
      generation_(ForkGeneration()),
      cipher_(CipherOf(secret)) {}

SharedSecret::SharedSecret() {
  SORDINO_CHECK(internal::OsEntropy(bytes_),
                "the operating system gave no entropy, so no batch can be drawn in secret");
}

SharedSecret::SharedSecret(std::span<const std::byte, kBytes> bytes) {
  std::memcpy(bytes_.data(), bytes.data(), kBytes);
}

SharedSecret::~SharedSecret() { OPENSSL_cleanse(bytes_.data(), bytes_.size()); }

SecureGenerator::SecureGenerator(const SharedSecret& shared)
    : entropy_(&internal::OsEntropy),
      generation_(ForkGeneration()),
      cipher_(CipherKey{}, internal::CounterBlock{}) {
  static_assert(sizeof(CipherKey) + sizeof(Nonce) == SharedSecret::kBytes);
  std::memcpy(secret_.data(), shared.bytes().data(), secret_.size());
  std::memcpy(nonce_.data(), shared.bytes().data() + secret_.size(), nonce_.size());
  SORDINO_CHECK(secret_ != CipherKey{}, "a shared secret is zeros");
  cipher_ = CipherOf(secret_);
}

SecureGenerator::~SecureGenerator() { OPENSSL_cleanse(secret_.data(), secret_.size()); }
SecureGenerator::SecureGenerator(SecureGenerator&&) noexcept = default;
SecureGenerator& SecureGenerator::operator=(SecureGenerator&&) noexcept = default;

void SecureGenerator::KeyFromEntropy() {
  generation_ = ForkGeneration();
  SORDINO_CHECK(entropy_(secret_) && entropy_(nonce_),
                "the operating system gave no entropy, so no private noise can be drawn");
  SORDINO_CHECK(secret_ != CipherKey{}, "the operating system gave zeros as entropy");
  cipher_ = CipherOf(secret_);
}

void SecureGenerator::RekeyAfterFork() {
  if (generation_ != ForkGeneration()) [[unlikely]]
    KeyFromEntropy();
}

void SecureGenerator::Fill(std::span<std::byte> out) {
  RekeyAfterFork();
  cipher_.Keystream(out);
}

SecureGenerator SecureGenerator::SubStream(const StreamKey& key) {
  RekeyAfterFork();
  CipherKey secret = Message("sordino sub-stream 1")
                         .Append(nonce_)
                         .Append(key)
                         .Append64(sub_streams_++)
                         .Derive(secret_);
  SecureGenerator stream(entropy_, secret, nonce_);
  OPENSSL_cleanse(secret.data(), secret.size());
  return stream;
}

InsecureSeededGenerator::InsecureSeededGenerator(std::uint64_t seed)
    : InsecureSeededGenerator(Message("sordino seed 1").Append64(seed).Derive(CipherKey{})) {}

InsecureSeededGenerator::InsecureSeededGenerator(const CipherKey& secret)
    : secret_(secret), generation_(ForkGeneration()), cipher_(CipherOf(secret)) {}

InsecureSeededGenerator::~InsecureSeededGenerator() = default;
InsecureSeededGenerator::InsecureSeededGenerator(InsecureSeededGenerator&&) noexcept = default;
InsecureSeededGenerator& InsecureSeededGenerator::operator=(InsecureSeededGenerator&&) noexcept =
    default;

void InsecureSeededGenerator::RekeyAfterFork() {
  if (generation_ == ForkGeneration()) [[likely]]
    return;
  generation_ = ForkGeneration();
  secret_ = Message("sordino fork 1").Append64(internal::ForkLineage()).Derive(secret_);
  cipher_ = CipherOf(secret_);
}

void InsecureSeededGenerator::Fill(std::span<std::byte> out) {
  RekeyAfterFork();
  cipher_.Keystream(out);
}

InsecureSeededGenerator InsecureSeededGenerator::SubStream(const StreamKey& key) {
  RekeyAfterFork();
  return InsecureSeededGenerator(
      Message("sordino seeded sub-stream 1").Append(key).Derive(secret_));
}

}  // namespace sordino
