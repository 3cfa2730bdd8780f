// Discrete Gaussian noise by index, for the processor and for GPUs: the value of a coordinate is a
// function of (key, number of the draw, coordinate), so that any thread computes any value, and a
// device and a processor the same ones.
//
// Blocks. Four coordinates, 4 i ... 4 i + 3, are group i. The input of a block of ChaCha20 holds,
// in bits that do not overlap,
//   word 0         the low 32 bits of the group
//   word 1, 24-31  the part: 0, or 1 + c for more bits of candidate c
//   word 1, 16-23  the retry, below kIndexedRetries
//   word 1, 0-15   the bits above of the group, which is below 2^48
//   words 2, 3     the number of the draw
// so the map from (draw, group, retry, part) to inputs is injective: under one key no block is used
// for two things, and all of them together are independent uniform bits to whoever has no key.
//
// Candidates are those of internal/envelope.h, from the same alias table, with 25 bits of u. Part 0
// of a retry holds five of 102 bits, c = 0 ... 4:
//   word 3 c          fraction (32)
//   word 3 c + 1      position, its low bits (32)
//   word 3 c + 2      column (9), u (23)
//   word 15, 6 c      u, its high bits (2), sign (1), position, its high bits (3)
// The values of a group are its first four accepted candidates, in the order of retries and c. As
// candidates are independent, accepted ones are independent draws of the target. 1 to 2 % are
// rejected, so one block is enough for all groups but one in 250 or fewer.
//
// Decisions. u is compared with the acceptance a = M rho(x) / H_j:
//   1. u is below a lower bound of a over the bin: accepted (about 97 %);
//   2. else in doubles. With p the position and y = j w, rho(x) = rho(y) exp(-t), t = p (2 y + p) /
//      (2 sigma^2), which is below 1.33 (w <= 0.051 sigma and j <= 510, or w = 1 and t = 0). The
//      exponential is a Taylor polynomial of degree 14, off by less than 2^-34 and a few roundings,
//      of at least 0.26: with the table's 2^-40 the error is below kIndexedSlack = 2^-30 of a;
//   3. else, with probability 2^-25 and twice the slack, with 135 more bits of u in integers
//      (wide_fraction.h).
// Steps 1 and 2 decide as exact arithmetic would, whatever the roundings are, and step 3 has no
// roundings: values do not depend on the machine.
//
// How far from the distribution. Step 3 decides for rho + e and u + f in the place of rho and u,
// |e| < 2^15 and 0 <= f < 1 units of 2^-160: a candidate of bin j is decided otherwise with
// probability at most (M 2^15 + H_j) 2^-160 / H_j, and comes with probability H_j 2^-41. Over 511
// bins, with M < 2^41, that is less than 2^-135. Candidates are accepted with probability 0.9 at
// least, so a draw moves by less than 2^-133 in total variation. Together with the tail of
// discrete_gaussian.h (2 exp(-13^2 / 2) < 2^-120.9) it stays within the 2^-120 that is accounted.
// Whoever draws stops when kIndexedRetries blocks do not hold four values: 77 of 80 candidates were
// rejected, probability below 2^-200, or the table is broken.
//
// Timing. The cipher takes constant time. How many blocks and exponentials a group needs depends on
// its candidates as told in discrete_gaussian.h; a GPU computes thousands of groups at a time, and
// its time tells the sum over all of them at most.
#ifndef SORDINO_RANDOM_INDEXED_DRAW_H_
#define SORDINO_RANDOM_INDEXED_DRAW_H_

#include <cstddef>
#include <cstdint>

#include "sordino/base/device_function.h"
#include "sordino/random/chacha20.h"
#include "sordino/random/wide_fraction.h"

namespace sordino {

inline constexpr int kIndexedGroup = 4;               // coordinates
inline constexpr std::size_t kIndexedCandidates = 5;  // of a block
inline constexpr int kIndexedUBits = 25;
inline constexpr int kIndexedPositionBits = 35;  // at most
inline constexpr std::uint32_t kIndexedRetries = 16;
inline constexpr double kIndexedSlack = 0x1p-30;

// What step 1 reads.
struct IndexedQuickTable {
  static constexpr int kColumns = 512;
  struct Column {
    std::uint32_t cut;    // fraction < cut: the bin of the column's own number
    std::uint32_t alias;  // else this one
  };
  Column column[kColumns];
  std::uint32_t sure_below[kColumns];  // of a bin; 0 for the bin whose candidates are rejected
  std::int32_t position_bits;
  std::uint32_t bins;
  bool zero_is_halved;
};

// All that draws of one sigma read (indexed_gaussian.h makes it).
struct IndexedTable {
  IndexedQuickTable quick;
  double acceptance[IndexedQuickTable::kColumns];     // of the first value of a bin, times 2^25
  std::uint64_t weight[IndexedQuickTable::kColumns];  // H_j, twice that where zero is halved
  std::uint64_t factor;                               // M
  GaussianRate rate;
  double exponent_factor;  // 1 / (2 sigma^2)
  double slack;            // kIndexedSlack; tests enlarge it so that step 3 decides
};

struct IndexedBlockName {
  std::uint64_t draw;
  std::uint64_t group;
  std::uint32_t retry;
};

SORDINO_DEVICE constexpr ChaChaInput IndexedInput(const IndexedBlockName& name,
                                                  std::uint32_t part) {
  return {{static_cast<std::uint32_t>(name.group),
           part << 24 | name.retry << 16 | static_cast<std::uint32_t>(name.group >> 32),
           static_cast<std::uint32_t>(name.draw), static_cast<std::uint32_t>(name.draw >> 32)}};
}

struct IndexedCandidate {
  std::uint64_t magnitude;
  std::uint32_t bin;
  std::uint32_t u;
  bool negative;
};

SORDINO_DEVICE constexpr IndexedCandidate IndexedCandidateOf(const ChaChaBlock& block,
                                                             std::size_t c,
                                                             const IndexedQuickTable& table) {
  const std::uint32_t fraction = block.word[3 * c];
  const std::uint32_t mixed = block.word[3 * c + 2];
  const std::uint32_t rest = block.word[15] >> (6 * c);
  const std::uint64_t position =
      std::uint64_t{(rest >> 3) & 7} << 32 | std::uint64_t{block.word[3 * c + 1]};
  const std::uint32_t number = mixed % IndexedQuickTable::kColumns;
  const IndexedQuickTable::Column column = table.column[number];
  IndexedCandidate candidate{};
  candidate.bin = fraction < column.cut ? number : column.alias;
  candidate.magnitude = (std::uint64_t{candidate.bin} << table.position_bits) |
                        (position & ((std::uint64_t{1} << table.position_bits) - 1));
  candidate.u = (rest & 3) << 23 | mixed >> 9;
  candidate.negative = (rest & 4) != 0;
  return candidate;
}

// exp(-t) for t in [0, 1.33], off by less than 2^-33.
SORDINO_DEVICE constexpr double IndexedExponential(double t) {
  constexpr double kCoefficients[] = {1,
                                      1.0,
                                      1.0 / 2,
                                      1.0 / 6,
                                      1.0 / 24,
                                      1.0 / 120,
                                      1.0 / 720,
                                      1.0 / 5040,
                                      1.0 / 40320,
                                      1.0 / 362880,
                                      1.0 / 3628800,
                                      1.0 / 39916800,
                                      1.0 / 479001600,
                                      1.0 / 6227020800,
                                      1.0 / 87178291200};
  double sum = kCoefficients[14];
  SORDINO_DEVICE_UNROLL
  for (int k = 13; k >= 0; --k) sum = kCoefficients[k] - t * sum;
  return sum;
}

// Step 3.
SORDINO_DEVICE SORDINO_DEVICE_NOINLINE inline bool IndexedAcceptsExactly(
    const ChaChaKey& key, const IndexedBlockName& name, std::uint32_t c,
    const IndexedCandidate& candidate, const IndexedTable& table) {
  const ChaChaBlock more = ChaCha20(key, IndexedInput(name, 1 + c));
  WideFraction u{};
  for (int i = 0; i < kWideLimbs; ++i) u.limb[i] = more.word[i];
  u.limb[kWideLimbs - 1] = candidate.u << (32 - kIndexedUBits) | more.word[4] >> kIndexedUBits;
  return WideIsBelow(u, table.weight[candidate.bin], table.factor,
                     WideHeight(candidate.magnitude, table.rate));
}

// Steps 2 and 3.
SORDINO_DEVICE inline bool IndexedAccepts(const ChaChaKey& key, const IndexedBlockName& name,
                                          std::uint32_t c, const IndexedCandidate& candidate,
                                          const IndexedTable& table) {
  if (candidate.bin == table.quick.bins) return false;
  const std::uint64_t first = std::uint64_t{candidate.bin} << table.quick.position_bits;
  // Whole numbers below 2^46, which doubles hold.
  const auto position = static_cast<double>(candidate.magnitude - first);
  const auto sum = static_cast<double>(candidate.magnitude + first);
  const double bound =
      table.acceptance[candidate.bin] * IndexedExponential(position * sum * table.exponent_factor);
  const auto known = static_cast<double>(candidate.u);
  if (known + 1 <= bound * (1 - table.slack)) return true;
  if (known >= bound * (1 + table.slack)) return false;
  return IndexedAcceptsExactly(key, name, c, candidate, table);
}

// The values of the coordinates of one group; false when there are none, and the program has to
// stop. `quick` is table.quick or a copy of it, in a memory that is nearer.
[[nodiscard]] SORDINO_DEVICE inline bool DrawIndexedGroup(const ChaChaKey& key, std::uint64_t draw,
                                                          std::uint64_t group,
                                                          const IndexedQuickTable& quick,
                                                          const IndexedTable& table,
                                                          std::int64_t (&values)[kIndexedGroup]) {
  for (std::int64_t& value : values) value = 0;
  int count = 0;
  SORDINO_DEVICE_NO_UNROLL
  for (std::uint32_t retry = 0; retry < kIndexedRetries && count < kIndexedGroup; ++retry) {
    const IndexedBlockName name = {draw, group, retry};
    const ChaChaBlock block = ChaCha20(key, IndexedInput(name, 0));
    SORDINO_DEVICE_UNROLL
    for (std::size_t c = 0; c < kIndexedCandidates; ++c) {
      const IndexedCandidate candidate = IndexedCandidateOf(block, c, quick);
      bool accepted = candidate.u < quick.sure_below[candidate.bin];
      if (!accepted) {
        accepted = IndexedAccepts(key, name, static_cast<std::uint32_t>(c), candidate, table);
      }
      // Zero counts once: with one sign, or by half the weight of its bin.
      accepted &= !(candidate.negative & (candidate.magnitude == 0) & !quick.zero_is_halved);
      const auto magnitude = static_cast<std::int64_t>(candidate.magnitude);
      const std::int64_t value = candidate.negative ? -magnitude : magnitude;
      // A constant index keeps the values in registers.
      SORDINO_DEVICE_UNROLL
      for (int k = 0; k < kIndexedGroup; ++k) {
        if (accepted & (count == k)) values[k] = value;
      }
      count += accepted ? 1 : 0;
    }
  }
  return count >= kIndexedGroup;
}

}  // namespace sordino

#endif  // SORDINO_RANDOM_INDEXED_DRAW_H_
