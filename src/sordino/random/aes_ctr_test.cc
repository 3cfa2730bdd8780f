#include "sordino/random/aes_ctr.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sordino::internal {
namespace {

std::vector<std::byte> FromHex(std::string_view hex) {
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    bytes.push_back(static_cast<std::byte>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
  }
  return bytes;
}

template <std::size_t kSize>
std::array<std::byte, kSize> ArrayFromHex(std::string_view hex) {
  const std::vector<std::byte> bytes = FromHex(hex);
  std::array<std::byte, kSize> array{};
  for (std::size_t i = 0; i < kSize; ++i) array[i] = bytes.at(i);
  return array;
}

// NIST SP 800-38A, F.5.5 CTR-AES256.Encrypt.
constexpr std::string_view kKey =
    "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4";
constexpr std::string_view kCounter = "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff";
constexpr std::string_view kPlain =
    "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51"
    "30c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710";
constexpr std::string_view kCipher =
    "601ec313775789a5b7a7f504bbf3d228f443e3ca4d62b59aca84e990cacaf5c5"
    "2b0930daa23de94ce87017ba2d84988ddfc9c58db67aada613c2dd08457941a6";

TEST(AesCtr, GivesTheKeystreamOfTheNistVectors) {
  AesCtr cipher(ArrayFromHex<32>(kKey), ArrayFromHex<16>(kCounter));
  std::vector<std::byte> keystream(64);
  cipher.Keystream(keystream);
  const std::vector<std::byte> plain = FromHex(kPlain);
  const std::vector<std::byte> expected = FromHex(kCipher);
  for (std::size_t i = 0; i < keystream.size(); ++i) {
    EXPECT_EQ(keystream[i] ^ plain[i], expected[i]) << "byte " << i;
  }
}

TEST(AesCtr, StreamDoesNotDependOnHowItIsCutIntoCalls) {
  const auto key = ArrayFromHex<32>(kKey);
  const auto counter = ArrayFromHex<16>(kCounter);
  std::vector<std::byte> whole(100'000);
  AesCtr(key, counter).Keystream(whole);
  AesCtr cipher(key, counter);
  std::vector<std::byte> pieces(whole.size());
  std::span<std::byte> left(pieces);
  for (std::size_t size = 1; !left.empty(); size = size * 3 + 1) {
    const std::size_t now = std::min(size, left.size());
    cipher.Keystream(left.first(now));
    left = left.subspan(now);
  }
  EXPECT_EQ(pieces, whole);
}

TEST(AesCtrDeathTest, StopsWhenUsedAfterAMove) {
  AesCtr cipher(CipherKey{}, CounterBlock{});
  AesCtr other = std::move(cipher);
  std::array<std::byte, 8> out{};
  EXPECT_DEATH(cipher.Keystream(out), "moved from");  // NOLINT(bugprone-use-after-move)
}

}  // namespace
}  // namespace sordino::internal
