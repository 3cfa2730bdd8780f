// The rows of two matrices, multiplied by groups of four warps (wgmma, compute capability 9.0):
// where the operands lie in shared memory, and which entries a thread has. The same code runs in
// the kernels and, thread by thread, in a test on the CPU.
//
// A block has two groups, of 64 rows each, and a tile of 128 x 128 entries. The left operand goes
// through registers in the fragments of mma.m16n8k8 (fused_tile.h), each warp with 16 rows. The
// right one is read from shared memory, where wgmma wants the t of a column beside each other: in
// blocks of 8 columns x 4 t, which lie behind each other, first along the columns (PTX ISA, "Shared
// Memory Matrix Layout", K-major without swizzling).
#ifndef SORDINO_GRADIENTS_INTERNAL_DEVICE_FUSED_GROUPS_H_
#define SORDINO_GRADIENTS_INTERNAL_DEVICE_FUSED_GROUPS_H_

#include <cstdint>

#include "sordino/gradients/internal/device/fused_copy.h"
#include "sordino/gradients/internal/device/fused_rows.h"
#include "sordino/gradients/internal/device/fused_tile.h"

namespace sordino {

struct GroupTile {
  static constexpr int kM = 128;
  static constexpr int kN = 128;
  static constexpr int kThreads = 256;
  static constexpr int kOutputWarps = 8;
  static constexpr int kEntries = 64;
  static constexpr int kSteps = RowsSource::kPieceRows / kStepRows;  // of a piece
  static constexpr int kLeftPitch = kM + 8;
  static constexpr int kLeftWords = RowsSource::kPieceRows * kLeftPitch;
  // Blocks of the right operand: 8 columns x 4 t, one word each.
  static constexpr int kBlockWords = 32;
  static constexpr int kBlocksAcross = kN / 8;
  static constexpr int kStageWords = kLeftWords + RowsSource::kPieceRows * kN;
  static constexpr int kNormBlocks = 2;
  static constexpr int kSumBlocks = 1;
};

// Row and column of the tile of entry `index` of a thread. The 16 rows of a warp are dealt out in
// pairs, so that a thread reads its two at once.
SORDINO_HOST_DEVICE FusedEntry GroupEntryOf(int thread, int index) {
  const int lane = thread % kWarpLanes;
  return {thread / kWarpLanes * 16 + lane / 4 * 2 + index % 4 / 2,
          index / 4 * 8 + lane % 4 * 2 + index % 2};
}

struct alignas(8) Two {
  float x, y;
};

// The left fragment of one step.
SORDINO_HOST_DEVICE void GroupFragment(const float* stage, int thread, int step, float (&a)[4]) {
  const int lane = thread % kWarpLanes;
  const float* from = stage + (step * kStepRows + lane % 4) * GroupTile::kLeftPitch +
                      thread / kWarpLanes * 16 + lane / 4 * 2;
  const Two low = *reinterpret_cast<const Two*>(from);
  const Two high = *reinterpret_cast<const Two*>(from + 4 * GroupTile::kLeftPitch);
  a[0] = low.x;
  a[1] = low.y;
  a[2] = high.x;
  a[3] = high.y;
}

// The word of column n at row t of a piece, from the beginning of the right operand.
SORDINO_HOST_DEVICE int GroupRightWord(int t, int n) {
  return (t / 4 * GroupTile::kBlocksAcross + n / 8) * GroupTile::kBlockWords + n % 8 * 4 + t % 4;
}

// A piece of both operands. A warp copies a block of the right one with each instruction.
SORDINO_HOST_DEVICE void LoadForGroups(const RowsSource& source, const RowsSource::Cursor& cursor,
                                       const FusedPlace& place, int thread, float* stage) {
  source.LoadOne<GroupTile::kM, GroupTile::kLeftPitch, GroupTile::kThreads>(
      cursor, source.left, place.m, source.m, thread, stage);
  constexpr int kWarps = GroupTile::kThreads / kWarpLanes;
  constexpr int kBlocksDown = RowsSource::kPieceRows / 4;
  const int lane = thread % kWarpLanes;
  const int warp = thread / kWarpLanes;
  const int row = cursor.piece * RowsSource::kPieceRows + lane % 4;
  const float* from = source.right.values + cursor.example * source.right.example +
                      row * source.right.row + place.n + lane / 4;
  float* to = stage + GroupTile::kLeftWords + lane;
  SORDINO_NO_UNROLL
  for (int down = 0; down < kBlocksDown; ++down) {
    const bool wanted = row + down * 4 < source.rows;
    SORDINO_UNROLL
    for (int across = warp; across < GroupTile::kBlocksAcross; across += kWarps) {
      const bool valid = wanted && place.n + across * 8 + lane / 4 < source.n;
      CopyOne(to + (down * GroupTile::kBlocksAcross + across) * GroupTile::kBlockWords,
              valid ? from + across * 8 : source.right.values, valid);
    }
    from += 4 * source.right.row;
  }
}

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_INTERNAL_DEVICE_FUSED_GROUPS_H_
