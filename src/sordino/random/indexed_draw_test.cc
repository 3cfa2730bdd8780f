// Which bits of which block make which candidate.
#include "sordino/random/indexed_draw.h"

#include <gtest/gtest.h>

#include <set>
#include <tuple>
#include <utility>

namespace sordino {
namespace {

TEST(IndexedInput, IsAnotherForEveryBlock) {
  std::set<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>> seen;
  const std::uint64_t large[] = {0, 1, 2, 0xffff, 0xffffffff, 0x100000000, 0xffffffffffff};
  std::size_t count = 0;
  for (const std::uint64_t draw : {large[0], large[1], large[4], large[5], ~std::uint64_t{0}}) {
    for (const std::uint64_t group : large) {
      for (std::uint32_t retry = 0; retry < kIndexedRetries; ++retry) {
        for (std::uint32_t part = 0; part <= kIndexedCandidates; ++part) {
          const ChaChaInput input = IndexedInput({draw, group, retry}, part);
          seen.emplace(input.word[0], input.word[1], input.word[2], input.word[3]);
          ++count;
        }
      }
    }
  }
  EXPECT_EQ(seen.size(), count);
}

// Flipping one bit of a field flips one bit of the input, and no two fields the same one.
TEST(IndexedInput, FieldsDoNotOverlap) {
  std::set<std::pair<int, std::uint32_t>> bits;
  const auto flip = [&](const IndexedBlockName& name, std::uint32_t part) {
    const ChaChaInput input = IndexedInput(name, part);
    int changed = 0;
    for (int i = 0; i < 4; ++i) {
      if (input.word[i] == 0) continue;
      ++changed;
      EXPECT_TRUE(bits.emplace(i, input.word[i]).second);
    }
    EXPECT_EQ(changed, 1);
  };
  for (int b = 0; b < 64; ++b) flip({std::uint64_t{1} << b, 0, 0}, 0);
  for (int b = 0; b < 48; ++b) flip({0, std::uint64_t{1} << b, 0}, 0);
  for (int b = 0; b < 4; ++b) flip({0, 0, 1U << b}, 0);
  for (int b = 0; b < 3; ++b) flip({0, 0, 0}, 1U << b);
}

// Every bit of a block but two belongs to one field of one candidate.
TEST(IndexedCandidate, FieldsAreDistinctBitsOfTheBlock) {
  IndexedQuickTable table{};
  table.position_bits = kIndexedPositionBits;
  for (std::uint32_t i = 0; i < IndexedQuickTable::kColumns; ++i) table.column[i] = {0x80000000, i};
  int unused = 0;
  for (int bit = 0; bit < 512; ++bit) {
    ChaChaBlock block{};
    block.word[bit / 32] = 1U << (bit % 32);
    int touched = 0;
    for (std::size_t c = 0; c < kIndexedCandidates; ++c) {
      const IndexedCandidate candidate = IndexedCandidateOf(block, c, table);
      const std::uint64_t position = candidate.magnitude % (std::uint64_t{1} << 35);
      touched += (candidate.bin != 0 ? 1 : 0) + (position != 0 ? 1 : 0) +
                 (candidate.u != 0 ? 1 : 0) + (candidate.negative ? 1 : 0) +
                 (block.word[3 * c] != 0 ? 1 : 0);
    }
    EXPECT_LE(touched, 1) << bit;
    unused += touched == 0 ? 1 : 0;
  }
  EXPECT_EQ(unused, 2);
}

}  // namespace
}  // namespace sordino
