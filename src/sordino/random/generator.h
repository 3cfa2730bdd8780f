// Sources of random bits for noise and for sampling.
//
// Differential privacy holds against anyone who cannot predict the noise, so the bits come from
// a cipher keyed with entropy of the operating system; there is no fallback, and a program that
// gets no entropy stops. A generator is passed to whoever draws, never global.
//
// Sub-streams. SubStream(key) derives a generator for one tensor of one rank at one step: its
// 256-bit secret is HMAC-SHA-256 of (run nonce, step, rank, tensor) under the parent's secret, so
// the streams of distinct keys are independent as far as anyone without the secret can tell
// (HMAC as a pseudo-random function, RFC 2104; the construction is the expand step of HKDF,
// RFC 5869). An offset into one long stream would overlap as soon as a caller drew more than it
// announced; a secret of its own cannot.
//
// Forks. A child process never repeats its parent: a SecureGenerator that finds itself in a
// forked child takes a new secret and a new nonce from the operating system before its next byte,
// buffered bits included.
//
// Threads. A generator belongs to one thread at a time; derive one sub-stream a thread.
#ifndef SORDINO_RANDOM_GENERATOR_H_
#define SORDINO_RANDOM_GENERATOR_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "sordino/random/aes_ctr.h"

namespace sordino {

namespace internal {
struct SecureGeneratorPeer;

// Fills `out` from the operating system; false when it cannot.
using EntropySource = bool (*)(std::span<std::byte> out);
bool OsEntropy(std::span<std::byte> out);
}  // namespace internal

// What a sub-stream is for. The run is named by the nonce of the generator itself.
struct StreamKey {
  std::uint64_t step = 0;
  std::uint32_t rank = 0;
  std::uint32_t tensor = 0;
};

class Generator {
 public:
  virtual ~Generator();
  // A copy would give out the same bits twice.
  Generator(const Generator&) = delete;
  Generator& operator=(const Generator&) = delete;

  // Overwrites `out` with independent uniform bits.
  virtual void Fill(std::span<std::byte> out) = 0;

  // False for a generator whose bits can be computed by others: whatever is made with it carries
  // no privacy and must say so.
  virtual bool IsPrivate() const = 0;

  // 64 uniform bits out of a buffer that Fill refills.
  std::uint64_t Next64();

 protected:
  Generator() = default;
  Generator(Generator&& other) noexcept;
  Generator& operator=(Generator&& other) noexcept;

 private:
  void Refill();

  static constexpr std::size_t kWords = 64;
  std::array<std::uint64_t, kWords> buffer_;
  std::size_t next_ = kWords;
  std::uint64_t generation_ = 0;  // of the process that filled the buffer
};

// What several processes of one run draw the same bits from (training/trainer.h). Whoever
// knows it knows all these bits, so it is sent only to processes that see the private data anyway.
class SharedSecret {
 public:
  static constexpr std::size_t kBytes = 48;

  SharedSecret();  // of the operating system; stops the program when there is no entropy
  explicit SharedSecret(std::span<const std::byte, kBytes> bytes);
  ~SharedSecret();
  SharedSecret(const SharedSecret&) = delete;
  SharedSecret& operator=(const SharedSecret&) = delete;

  std::span<const std::byte, kBytes> bytes() const { return bytes_; }

 private:
  std::array<std::byte, kBytes> bytes_{};
};

// AES-256-CTR with 256 bits of secret and a 128-bit run nonce from the operating system
// (getrandom). Stops the program when there is no entropy.
class SecureGenerator final : public Generator {
 public:
  using Nonce = std::array<std::byte, 16>;

  SecureGenerator();
  // The same bits in every process that has the secret and asks for the same sub-streams in the
  // same order. (A forked child takes a secret of its own, as always.)
  explicit SecureGenerator(const SharedSecret& shared);
  ~SecureGenerator() override;
  SecureGenerator(SecureGenerator&&) noexcept;
  SecureGenerator& operator=(SecureGenerator&&) noexcept;

  void Fill(std::span<std::byte> out) override;
  bool IsPrivate() const override { return true; }

  // An independent stream for `key`. Asking twice for the same key gives two different streams:
  // repeated noise cancels, so a caller's slip must not produce it.
  SecureGenerator SubStream(const StreamKey& key);

  // Names the run in records; not a secret.
  const Nonce& nonce() const { return nonce_; }

 private:
  friend struct internal::SecureGeneratorPeer;
  explicit SecureGenerator(internal::EntropySource entropy);
  SecureGenerator(internal::EntropySource entropy, const internal::CipherKey& secret,
                  const Nonce& nonce);
  void KeyFromEntropy();
  void RekeyAfterFork();

  internal::EntropySource entropy_;
  internal::CipherKey secret_{};
  Nonce nonce_{};
  std::uint64_t sub_streams_ = 0;
  std::uint64_t generation_ = 0;
  internal::AesCtr cipher_;
};

// The same cipher with a secret computed from a 64-bit seed: for tests and for reproducing a run.
// Anyone who knows or guesses the seed can subtract the noise, so nothing made with it is
// private. The same seed gives the same bits, and the same (seed, key) the same sub-stream, on
// every machine. In a forked child an inherited generator continues with a stream of its own,
// which depends on the order of the forks only.
class InsecureSeededGenerator final : public Generator {
 public:
  explicit InsecureSeededGenerator(std::uint64_t seed);
  ~InsecureSeededGenerator() override;
  InsecureSeededGenerator(InsecureSeededGenerator&&) noexcept;
  InsecureSeededGenerator& operator=(InsecureSeededGenerator&&) noexcept;

  void Fill(std::span<std::byte> out) override;
  bool IsPrivate() const override { return false; }

  InsecureSeededGenerator SubStream(const StreamKey& key);

 private:
  explicit InsecureSeededGenerator(const internal::CipherKey& secret);
  void RekeyAfterFork();

  internal::CipherKey secret_;
  std::uint64_t generation_;
  internal::AesCtr cipher_;
};

}  // namespace sordino

#endif  // SORDINO_RANDOM_GENERATOR_H_
