// What ranks that have a secret in common write so that nobody else can: values of the store with
// HMAC-SHA-256 (RFC 2104), and messages to each other with AES-256-GCM (NIST SP 800-38D), which
// also hides them.
#ifndef SORDINO_DISTRIBUTED_INTERNAL_MESSAGE_SEAL_H_
#define SORDINO_DISTRIBUTED_INTERNAL_MESSAGE_SEAL_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sordino::internal {

// 32 bytes from the operating system, as 64 hex digits.
std::string RandomHex();

inline constexpr std::size_t kMacBytes = 32;
// Of the parts, whose lengths are part of what is hashed.
std::string Mac(std::string_view key, const std::vector<std::string_view>& parts);
// Whether the two are equal, in a time that does not tell where they differ.
bool IsSameMac(std::string_view one, std::string_view other);

// The messages of one group. Each sender has a key of its own, derived from the secret and the
// group's nonce, which is new in each launch. A message is bound to its sender, its receiver and
// its number: changed, repeated, exchanged or foreign ones do not open. No pair of number and
// receiver is used twice by a sender, as GCM demands.
class MessageSeal {
 public:
  static constexpr std::size_t kTagBytes = 16;
  static constexpr std::uint32_t kAllReceivers = 0xffffffff;

  struct Address {
    int sender = 0;
    std::uint32_t receiver = kAllReceivers;
    std::uint64_t number = 0;
  };

  MessageSeal(std::string_view secret, std::string_view nonce, int ranks);

  // `sealed` has kTagBytes more than `plain`, and does not overlap with it.
  void Seal(const Address& address, const void* plain, std::size_t bytes, void* sealed) const;
  // `sealed` has `bytes` + kTagBytes bytes. False: it is not that message, and `plain` means
  // nothing.
  [[nodiscard]] bool Open(const Address& address, const void* sealed, void* plain,
                          std::size_t bytes) const;

 private:
  std::vector<std::string> keys_;  // of the senders
};

}  // namespace sordino::internal

#endif  // SORDINO_DISTRIBUTED_INTERNAL_MESSAGE_SEAL_H_
