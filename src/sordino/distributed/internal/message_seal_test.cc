#include "sordino/distributed/internal/message_seal.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace sordino::internal {
namespace {

const std::string kText = "the sum of clipped gradients";

std::string SealedText(const MessageSeal& seal, const MessageSeal::Address& address) {
  std::string sealed(kText.size() + MessageSeal::kTagBytes, '\0');
  seal.Seal(address, kText.data(), kText.size(), sealed.data());
  return sealed;
}

bool Opens(const MessageSeal& seal, const MessageSeal::Address& address,
           const std::string& sealed) {
  std::string plain(kText.size(), '\0');
  return seal.Open(address, sealed.data(), plain.data(), plain.size()) && plain == kText;
}

constexpr MessageSeal::Address kAddress = {.sender = 1, .receiver = 2, .number = 7};

TEST(MessageSeal, OpensWhatWasSealedAndHidesIt) {
  const MessageSeal seal("secret", "nonce", 3);
  const std::string sealed = SealedText(seal, kAddress);
  EXPECT_TRUE(Opens(MessageSeal("secret", "nonce", 3), kAddress, sealed));
  EXPECT_EQ(sealed.find("clipped"), std::string::npos);
}

TEST(MessageSeal, AChangedBitDoesNotOpen) {
  const MessageSeal seal("secret", "nonce", 3);
  const std::string sealed = SealedText(seal, kAddress);
  for (std::size_t i = 0; i < 8 * sealed.size(); ++i) {
    std::string changed = sealed;
    changed[i / 8] = static_cast<char>(changed[i / 8] ^ (1 << (i % 8)));
    EXPECT_FALSE(Opens(seal, kAddress, changed)) << i;
  }
}

TEST(MessageSeal, AMessageOfAnotherRankPlaceOrLaunchDoesNotOpen) {
  const MessageSeal seal("secret", "nonce", 3);
  const std::string sealed = SealedText(seal, kAddress);
  EXPECT_FALSE(Opens(seal, {.sender = 0, .receiver = 2, .number = 7}, sealed));
  EXPECT_FALSE(Opens(seal, {.sender = 1, .receiver = 0, .number = 7}, sealed));
  EXPECT_FALSE(Opens(seal, {.sender = 1, .number = 7}, sealed));
  EXPECT_FALSE(Opens(seal, {.sender = 1, .receiver = 2, .number = 8}, sealed));
  EXPECT_FALSE(Opens(seal, {.sender = 1, .receiver = 2, .number = 7 + (1ULL << 32)}, sealed));
  EXPECT_FALSE(Opens(MessageSeal("secret", "earlier", 3), kAddress, sealed));
  EXPECT_FALSE(Opens(MessageSeal("guessed", "nonce", 3), kAddress, sealed));
}

TEST(MessageSeal, NothingCanBeSealedToo) {
  const MessageSeal seal("secret", "nonce", 2);
  std::string tag(MessageSeal::kTagBytes, '\0');
  seal.Seal(kAddress, nullptr, 0, tag.data());
  EXPECT_TRUE(seal.Open(kAddress, tag.data(), nullptr, 0));
  tag.front() = static_cast<char>(tag.front() ^ 1);
  EXPECT_FALSE(seal.Open(kAddress, tag.data(), nullptr, 0));
}

// python3 -c "import hmac; print(hmac.new(b'key', b'5:value1:k', 'sha256').hexdigest())"
TEST(Mac, IsHmacSha256OfThePartsWithTheirLengths) {
  std::string hex;
  for (const char byte : Mac("key", {"value", "k"})) {
    constexpr const char* kDigits = "0123456789abcdef";
    hex += kDigits[static_cast<unsigned char>(byte) >> 4];
    hex += kDigits[static_cast<unsigned char>(byte) & 15];
  }
  EXPECT_EQ(hex, "75a6bbf14615e3a0880c0766ada6383f847dbcec6f8cc4515503787bd5b54d4c");
  EXPECT_NE(Mac("key", {"ab", "c"}), Mac("key", {"a", "bc"}));
  EXPECT_TRUE(IsSameMac("same", "same"));
  EXPECT_FALSE(IsSameMac("same", "sama"));
  EXPECT_FALSE(IsSameMac("same", "same and more"));
}

}  // namespace
}  // namespace sordino::internal
