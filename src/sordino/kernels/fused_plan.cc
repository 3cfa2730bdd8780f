#include "sordino/kernels/fused_plan.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "sordino/kernels/alignment.h"

namespace sordino {
namespace {

// Blocks are made for this many multiprocessors; a device with another number runs them too.
constexpr int kMultiprocessors = 132;
// Words of shared memory: of one stage, of a multiprocessor, and the most of a block.
constexpr int kStageWords = 12800;
constexpr int kMultiprocessorWords = 54400;
constexpr int kMostWords = 40000;
constexpr int kMostStages = 4;
// Positions of a piece.
constexpr int kPiecePositions = 128;
constexpr int kWidePiece = 64;
// What loading a row or column of a tile costs beside the products of one of its entries.
constexpr double kLoadCost = 24;

int CeilDiv(int a, int b) { return (a + b - 1) / b; }

struct TileSize {
  int m = 0;
  int n = 0;
  int output_warps = 0;
  int reduction_words = 0;
  int norm_blocks = 0;
  int sum_blocks = 0;
};

template <typename... Choices>
auto SizesOf(FusedChoices<Choices...> /*choices*/) {
  return std::array<TileSize, sizeof...(Choices)>{
      TileSize{Choices::Tile::kM, Choices::Tile::kN, Choices::Tile::kOutputWarps,
               (Choices::Tile::kWarpsK - 1) * Choices::Tile::kM * Choices::Tile::kN,
               Choices::kNormBlocks, Choices::kSumBlocks}...};
}

template <typename Sizes>
int Cheapest(const Sizes& sizes, int m, int n) {
  int best = 0;
  double least = 0;
  for (std::size_t k = 0; k < sizes.size(); ++k) {
    const TileSize& tile = sizes[k];
    const double area =
        static_cast<double>(CeilDiv(m, tile.m)) * tile.m * CeilDiv(n, tile.n) * tile.n;
    const double cost = area * (1 + kLoadCost / tile.m + kLoadCost / tile.n);
    if (k == 0 || cost < least) {
      best = static_cast<int>(k);
      least = cost;
    }
  }
  return best;
}

// As many chunks of examples as fill the device best, with few waves of blocks.
FusedShares Share(int examples, int tiles, int blocks_per_multiprocessor) {
  const int slots = kMultiprocessors * blocks_per_multiprocessor;
  FusedShares best{std::max(1, examples), 1};
  double least = 0;
  for (int waves = 1; waves <= 4; ++waves) {
    const int wanted = static_cast<int>(
        std::clamp<std::int64_t>(std::int64_t{waves} * slots / tiles, 1, std::max(1, examples)));
    const int each = std::max(1, CeilDiv(examples, wanted));
    const int chunks = std::max(1, CeilDiv(examples, each));
    const auto used = CeilDiv(static_cast<int>(std::int64_t{tiles} * chunks), slots);
    // Beginning and ending a block costs about as much as half an example.
    const double cost = used * (each + 0.5);
    if (waves == 1 || cost < least) {
      best = {each, chunks};
      least = cost;
    }
  }
  return best;
}

int StagesOf(int stage_words, const TileSize& tile, int blocks) {
  const int words = std::min(kMultiprocessorWords / blocks, kMostWords) - tile.reduction_words;
  return std::clamp(words / stage_words, 2, kMostStages);
}

FusedShares SharesOf(const FusedPlan& plan, const TileSize& tile, int examples, int blocks,
                     int stage_words) {
  FusedShares shares = Share(examples, plan.tiles(), blocks);
  shares.stages = StagesOf(stage_words, tile, blocks);
  shares.stage_words = stage_words;
  return shares;
}

// `norm_words` and `sum_words` are those of a piece.
template <typename Source>
void FillShares(FusedPlan& plan, const TileSize& tile, const Source& source, int norm_words,
                int sum_words) {
  plan.output_warps = tile.output_warps;
  plan.tiles_m = CeilDiv(source.m, tile.m);
  plan.tiles_n = CeilDiv(source.n, tile.n);
  plan.norms = SharesOf(plan, tile, source.examples, tile.norm_blocks, norm_words);
  plan.sums = SharesOf(plan, tile, source.examples, tile.sum_blocks, sum_words);
}

// The smallest number from `least` on that is `remainder` modulo 32.
int WithRemainder(int least, int remainder) { return least + ((remainder - least) % 32 + 32) % 32; }

// Image channels that a tile of columns reads, at most.
int PatchChannels(const WindowSource& source, int columns) {
  const int volume = source.kernel_volume();
  int most = 1;
  for (int first = 0; first < source.n; first += columns) {
    const int last = std::min(first + columns, source.n) - 1;
    most = std::max(most, last / volume - first / volume + 1);
  }
  return most;
}

// Whether four pixels at a time can be copied of every line of the image.
bool LinesOfFours(const WindowSource& source) {
  const WindowSource::Steps5& step = source.image_step;
  const auto fits = [](int size, std::int64_t stride) { return size == 1 || stride % 4 == 0; };
  return kernels::IsAligned(source.image) && source.extent[2] % 4 == 0 && step.x == 1 &&
         fits(source.extent[1], step.y) && fits(source.extent[0], step.z) &&
         step.channel % 4 == 0 && step.image % 4 == 0;
}

// Words from line to line of a patch, a multiple of 4. Lines 8 or 24 banks apart, and the next
// channel where the next line of the kernel would be: then the columns that a warp reads at once
// lie in different banks. Short lines would waste too much for that.
int LinePitch(int words) {
  if (words <= 16) return CeilDiv(words, 4) * 4;
  return std::min(WithRemainder(words, 8), WithRemainder(words, 24));
}

// Lays out a piece of block_y x block_x positions; the words of a stage.
int LayOut(WindowSource& source, const TileSize& tile, int block_y, int block_x) {
  source.blocks_y = CeilDiv(source.positions[1], block_y);
  source.block_y = CeilDiv(source.positions[1], source.blocks_y);
  source.blocks_x = CeilDiv(source.positions[2], block_x);
  source.block_x = CeilDiv(source.positions[2], source.blocks_x);
  source.piece_rows = CeilDiv(source.block_y * source.block_x, kStepRows) * kStepRows;
  source.left_pitch = source.piece_rows + 4;
  source.patch_y =
      (source.block_y - 1) * source.stride[1] + (source.kernel[1] - 1) * source.dilation[1] + 1;
  source.patch_x =
      (source.block_x - 1) * source.stride[2] + (source.kernel[2] - 1) * source.dilation[2] + 1;
  source.image_fours = source.blocks_x == 1 && LinesOfFours(source);
  source.lead = source.image_fours ? (4 - source.padding[2] % 4) % 4 : 0;
  const int line = source.image_fours ? source.lead + std::max(source.patch_x,
                                                               source.padding[2] + source.extent[2])
                                      : source.patch_x;
  source.pitch_y = LinePitch(line);
  const int lines = source.kernel[1] * source.dilation[1] * source.pitch_y;
  source.pitch_z = WithRemainder(source.patch_y * source.pitch_y, lines % 32);
  source.pitch_channel = source.kernel[0] * source.pitch_z;
  source.patch_words = CeilDiv(PatchChannels(source, tile.n) * source.pitch_channel, 4) * 4;
  return source.piece_rows + tile.m * source.left_pitch + source.patch_words;
}

// Whole lines where they fit, and fewer or parts of them where not.
int PlanPiece(WindowSource& source, const TileSize& tile) {
  int block_x = std::min(source.positions[2], kWidePiece);
  int block_y = std::clamp(kPiecePositions / block_x, 1, source.positions[1]);
  int words = LayOut(source, tile, block_y, block_x);
  while (words > kStageWords && (source.block_y > 1 || source.block_x > kStepRows)) {
    if (source.block_y > 1) {
      block_y = source.block_y - 1;
    } else {
      block_x = source.block_x / 2;
    }
    words = LayOut(source, tile, block_y, block_x);
  }
  return words;
}

bool Fits(const Divider& divider) { return divider.divisor < (std::uint32_t{1} << 15); }

// The plan of a source with a tile; without a choice where it does not fit.
FusedPlan PlanTile(WindowSource& source, int groups, const TileSize& tile, int choice) {
  FusedPlan plan;
  plan.groups = groups;
  const int words = PlanPiece(source, tile);
  if (2 * words + tile.reduction_words > kMostWords) return plan;
  source.by_line_fours = Divider::Of(std::max(1, source.extent[2] / 4));
  source.by_patch_x = Divider::Of(source.patch_x);
  source.by_patch_y = Divider::Of(source.patch_y);
  source.by_kernel_z = Divider::Of(source.kernel[0]);
  source.by_piece_rows = Divider::Of(source.piece_rows);
  source.by_block_x = Divider::Of(source.block_x);
  if (!Fits(source.by_patch_x) || !Fits(source.by_line_fours) || !Fits(source.by_patch_y) ||
      !Fits(source.by_kernel_z)) {
    return plan;
  }
  const WindowSource::Steps5& step = source.signal_step;
  const bool aligned = kernels::IsAligned(source.signal);
  const bool lines_together = source.blocks_x == 1 && step.x == 1 &&
                              (source.positions[1] == 1 || step.y == source.positions[2]);
  const bool pieces_aligned = source.blocks_y == 1 || source.block_y * source.positions[2] % 4 == 0;
  source.signal_fours = aligned && lines_together && pieces_aligned && step.channel % 4 == 0 &&
                        step.image % 4 == 0 && (source.positions[0] == 1 || step.z % 4 == 0);
  FillShares(plan, tile, source, words, words);
  plan.choice = choice;
  return plan;
}

// Positions are added up in steps of kStepRows, in the order of the image, whatever the pieces are:
// where they are whole lines, and whole steps.
bool InOrderOfTheImage(const WindowSource& source) {
  return source.blocks_x == 1 &&
         (source.blocks_y == 1 || source.block_y * source.block_x % kStepRows == 0);
}

std::int64_t Entries(const FusedPlan& plan, const TileSize& tile) {
  return std::int64_t{plan.tiles()} * tile.m * tile.n;
}

}  // namespace

FusedPlan PlanRows(const RowsSource& source, int choice) {
  const auto sizes = SizesOf(RowsChoices());
  FusedPlan plan;
  plan.choice = choice >= 0 ? choice : Cheapest(sizes, source.m, source.n);
  const TileSize& tile = sizes[static_cast<std::size_t>(plan.choice)];
  const int row_words = tile.m + 8 + tile.n + 8;
  FillShares(plan, tile, source, RowsSource::kPieceRows * row_words,
             SumRowsSource::kPieceRows * row_words);
  return plan;
}

FusedPlan PlanWindows(WindowSource& source, int groups, int choice) {
  const auto sizes = SizesOf(WindowChoices());
  if (choice < 0) choice = Cheapest(sizes, source.m, source.n);
  return PlanTile(source, groups, sizes[static_cast<std::size_t>(choice)], choice);
}

FusedPlan PlanWindowGradients(WindowSource& source, const FusedPlan& plan) {
  const auto sizes = SizesOf(WindowGradientChoices());
  const TileSize& tile = sizes[static_cast<std::size_t>(plan.choice)];
  const int last = static_cast<int>(sizes.size()) - 1;
  WindowSource other = source;
  const FusedPlan better = PlanTile(other, plan.groups, sizes.back(), last);
  const bool same_order = tile.reduction_words == 0 && sizes.back().reduction_words == 0 &&
                          InOrderOfTheImage(source) && InOrderOfTheImage(other);
  if (better.choice < 0 || !same_order || Entries(better, sizes.back()) > Entries(plan, tile)) {
    return plan;
  }
  source = other;
  return better;
}

}  // namespace sordino
