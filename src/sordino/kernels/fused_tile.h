// How the threads of a block share out one tile of a product, and where in shared memory each finds
// what it multiplies. The same code runs in the kernels and, thread by thread, in a test on the
// CPU.
//
// A tile of g_e [m, n] = sum_t left[t, i] right[t, j] has kM rows and kN columns. A warp has
// kMTiles * 16 rows and kNTiles * 8 columns of it, and every kWarpsK-th group of eight t. Tensor
// cores take fragments of 16 x 8 x 8 (PTX ISA, mma.m16n8k8): a thread has the entries (g, t),
// (g + 8, t), (g, t + 4), (g + 8, t + 4) of the left one and (t, g), (t + 4, g) of the right one,
// where g = lane / 4 and t = lane % 4, and the results (g, 2 t), (g, 2 t + 1), (g + 8, 2 t),
// (g + 8, 2 t + 1). Which row of the tile is which row of a fragment is free, and chosen so that
// reading is fast.
#ifndef SORDINO_KERNELS_FUSED_TILE_H_
#define SORDINO_KERNELS_FUSED_TILE_H_

#include <bit>
#include <cstdint>

#include "sordino/kernels/host_device.h"

#if defined(__CUDA_ARCH__)
#define SORDINO_UNROLL _Pragma("unroll")
#define SORDINO_NO_UNROLL _Pragma("unroll 1")
#else
#define SORDINO_UNROLL
#define SORDINO_NO_UNROLL
#endif

namespace sordino {

inline constexpr int kWarpLanes = 32;
inline constexpr int kStepRows = 8;  // t that one step multiplies

template <int kMTilesOf, int kNTilesOf, int kWarpsMOf, int kWarpsNOf, int kWarpsKOf>
struct FusedTile {
  static constexpr int kMTiles = kMTilesOf;
  static constexpr int kNTiles = kNTilesOf;
  static constexpr int kWarpsM = kWarpsMOf;
  static constexpr int kWarpsN = kWarpsNOf;
  static constexpr int kWarpsK = kWarpsKOf;
  static constexpr int kWarpM = 16 * kMTiles;
  static constexpr int kWarpN = 8 * kNTiles;
  static constexpr int kM = kWarpM * kWarpsM;
  static constexpr int kN = kWarpN * kWarpsN;
  static constexpr int kOutputWarps = kWarpsM * kWarpsN;
  static constexpr int kThreads = kWarpLanes * kOutputWarps * kWarpsK;
  static constexpr int kEntries = 4 * kMTiles * kNTiles;  // of the tile, of one thread
};

// Where a thread works.
struct ThreadPlace {
  int lane = 0;
  int row = 0;     // of the tile, the first of its warp
  int column = 0;  // likewise
  int share = 0;   // of the steps: share, share + kWarpsK, ...
  int output_warp = 0;
};

template <typename Tile>
SORDINO_HOST_DEVICE ThreadPlace PlaceOf(int thread) {
  const int warp = thread / kWarpLanes;
  ThreadPlace place;
  place.lane = thread % kWarpLanes;
  place.output_warp = warp % Tile::kOutputWarps;
  place.share = warp / Tile::kOutputWarps;
  place.row = place.output_warp / Tile::kWarpsN * Tile::kWarpM;
  place.column = place.output_warp % Tile::kWarpsN * Tile::kWarpN;
  return place;
}

// Row and column, in the part of a warp, of entry `index` of a thread. kVector: the operands lie
// with the features beside each other, and a thread reads four at once; else with t beside each
// other.
struct FusedEntry {
  int row = 0;
  int column = 0;
};

template <typename Tile, bool kTensorCores, bool kVector>
SORDINO_HOST_DEVICE FusedEntry EntryOf(int lane, int index) {
  if constexpr (kTensorCores) {
    const int fragment = index / 4;
    const int m = fragment / Tile::kNTiles;
    const int n = fragment % Tile::kNTiles;
    const int half = index % 4 / 2;
    const int g = lane / 4;
    const int column = lane % 4 * 2 + index % 2;
    if constexpr (kVector) {
      return {m / 2 * 32 + g * 4 + m % 2 * 2 + half, n / 4 * 32 + column * 4 + n % 4};
    } else {
      return {m * 16 + half * 8 + g, n * 8 + column};
    }
  } else {
    const int i = index / Tile::kNTiles;
    const int j = index % Tile::kNTiles;
    if constexpr (kVector) {
      return {i / 4 * 16 + lane / 8 * 4 + i % 4, j / 4 * 32 + lane % 8 * 4 + j % 4};
    } else {
      return {i * 4 + lane / 8, j * 8 + lane % 8};
    }
  }
}

// value / kShiftedUnit, exactly: the bits of a float32 number in the places of a float64 one.
// Converting takes a GPU as long as ten multiplications. For finite numbers (subnormal ones too).
inline constexpr double kShiftedUnit = 0x1p896;

SORDINO_HOST_DEVICE double Shifted(float value) {
#if defined(__CUDA_ARCH__)
  const int bits = __float_as_int(value);
  return __hiloint2double((bits >> 3) & static_cast<int>(0x8fffffffU), bits << 29);
#else
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint64_t sign = bits >> 31;
  return std::bit_cast<double>(sign << 63 | static_cast<std::uint64_t>(bits & 0x7fffffffU) << 29);
#endif
}

struct alignas(16) Four {
  float x, y, z, w;
};

// Offsets in shared memory, and inside of an image, are counted in 32 bits.
template <typename Value>
SORDINO_HOST_DEVICE Value* At(Value* values, int offset) {
  return values + offset;
}

SORDINO_HOST_DEVICE Four ReadFour(const float* values) {
  return *reinterpret_cast<const Four*>(values);
}

// Operands with their features beside each other: entry (t, i) at t * pitch + i.
template <typename Tile>
struct FeatureMajor {
  static constexpr bool kVector = true;
  // Entries of a tile beyond the product are 0, or NaN where the product has a NaN.
  static constexpr bool kZeroBeyond = true;
  static_assert(Tile::kMTiles % 2 == 0 && Tile::kNTiles % 4 == 0);
  static constexpr int kLeftPitch = Tile::kM + 8;  // 8 modulo 32: no two threads meet in a bank
  static constexpr int kRightPitch = Tile::kN + 8;

  const float* left;   // of this stage
  const float* right;  // likewise

  // The fragments of a thread for the t of one step.
  SORDINO_HOST_DEVICE void Fragments(const ThreadPlace& place, int step,
                                     float (&a)[Tile::kMTiles][4],
                                     float (&b)[Tile::kNTiles][2]) const {
    const int g = place.lane / 4;
    const int t = step * kStepRows + place.lane % 4;
    const float* l = At(left, t * kLeftPitch + place.row + g * 4);
    const float* r = At(right, t * kRightPitch + place.column + g * 4);
    SORDINO_UNROLL
    for (int m = 0; m < Tile::kMTiles; m += 2) {
      const Four low = ReadFour(At(l, m * 16));
      const Four high = ReadFour(At(l, m * 16 + 4 * kLeftPitch));
      a[m][0] = low.x;
      a[m][1] = low.y;
      a[m + 1][0] = low.z;
      a[m + 1][1] = low.w;
      a[m][2] = high.x;
      a[m][3] = high.y;
      a[m + 1][2] = high.z;
      a[m + 1][3] = high.w;
    }
    SORDINO_UNROLL
    for (int n = 0; n < Tile::kNTiles; n += 4) {
      const Four low = ReadFour(At(r, n * 8));
      const Four high = ReadFour(At(r, n * 8 + 4 * kRightPitch));
      b[n][0] = low.x;
      b[n + 1][0] = low.y;
      b[n + 2][0] = low.z;
      b[n + 3][0] = low.w;
      b[n][1] = high.x;
      b[n + 1][1] = high.y;
      b[n + 2][1] = high.z;
      b[n + 3][1] = high.w;
    }
  }

  // The rows and columns of a thread at one t.
  SORDINO_HOST_DEVICE void Values(const ThreadPlace& place, int t, float (&a)[4 * Tile::kMTiles],
                                  float (&b)[Tile::kNTiles]) const {
    const float* l = At(left, t * kLeftPitch + place.row + place.lane / 8 * 4);
    const float* r = At(right, t * kRightPitch + place.column + place.lane % 8 * 4);
    SORDINO_UNROLL
    for (int m = 0; m < Tile::kMTiles; ++m) {
      const Four four = ReadFour(At(l, m * 16));
      a[4 * m] = four.x;
      a[4 * m + 1] = four.y;
      a[4 * m + 2] = four.z;
      a[4 * m + 3] = four.w;
    }
    SORDINO_UNROLL
    for (int n = 0; n < Tile::kNTiles; n += 4) {
      const Four four = ReadFour(At(r, n * 8));
      b[n] = four.x;
      b[n + 1] = four.y;
      b[n + 2] = four.z;
      b[n + 3] = four.w;
    }
  }
};

// The operands of a convolution: the left one with t beside each other, entry (t, i) at
// i * left_pitch + t; the right one as a patch of the image, where column j is the image moved by
// offsets[j] and position t lies at positions[t].
template <typename Tile>
struct ImagePatch {
  static constexpr bool kVector = false;
  static constexpr bool kZeroBeyond = false;

  const float* left;
  const float* patch;
  const int* positions;
  int left_pitch;
  int offsets[Tile::kNTiles];  // of the columns of this thread

  SORDINO_HOST_DEVICE void Fragments(const ThreadPlace& place, int step,
                                     float (&a)[Tile::kMTiles][4],
                                     float (&b)[Tile::kNTiles][2]) const {
    const int t = step * kStepRows + place.lane % 4;
#if defined(__CUDA_ARCH__)
    // One instruction reads four pieces of 8 x 4; lane 8 k + r says where row r of piece k is.
    const float* l = At(
        left, (place.row + place.lane % 16) * left_pitch + step * kStepRows + place.lane / 16 * 4);
    SORDINO_UNROLL
    for (int m = 0; m < Tile::kMTiles; ++m) {
      const auto from =
          static_cast<std::uint32_t>(__cvta_generic_to_shared(At(l, m * 16 * left_pitch)));
      std::uint32_t bits[4];
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                   : "=r"(bits[0]), "=r"(bits[1]), "=r"(bits[2]), "=r"(bits[3])
                   : "r"(from));
      SORDINO_UNROLL
      for (int k = 0; k < 4; ++k) a[m][k] = __uint_as_float(bits[k]);
    }
#else
    const float* l = At(left, (place.row + place.lane / 4) * left_pitch + t);
    for (int m = 0; m < Tile::kMTiles; ++m) {
      a[m][0] = *At(l, m * 16 * left_pitch);
      a[m][1] = *At(l, (m * 16 + 8) * left_pitch);
      a[m][2] = *At(l, m * 16 * left_pitch + 4);
      a[m][3] = *At(l, (m * 16 + 8) * left_pitch + 4);
    }
#endif
    const float* low = patch + positions[t];
    const float* high = patch + positions[t + 4];
    SORDINO_UNROLL
    for (int n = 0; n < Tile::kNTiles; ++n) {
      b[n][0] = low[offsets[n]];
      b[n][1] = high[offsets[n]];
    }
  }

  SORDINO_HOST_DEVICE void Values(const ThreadPlace& place, int t, float (&a)[4 * Tile::kMTiles],
                                  float (&b)[Tile::kNTiles]) const {
    const float* l = At(left, (place.row + place.lane / 8) * left_pitch + t);
    SORDINO_UNROLL
    for (int i = 0; i < 4 * Tile::kMTiles; ++i) a[i] = *At(l, i * 4 * left_pitch);
    const float* moved = patch + positions[t];
    SORDINO_UNROLL
    for (int n = 0; n < Tile::kNTiles; ++n) b[n] = moved[offsets[n]];
  }
};

}  // namespace sordino

#endif  // SORDINO_KERNELS_FUSED_TILE_H_
