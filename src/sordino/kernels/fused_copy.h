// Copies to shared memory, and what the sources of a product (fused_rows.h, fused_windows.h) have
// in common. The same code runs in the kernels and, thread by thread, in a test on the CPU.
//
// A source is the operands of a product of each example. It cuts the rows t of an example into
// pieces that fit a stage of shared memory. Entries outside of the operands are 0 there: they add 0
// to a gradient, whatever else is in the batch.
#ifndef SORDINO_KERNELS_FUSED_COPY_H_
#define SORDINO_KERNELS_FUSED_COPY_H_

#include <cstdint>

#include "sordino/kernels/fused_tile.h"

namespace sordino {

// Quotients by a number that the host knows, without a division: n < 2^16, 1 <= divisor < 2^15.
// With magic = floor(2^31 / d) + 1 and magic d - 2^31 <= d, the error of n magic / 2^31 is below
// n / 2^31 < 1 / d.
struct Divider {
  std::uint32_t divisor = 1;
  std::uint32_t magic = (std::uint32_t{1} << 31) + 1;

  static Divider Of(int number) {
    const auto divisor = static_cast<std::uint32_t>(number);
    return {divisor, (std::uint32_t{1} << 31) / divisor + 1};
  }
  SORDINO_HOST_DEVICE int Quotient(int n) const {
    return static_cast<int>(static_cast<std::uint64_t>(static_cast<std::uint32_t>(n)) * magic >>
                            31);
  }
  SORDINO_HOST_DEVICE int Remainder(int n, int quotient) const {
    return n - quotient * static_cast<int>(divisor);
  }
};

// Copies to shared memory: asynchronously on a device. What is not valid is 0 there.
SORDINO_HOST_DEVICE void CopyOne(float* to, const float* from, bool valid) {
#if defined(__CUDA_ARCH__)
  const auto place = static_cast<std::uint32_t>(__cvta_generic_to_shared(to));
  const int bytes = valid ? 4 : 0;
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(place), "l"(from), "r"(bytes));
#else
  *to = valid ? *from : 0.0F;
#endif
}

// The first `valid` of four; both addresses are multiples of 16 bytes.
SORDINO_HOST_DEVICE void CopyFour(float* to, const float* from, int valid) {
#if defined(__CUDA_ARCH__)
  const auto place = static_cast<std::uint32_t>(__cvta_generic_to_shared(to));
  const int bytes = 4 * valid;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(place), "l"(from), "r"(bytes));
#else
  for (int k = 0; k < 4; ++k) to[k] = k < valid ? from[k] : 0.0F;
#endif
}

// What a block works on: a tile of the product of one group of channels.
struct FusedPlace {
  int group = 0;
  int m = 0;  // the first row of the tile
  int n = 0;  // the first column
};

template <typename Tile>
SORDINO_HOST_DEVICE FusedPlace PlaceOfTile(int tile, int tiles_m, int tiles_n) {
  return {tile / tiles_n / tiles_m, tile / tiles_n % tiles_m * Tile::kM, tile % tiles_n * Tile::kN};
}

}  // namespace sordino

#endif  // SORDINO_KERNELS_FUSED_COPY_H_
