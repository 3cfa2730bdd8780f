// How a product of each example is cut into tiles, pieces and blocks: from shapes alone, never from
// values.
#ifndef SORDINO_KERNELS_FUSED_PLAN_H_
#define SORDINO_KERNELS_FUSED_PLAN_H_

#include <cstdint>

#include "sordino/kernels/fused_rows.h"
#include "sordino/kernels/fused_tile.h"
#include "sordino/kernels/fused_windows.h"

namespace sordino {

// The tiles that kernels are compiled for, and how many of their blocks fit a multiprocessor: for
// norms, and for sums, which have float64 accumulators besides.
template <typename TileOf, int kNormBlocksOf, int kSumBlocksOf>
struct FusedChoice {
  using Tile = TileOf;
  static constexpr int kNormBlocks = kNormBlocksOf;
  static constexpr int kSumBlocks = kSumBlocksOf;
};

template <typename... Choices>
struct FusedChoices {};

using RowsChoices = FusedChoices<FusedChoice<FusedTile<4, 4, 2, 4, 1>, 2, 1>,     // 128 x 128
                                 FusedChoice<FusedTile<4, 4, 2, 2, 1>, 3, 2>,     // 128 x 64
                                 FusedChoice<FusedTile<2, 4, 2, 2, 1>, 4, 3>,     // 64 x 64
                                 FusedChoice<FusedTile<2, 4, 1, 1, 4>, 4, 3>>;    // 32 x 32
using WindowChoices = FusedChoices<FusedChoice<FusedTile<2, 4, 1, 9, 1>, 2, 1>,   // 32 x 288
                                   FusedChoice<FusedTile<4, 4, 2, 4, 1>, 2, 1>,   // 128 x 128
                                   FusedChoice<FusedTile<2, 4, 2, 3, 1>, 3, 2>,   // 64 x 96
                                   FusedChoice<FusedTile<1, 4, 1, 9, 1>, 2, 2>,   // 16 x 288
                                   FusedChoice<FusedTile<2, 4, 1, 3, 2>, 2, 2>,   // 32 x 96
                                   FusedChoice<FusedTile<2, 4, 1, 1, 8>, 2, 1>,   // 32 x 32
                                   FusedChoice<FusedTile<1, 4, 1, 2, 4>, 2, 1>>;  // 16 x 64

// Gradients that are written out have one more tile (PlanWindowGradients); it leaves no registers
// for the accumulators of sums.
template <typename Choices, typename More>
struct WithChoice;
template <typename... Choices, typename More>
struct WithChoice<FusedChoices<Choices...>, More> {
  using Type = FusedChoices<Choices..., More>;
};
using WindowGradientChoices =
    WithChoice<WindowChoices, FusedChoice<FusedTile<4, 6, 1, 6, 1>, 2, 1>>::Type;  // 64 x 288

// How the examples are shared out to blocks, and how many pieces a block has in shared memory.
struct FusedShares {
  int examples_per_block = 1;
  int chunks = 1;
  int stages = 2;
  int stage_words = 0;  // of a piece
};

struct FusedPlan {
  int choice = -1;  // of the tiles; -1: the product has no plan
  int groups = 1;
  int tiles_m = 1;
  int tiles_n = 1;
  int output_warps = 1;
  FusedShares norms;
  FusedShares sums;

  int tiles() const { return groups * tiles_m * tiles_n; }
  // Float64 numbers of workspace.
  std::int64_t NormWorkspace(int examples) const {
    return static_cast<std::int64_t>(examples) * tiles() * output_warps;
  }
  std::int64_t SumWorkspace(int m, int n) const {
    return static_cast<std::int64_t>(sums.chunks) * groups * m * n;
  }
};

// `choice` of the tiles; -1 takes the one that is expected to be fastest.
FusedPlan PlanRows(const RowsSource& source, int choice = -1);

// Fills in the plan of a piece, of a source whose shapes are known.
FusedPlan PlanWindows(WindowSource& source, int groups, int choice = -1);

// The plan for gradients that are written out, of a source that has the plan `plan`: by the tile
// that they alone have, where that computes no more entries and adds them up in the same order, so
// that their bits are those of norms and sums.
FusedPlan PlanWindowGradients(WindowSource& source, const FusedPlan& plan);

}  // namespace sordino

#endif  // SORDINO_KERNELS_FUSED_PLAN_H_
