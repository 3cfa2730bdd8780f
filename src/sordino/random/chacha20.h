// The block function of ChaCha20 (RFC 8439, section 2.3), for the processor and for GPUs.
//
// A block is 512 bits that whoever has no key cannot tell from uniform ones. Its input is a 256-bit
// key and 128 bits, which the RFC calls the counter (the first word) and the nonce. Unlike AES it
// is made of additions, exclusive ors and rotations of 32-bit words, so that it needs neither
// tables nor special instructions and takes the same time for all inputs.
#ifndef SORDINO_RANDOM_CHACHA20_H_
#define SORDINO_RANDOM_CHACHA20_H_

#include <cstdint>

#include "sordino/base/device_function.h"

namespace sordino {

// Words are those of the RFC: its bytes in little-endian order.
struct ChaChaKey {
  std::uint32_t word[8];
};
struct ChaChaInput {
  std::uint32_t word[4];
};
struct ChaChaBlock {
  std::uint32_t word[16];
};

SORDINO_DEVICE constexpr std::uint32_t RotatedLeft(std::uint32_t word, int bits) {
  return (word << bits) | (word >> (32 - bits));
}

SORDINO_DEVICE constexpr void ChaChaQuarterRound(std::uint32_t& a, std::uint32_t& b,
                                                 std::uint32_t& c, std::uint32_t& d) {
  a += b;
  d = RotatedLeft(d ^ a, 16);
  c += d;
  b = RotatedLeft(b ^ c, 12);
  a += b;
  d = RotatedLeft(d ^ a, 8);
  c += d;
  b = RotatedLeft(b ^ c, 7);
}

SORDINO_DEVICE constexpr ChaChaBlock ChaCha20(const ChaChaKey& key, const ChaChaInput& input) {
  // "expand 32-byte k"
  ChaChaBlock block = {{0x61707865, 0x3320646e, 0x79622d32, 0x6b206574,      //
                        key.word[0], key.word[1], key.word[2], key.word[3],  //
                        key.word[4], key.word[5], key.word[6], key.word[7],  //
                        input.word[0], input.word[1], input.word[2], input.word[3]}};
  std::uint32_t* const x = block.word;
  for (int double_round = 0; double_round < 10; ++double_round) {
    ChaChaQuarterRound(x[0], x[4], x[8], x[12]);
    ChaChaQuarterRound(x[1], x[5], x[9], x[13]);
    ChaChaQuarterRound(x[2], x[6], x[10], x[14]);
    ChaChaQuarterRound(x[3], x[7], x[11], x[15]);
    ChaChaQuarterRound(x[0], x[5], x[10], x[15]);
    ChaChaQuarterRound(x[1], x[6], x[11], x[12]);
    ChaChaQuarterRound(x[2], x[7], x[8], x[13]);
    ChaChaQuarterRound(x[3], x[4], x[9], x[14]);
  }
  x[0] += 0x61707865;
  x[1] += 0x3320646e;
  x[2] += 0x79622d32;
  x[3] += 0x6b206574;
  for (int i = 0; i < 8; ++i) x[4 + i] += key.word[i];
  for (int i = 0; i < 4; ++i) x[12 + i] += input.word[i];
  return block;
}

}  // namespace sordino

#endif  // SORDINO_RANDOM_CHACHA20_H_
