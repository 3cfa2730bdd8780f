// RFC 8439, and OpenSSL's cipher beside ours.
#include "sordino/random/chacha20.h"

#include <gtest/gtest.h>
#include <openssl/evp.h>

#include <array>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

namespace sordino {
namespace {

// The key 00 01 02 ... 1f of the RFC.
ChaChaKey CountingKey() {
  ChaChaKey key{};
  for (std::uint32_t i = 0; i < 8; ++i) key.word[i] = 0x03020100 + 0x04040404 * i;
  return key;
}

// Section 2.1.1.
TEST(ChaCha20, QuarterRoundIsThatOfTheRfc) {
  std::uint32_t a = 0x11111111;
  std::uint32_t b = 0x01020304;
  std::uint32_t c = 0x9b8d6f43;
  std::uint32_t d = 0x01234567;
  ChaChaQuarterRound(a, b, c, d);
  EXPECT_EQ(a, 0xea2a92f4U);
  EXPECT_EQ(b, 0xcb1cf8ceU);
  EXPECT_EQ(c, 0x4581472eU);
  EXPECT_EQ(d, 0x5881c4bbU);
}

// Section 2.3.2: counter 1, nonce 00:00:00:09:00:00:00:4a:00:00:00:00.
TEST(ChaCha20, BlockIsThatOfTheRfc) {
  const ChaChaBlock block = ChaCha20(CountingKey(), {{1, 0x09000000, 0x4a000000, 0}});
  const std::array<std::uint32_t, 16> wanted = {0xe4e7f110, 0x15593bd1, 0x1fdd0f50, 0xc47120a3,
                                                0xc7f4d1c7, 0x0368c033, 0x9aaa2204, 0x4e6cd4c3,
                                                0x466482d2, 0x09aa9f07, 0x05d7c214, 0xa2028bd9,
                                                0xd19c12b5, 0xb94e16de, 0xe883d0cb, 0x4e3c50a2};
  for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_EQ(block.word[i], wanted[i]) << i;
}

// Appendix A.1, test vector 1: zeros.
TEST(ChaCha20, BlockOfZerosIsThatOfTheRfc) {
  const ChaChaBlock block = ChaCha20(ChaChaKey{}, ChaChaInput{});
  EXPECT_EQ(block.word[0], 0xade0b876U);
  EXPECT_EQ(block.word[1], 0x903df1a0U);
  EXPECT_EQ(block.word[15], 0x8665eeb2U);
}

std::vector<std::uint32_t> OpenSslBlock(const ChaChaKey& key, const ChaChaInput& input) {
  using Context = std::unique_ptr<EVP_CIPHER_CTX, decltype(&EVP_CIPHER_CTX_free)>;
  const Context context(EVP_CIPHER_CTX_new(), &EVP_CIPHER_CTX_free);
  std::array<unsigned char, 32> key_bytes{};
  std::array<unsigned char, 16> input_bytes{};
  std::memcpy(key_bytes.data(), key.word, sizeof(key.word));
  std::memcpy(input_bytes.data(), input.word, sizeof(input.word));
  const std::array<unsigned char, 64> zeros{};
  std::array<unsigned char, 64> out{};
  int size = 0;
  EXPECT_EQ(EVP_EncryptInit_ex(context.get(), EVP_chacha20(), nullptr, key_bytes.data(),
                               input_bytes.data()),
            1);
  EXPECT_EQ(EVP_EncryptUpdate(context.get(), out.data(), &size, zeros.data(), 64), 1);
  EXPECT_EQ(size, 64);
  std::vector<std::uint32_t> words(16);
  std::memcpy(words.data(), out.data(), out.size());
  return words;
}

TEST(ChaCha20, BlocksAreThoseOfOpenSsl) {
  std::mt19937 random(1);
  for (int round = 0; round < 1000; ++round) {
    ChaChaKey key{};
    ChaChaInput input{};
    for (std::uint32_t& word : key.word) word = random();
    for (std::uint32_t& word : input.word) word = random();
    const ChaChaBlock block = ChaCha20(key, input);
    const std::vector<std::uint32_t> ours(block.word, block.word + 16);
    ASSERT_EQ(ours, OpenSslBlock(key, input)) << round;
  }
}

}  // namespace
}  // namespace sordino
