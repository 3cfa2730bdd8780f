// AES-256 in counter mode (NIST SP 800-38A, section 6.5) as a source of keystream bytes.
//
// The keystream is the encryption of successive 128-bit counter blocks, big-endian, starting at
// `counter`. Distinguishing it from uniform bits is breaking AES-256; one key serves at most
// 2^64 blocks here, which no program can draw. OpenSSL supplies the cipher, so it runs on the
// AES instructions of the processor and takes constant time.
#ifndef SORDINO_RANDOM_AES_CTR_H_
#define SORDINO_RANDOM_AES_CTR_H_

#include <array>
#include <cstddef>
#include <memory>
#include <span>

namespace sordino::internal {

using CipherKey = std::array<std::byte, 32>;
using CounterBlock = std::array<std::byte, 16>;

class AesCtr {
 public:
  AesCtr(const CipherKey& key, const CounterBlock& counter);
  ~AesCtr();
  AesCtr(AesCtr&&) noexcept;
  AesCtr& operator=(AesCtr&&) noexcept;

  // Overwrites `out` with the next out.size() bytes of the keystream. Stops the program when
  // OpenSSL fails or the object was moved from: without keystream there is no noise.
  void Keystream(std::span<std::byte> out);

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

}  // namespace sordino::internal

#endif  // SORDINO_RANDOM_AES_CTR_H_
