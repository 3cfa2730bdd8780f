// The kernels' plans, addresses and fragments, run thread by thread on the CPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "sordino/kernels/fused_copy.h"
#include "sordino/kernels/fused_plan.h"
#include "sordino/kernels/fused_rows.h"
#include "sordino/kernels/fused_tile.h"
#include "sordino/kernels/fused_windows.h"

namespace sordino {
namespace {

// What a kernel gives: the gradients of all examples, and how often each entry was counted.
struct Emulated {
  std::vector<double> gradients;  // [examples, groups * m, n]
  std::vector<int> written;       // likewise
};

// mma.m16n8k8 for the lanes of a warp, as the PTX ISA describes it.
template <typename Tile>
using LeftFragments = std::array<float[Tile::kMTiles][4], kWarpLanes>;
template <typename Tile>
using RightFragments = std::array<float[Tile::kNTiles][2], kWarpLanes>;
template <typename Tile>
using ThreadSums = std::array<double, Tile::kEntries>;

template <typename Tile>
void MultiplyEmulated(const LeftFragments<Tile>& a, const RightFragments<Tile>& b, int m, int n,
                      ThreadSums<Tile>* sums) {
  float left[16][8];
  float right[8][8];
  for (std::size_t lane = 0; lane < kWarpLanes; ++lane) {
    const std::size_t g = lane / 4;
    const std::size_t t = lane % 4;
    left[g][t] = a[lane][m][0];
    left[g + 8][t] = a[lane][m][1];
    left[g][t + 4] = a[lane][m][2];
    left[g + 8][t + 4] = a[lane][m][3];
    right[t][g] = b[lane][n][0];
    right[t + 4][g] = b[lane][n][1];
  }
  const auto first = static_cast<std::size_t>(m * Tile::kNTiles + n) * 4;
  for (std::size_t lane = 0; lane < kWarpLanes; ++lane) {
    for (std::size_t k = 0; k < 4; ++k) {
      const std::size_t row = lane / 4 + k / 2 * 8;
      const std::size_t column = lane % 4 * 2 + k % 2;
      for (std::size_t t = 0; t < 8; ++t) {
        sums[lane][first + k] += static_cast<double>(left[row][t] * right[t][column]);
      }
    }
  }
}

// One step of a warp; `views` and `sums` are of its lanes.
template <typename Tile, bool kTensorCores, typename View>
void EmulateStep(int warp, int step, const std::vector<View>& views, ThreadSums<Tile>* sums) {
  if constexpr (kTensorCores) {
    LeftFragments<Tile> a;
    RightFragments<Tile> b;
    for (std::size_t lane = 0; lane < kWarpLanes; ++lane) {
      views[lane].Fragments(PlaceOf<Tile>(warp * kWarpLanes + static_cast<int>(lane)), step,
                            a[lane], b[lane]);
    }
    for (int m = 0; m < Tile::kMTiles; ++m) {
      for (int n = 0; n < Tile::kNTiles; ++n) MultiplyEmulated<Tile>(a, b, m, n, sums);
    }
  } else {
    for (int t = step * kStepRows; t < (step + 1) * kStepRows; ++t) {
      for (std::size_t lane = 0; lane < kWarpLanes; ++lane) {
        float a[4 * Tile::kMTiles];
        float b[Tile::kNTiles];
        views[lane].Values(PlaceOf<Tile>(warp * kWarpLanes + static_cast<int>(lane)), t, a, b);
        for (int k = 0; k < Tile::kEntries; ++k) {
          sums[lane][static_cast<std::size_t>(k)] +=
              static_cast<double>(a[k / Tile::kNTiles] * b[k % Tile::kNTiles]);
        }
      }
    }
  }
}

// One piece: what is not loaded is not a number.
template <typename Tile, bool kTensorCores, typename Source>
void EmulatePiece(const Source& source, const FusedPlace& where, int piece,
                  typename Source::Cursor& cursor, std::vector<ThreadSums<Tile>>& sums) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<Four> memory(static_cast<std::size_t>(source.template stage_words<Tile>() + 3) / 4,
                           Four{nan, nan, nan, nan});
  auto* stage = reinterpret_cast<float*>(memory.data());
  for (int thread = 0; thread < Tile::kThreads; ++thread) {
    source.template Prepare<Tile>(thread, stage);
  }
  for (int thread = 0; thread < Tile::kThreads; ++thread) {
    source.template Load<Tile>(cursor, where, thread, stage);
  }
  source.Advance(cursor);
  for (int warp = 0; warp < Tile::kThreads / kWarpLanes; ++warp) {
    std::vector<typename Source::template View<Tile>> views;
    views.reserve(kWarpLanes);
    for (int lane = 0; lane < kWarpLanes; ++lane) {
      views.push_back(source.template MakeView<Tile, kTensorCores>(
          where, PlaceOf<Tile>(warp * kWarpLanes + lane)));
      source.template Show<Tile>(stage, views.back());
    }
    const int share = PlaceOf<Tile>(warp * kWarpLanes).share;
    for (int step = share; step < source.Steps(piece); step += Tile::kWarpsK) {
      EmulateStep<Tile, kTensorCores>(warp, step, views,
                                      &sums[static_cast<std::size_t>(warp) * kWarpLanes]);
    }
  }
}

template <typename Tile, bool kTensorCores, typename Source>
Emulated Emulate(const Source& source, const FusedPlan& plan, const FusedShares& shares) {
  constexpr bool kVector = Source::template View<Tile>::kVector;
  Emulated result;
  const std::int64_t entries = std::int64_t{plan.groups} * source.m * source.n;
  result.gradients.assign(static_cast<std::size_t>(source.examples * entries), 0);
  result.written.assign(result.gradients.size(), 0);
  EXPECT_EQ(shares.stage_words, source.template stage_words<Tile>());
  for (int tile = 0; tile < plan.tiles(); ++tile) {
    const FusedPlace where = PlaceOfTile<Tile>(tile, plan.tiles_m, plan.tiles_n);
    typename Source::Cursor cursor;
    for (int example = 0; example < source.examples; ++example) {
      std::vector<ThreadSums<Tile>> sums(Tile::kThreads, ThreadSums<Tile>{});
      for (int piece = 0; piece < source.pieces(); ++piece) {
        EXPECT_EQ(cursor.example, example);
        EmulatePiece<Tile, kTensorCores>(source, where, piece, cursor, sums);
      }
      for (int thread = 0; thread < Tile::kThreads; ++thread) {
        const ThreadPlace place = PlaceOf<Tile>(thread);
        for (int k = 0; k < Tile::kEntries; ++k) {
          const FusedEntry entry = EntryOf<Tile, kTensorCores, kVector>(place.lane, k);
          const int row = where.m + place.row + entry.row;
          const int column = where.n + place.column + entry.column;
          if (row >= source.m || column >= source.n) {
            const double beyond =
                sums[static_cast<std::size_t>(thread)][static_cast<std::size_t>(k)];
            EXPECT_TRUE(!Source::template View<Tile>::kZeroBeyond || beyond == 0);
            continue;
          }
          const auto index = static_cast<std::size_t>(
              example * entries + (std::int64_t{where.group} * source.m + row) * source.n + column);
          result.gradients[index] +=
              sums[static_cast<std::size_t>(thread)][static_cast<std::size_t>(k)];
          if (place.share == 0) ++result.written[index];
        }
      }
    }
  }
  return result;
}

template <bool kTensorCores, typename Source, typename Choice, typename... Others>
Emulated EmulateChoice(FusedChoices<Choice, Others...> /*choices*/, int choice,
                       const Source& source, const FusedPlan& plan, const FusedShares& shares) {
  if (choice == 0) return Emulate<typename Choice::Tile, kTensorCores>(source, plan, shares);
  if constexpr (sizeof...(Others) > 0) {
    return EmulateChoice<kTensorCores>(FusedChoices<Others...>(), choice - 1, source, plan, shares);
  } else {
    ADD_FAILURE() << "no such tile";
    return {};
  }
}

template <typename... Choices>
int ChoiceCount(FusedChoices<Choices...> /*choices*/) {
  return static_cast<int>(sizeof...(Choices));
}

// Small whole numbers: their sums are exact in any order.
std::vector<float> Whole(std::size_t count, std::mt19937& random) {
  std::uniform_int_distribution<int> number(-3, 3);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(number(random));
  return values;
}

int Between(int least, int most, std::mt19937& random) {
  return std::uniform_int_distribution<int>(least, most)(random);
}

void ExpectRows(int outer, int examples, int inner, int m, int n, std::mt19937& random) {
  SCOPED_TRACE(testing::Message() << "outer " << outer << " inner " << inner << " m " << m << " n "
                                  << n);
  const int rows = outer * examples * inner;
  const std::vector<float> left = Whole(static_cast<std::size_t>(rows) * m, random);
  const std::vector<float> right = Whole(static_cast<std::size_t>(rows) * n, random);
  RowsSource source;
  const std::int64_t example_step = inner > 1 ? inner : 1;
  const std::int64_t row_step = inner > 1 ? 1 : examples;
  source.left = {left.data(), example_step * m, row_step * m, m % 4 == 0};
  source.right = {right.data(), example_step * n, row_step * n, n % 4 == 0};
  source.examples = examples;
  source.rows = outer * inner;
  source.m = m;
  source.n = n;
  std::vector<double> expected(static_cast<std::size_t>(examples) * m * n);
  for (int row = 0; row < rows; ++row) {
    const int example = row / inner % examples;
    for (int i = 0; i < m; ++i) {
      for (int j = 0; j < n; ++j) {
        expected[(static_cast<std::size_t>(example) * m + i) * n + j] +=
            static_cast<double>(left[static_cast<std::size_t>(row) * m + i] *
                                right[static_cast<std::size_t>(row) * n + j]);
      }
    }
  }
  for (int choice = -1; choice < ChoiceCount(RowsChoices()); ++choice) {
    const FusedPlan plan = PlanRows(source, choice);
    for (const Emulated& result :
         {EmulateChoice<true>(RowsChoices(), plan.choice, source, plan, plan.norms),
          EmulateChoice<false>(RowsChoices(), plan.choice, source, plan, plan.norms),
          EmulateChoice<true>(RowsChoices(), plan.choice, ForSums(source), plan, plan.sums),
          EmulateChoice<false>(RowsChoices(), plan.choice, ForSums(source), plan, plan.sums)}) {
      EXPECT_EQ(result.gradients, expected);
      EXPECT_EQ(result.written, std::vector<int>(expected.size(), 1));
    }
  }
}

struct Shape {
  int outer = 1, examples = 2, inner = 1, groups = 1, m = 1, channels = 1;
  int kernel[3] = {1, 1, 1}, stride[3] = {1, 1, 1}, padding[3] = {0, 0, 0};
  int dilation[3] = {1, 1, 1}, extent[3] = {1, 1, 1};
};

// A source without operands.
WindowSource SourceOf(const Shape& shape) {
  WindowSource source;
  source.outer = shape.outer;
  source.examples = shape.examples;
  source.inner = shape.inner;
  source.m = shape.m;
  source.channels = shape.channels;
  for (int d = 0; d < 3; ++d) {
    source.kernel[d] = shape.kernel[d];
    source.stride[d] = shape.stride[d];
    source.padding[d] = shape.padding[d];
    source.dilation[d] = shape.dilation[d];
    source.extent[d] = shape.extent[d];
    source.positions[d] =
        (shape.extent[d] + 2 * shape.padding[d] - (shape.kernel[d] - 1) * shape.dilation[d] - 1) /
            shape.stride[d] +
        1;
  }
  source.n = shape.channels * source.kernel_volume();
  const int* e = source.extent;
  const int* p = source.positions;
  source.image_step = {std::int64_t{shape.groups} * shape.channels * e[0] * e[1] * e[2],
                       e[0] * e[1] * e[2], e[1] * e[2], e[2], 1};
  source.signal_step = {std::int64_t{shape.groups} * shape.m * p[0] * p[1] * p[2],
                        p[0] * p[1] * p[2], p[1] * p[2], p[2], 1};
  return source;
}

void ExpectWindows(const Shape& shape, std::mt19937& random) {
  WindowSource source = SourceOf(shape);
  SCOPED_TRACE(testing::Message() << "m " << source.m << " n " << source.n << " positions "
                                  << source.positions[0] << "x" << source.positions[1] << "x"
                                  << source.positions[2]);
  const int* e = source.extent;
  const int* p = source.positions;
  const int all_signals = shape.groups * shape.m;
  const int images = shape.outer * shape.examples * shape.inner;
  const std::vector<float> image =
      Whole(static_cast<std::size_t>(images * source.image_step.image), random);
  const std::vector<float> signal =
      Whole(static_cast<std::size_t>(images * source.signal_step.image), random);
  source.image = image.data();
  source.signal = signal.data();
  const std::int64_t entries = std::int64_t{all_signals} * source.n;
  std::vector<double> expected(static_cast<std::size_t>(shape.examples * entries));
  for (int index = 0; index < images; ++index) {
    const int example = index / shape.inner % shape.examples;
    for (int s = 0; s < all_signals; ++s) {
      for (int j = 0; j < source.n; ++j) {
        const int c = s / shape.m * shape.channels + j / source.kernel_volume();
        const int kx = j % source.kernel[2];
        const int ky = j / source.kernel[2] % source.kernel[1];
        const int kz = j / source.kernel[2] / source.kernel[1] % source.kernel[0];
        double sum = 0;
        for (int t = 0; t < p[0] * p[1] * p[2]; ++t) {
          const int x = t % p[2] * shape.stride[2] + kx * shape.dilation[2] - shape.padding[2];
          const int y =
              t / p[2] % p[1] * shape.stride[1] + ky * shape.dilation[1] - shape.padding[1];
          const int z =
              t / p[2] / p[1] * shape.stride[0] + kz * shape.dilation[0] - shape.padding[0];
          if (x < 0 || y < 0 || z < 0 || x >= e[2] || y >= e[1] || z >= e[0]) continue;
          const int inside = c * source.image_step.channel + (z * e[1] + y) * e[2] + x;
          const std::int64_t pixel = index * source.image_step.image + inside;
          const int behind = s * source.signal_step.channel + t;
          const std::int64_t place = index * source.signal_step.image + behind;
          sum += static_cast<double>(image[static_cast<std::size_t>(pixel)] *
                                     signal[static_cast<std::size_t>(place)]);
        }
        expected[static_cast<std::size_t>(example * entries + std::int64_t{s} * source.n + j)] +=
            sum;
      }
    }
  }
  for (int choice = -1; choice < ChoiceCount(WindowChoices()); ++choice) {
    const FusedPlan plan = PlanWindows(source, shape.groups, choice);
    ASSERT_GE(plan.choice, 0);
    for (const Emulated& result :
         {EmulateChoice<true>(WindowChoices(), plan.choice, source, plan, plan.norms),
          EmulateChoice<false>(WindowChoices(), plan.choice, source, plan, plan.norms)}) {
      EXPECT_EQ(result.gradients, expected);
      EXPECT_EQ(result.written, std::vector<int>(expected.size(), 1));
    }
  }
  const FusedPlan plan = PlanWindowGradients(source, PlanWindows(source, shape.groups));
  for (const Emulated& result :
       {EmulateChoice<true>(WindowGradientChoices(), plan.choice, source, plan, plan.norms),
        EmulateChoice<false>(WindowGradientChoices(), plan.choice, source, plan, plan.norms)}) {
    EXPECT_EQ(result.gradients, expected);
    EXPECT_EQ(result.written, std::vector<int>(expected.size(), 1));
  }
}

using PositionStep = std::array<float, kStepRows>;

// The positions of an example in the steps in which they are added up, by their numbers, without
// steps that have none.
template <typename Tile>
std::vector<PositionStep> StepsOf(const WindowSource& source, const FusedPlan& plan) {
  std::vector<Four> memory(static_cast<std::size_t>(plan.norms.stage_words + 3) / 4);
  auto* stage = reinterpret_cast<float*>(memory.data());
  std::vector<PositionStep> steps;
  WindowSource::Cursor cursor;
  for (int piece = 0; piece < source.pieces(); ++piece) {
    for (int thread = 0; thread < Tile::kThreads; ++thread) {
      source.Load<Tile>(cursor, {}, thread, stage);
    }
    source.Advance(cursor);
    for (int k = 0; k < source.Steps(piece); ++k) {
      PositionStep step;
      const float* left = stage + source.piece_rows + std::ptrdiff_t{k} * kStepRows;
      std::copy_n(left, kStepRows, step.begin());
      if (step != PositionStep{}) steps.push_back(step);
    }
  }
  return steps;
}

template <typename Choice, typename... Others>
std::vector<PositionStep> StepsOfChoice(FusedChoices<Choice, Others...> /*choices*/, int choice,
                                        const WindowSource& source, const FusedPlan& plan) {
  if (choice == 0) return StepsOf<typename Choice::Tile>(source, plan);
  if constexpr (sizeof...(Others) > 0) {
    return StepsOfChoice(FusedChoices<Others...>(), choice - 1, source, plan);
  } else {
    ADD_FAILURE() << "no such tile";
    return {};
  }
}

// Whether the gradients of a shape are written out by the tile that sums do not have. Their
// positions are added up as those of the norms are in any case, so that the bits are the same.
bool HasTileOfItsOwn(const Shape& shape) {
  WindowSource source = SourceOf(shape);
  const std::int64_t images = std::int64_t{shape.outer} * shape.examples * shape.inner;
  std::vector<float> signal(static_cast<std::size_t>(images * source.signal_step.image));
  for (std::size_t k = 0; k < signal.size(); ++k) signal[k] = static_cast<float>(k + 1);
  const std::vector<float> image(static_cast<std::size_t>(images * source.image_step.image));
  source.signal = signal.data();
  source.image = image.data();
  const FusedPlan pair = PlanWindows(source, shape.groups);
  const std::vector<PositionStep> expected =
      StepsOfChoice(WindowGradientChoices(), pair.choice, source, pair);
  const FusedPlan plan = PlanWindowGradients(source, pair);
  EXPECT_EQ(StepsOfChoice(WindowGradientChoices(), plan.choice, source, plan), expected)
      << "m " << source.m << " n " << source.n;
  return plan.choice >= ChoiceCount(WindowChoices());
}

TEST(FusedProduct, ShiftedNumbersAreTheNumbers) {
  std::mt19937 random(3);
  for (int k = 0; k < 100000; ++k) {
    const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    if (!std::isfinite(value)) continue;
    ASSERT_EQ(Shifted(value) * kShiftedUnit, static_cast<double>(value));
  }
  for (const float value : {0.0F, -0.0F, 0x1p-149F, -0x1.8p-127F, 0x1.fffffep127F}) {
    EXPECT_EQ(Shifted(value) * kShiftedUnit, static_cast<double>(value));
    EXPECT_EQ(std::signbit(Shifted(value)), std::signbit(value));
  }
}

TEST(FusedProduct, RowsReachTheirEntriesOnce) {
  std::mt19937 random(1);
  ExpectRows(1, 2, 128, 256, 128, random);
  ExpectRows(256, 1, 1, 100, 130, random);
  for (int k = 0; k < 20; ++k) {
    const int rows = Between(1, 80, random);
    const bool together = k % 2 == 0;
    ExpectRows(together ? 1 : rows, Between(1, 3, random), together ? rows : 1,
               Between(1, 150, random), Between(1, 150, random), random);
  }
}

Shape Image3x3(int m, int channels, int height, int width) {
  return {.m = m,
          .channels = channels,
          .kernel = {1, 3, 3},
          .padding = {0, 1, 1},
          .extent = {1, height, width}};
}

TEST(FusedProduct, GradientsAreAddedUpAsTheirNormsAre) {
  for (const int side : {32, 16, 8}) {  // of wrn-16-4
    EXPECT_TRUE(HasTileOfItsOwn(Image3x3(2048 / side, 2048 / side, side, side))) << side;
  }
  // Pieces of other lines, of which none is whole steps; and lines in parts.
  EXPECT_FALSE(HasTileOfItsOwn(Image3x3(64, 64, 33, 33)));
  EXPECT_FALSE(HasTileOfItsOwn(Image3x3(64, 64, 5, 100)));
  // Warps share the steps.
  EXPECT_FALSE(HasTileOfItsOwn(Image3x3(16, 3, 32, 32)));
  std::mt19937 random(5);
  for (int k = 0; k < 40; ++k) {
    Shape shape = Image3x3(Between(40, 130, random), Between(20, 64, random),
                           Between(2, 40, random), Between(2, 40, random));
    shape.outer = Between(1, 2, random);
    shape.inner = Between(1, 3, random);
    shape.stride[1] = shape.stride[2] = Between(1, 2, random);
    HasTileOfItsOwn(shape);
  }
}

// Sums take larger pieces than norms, and must have their bits: a warp meets the same steps of
// positions in the same order.
template <typename Tile, typename Source>
std::vector<std::vector<int>> StepsOfWarps(const Source& source) {
  std::vector<std::vector<int>> steps(Tile::kThreads / kWarpLanes);
  for (int piece = 0; piece < source.pieces(); ++piece) {
    for (int warp = 0; warp < Tile::kThreads / kWarpLanes; ++warp) {
      for (int step = PlaceOf<Tile>(warp * kWarpLanes).share; step < source.Steps(piece);
           step += Tile::kWarpsK) {
        steps[static_cast<std::size_t>(warp)].push_back(piece * Source::kPieceRows / kStepRows +
                                                        step);
      }
    }
  }
  return steps;
}

template <typename... Choices>
void ExpectSumsHaveTheStepsOfNorms(FusedChoices<Choices...> /*choices*/, const RowsSource& source) {
  EXPECT_TRUE(((StepsOfWarps<typename Choices::Tile>(source) ==
                StepsOfWarps<typename Choices::Tile>(ForSums(source))) &&
               ...))
      << source.rows;
}

TEST(FusedProduct, SumsOfRowsAreAddedUpAsTheirNormsAre) {
  RowsSource source;
  for (source.rows = 1; source.rows < 300; ++source.rows) {
    ExpectSumsHaveTheStepsOfNorms(RowsChoices(), source);
  }
}

TEST(FusedProduct, WindowsReachTheirEntriesOnce) {
  std::mt19937 random(2);
  ExpectWindows(Image3x3(64, 32, 8, 8), random);
  ExpectWindows(Image3x3(60, 30, 7, 16), random);
  ExpectWindows(
      {.m = 32, .channels = 3, .kernel = {1, 3, 3}, .padding = {0, 1, 1}, .extent = {1, 32, 32}},
      random);
  ExpectWindows(
      {.m = 32, .channels = 32, .kernel = {1, 3, 3}, .padding = {0, 1, 1}, .extent = {1, 32, 32}},
      random);
  ExpectWindows(
      {.m = 40, .channels = 64, .kernel = {1, 3, 3}, .padding = {0, 1, 1}, .extent = {1, 16, 16}},
      random);
  ExpectWindows(
      {.m = 128, .channels = 64, .kernel = {1, 3, 3}, .padding = {0, 1, 1}, .extent = {1, 4, 4}},
      random);
  ExpectWindows(
      {.m = 10, .channels = 256, .kernel = {1, 3, 3}, .padding = {0, 1, 1}, .extent = {1, 4, 4}},
      random);
  ExpectWindows({.m = 16,
                 .channels = 1,
                 .kernel = {1, 8, 8},
                 .stride = {1, 2, 2},
                 .padding = {0, 3, 3},
                 .extent = {1, 28, 28}},
                random);
  ExpectWindows(
      {.m = 32, .channels = 16, .kernel = {1, 4, 4}, .stride = {1, 2, 2}, .extent = {1, 13, 13}},
      random);
  ExpectWindows({.m = 4,
                 .channels = 3,
                 .kernel = {1, 7, 7},
                 .stride = {1, 2, 2},
                 .padding = {0, 3, 3},
                 .extent = {1, 224, 224}},
                random);
  for (int k = 0; k < 30; ++k) {
    Shape shape{.outer = Between(1, 2, random),
                .examples = Between(1, 2, random),
                .inner = Between(1, 2, random),
                .groups = Between(1, 2, random),
                .m = Between(1, 40, random),
                .channels = Between(1, 12, random)};
    for (int d = k % 3; d < 3; ++d) {
      shape.kernel[d] = Between(1, 4, random);
      shape.stride[d] = Between(1, 3, random);
      shape.padding[d] = Between(0, 2, random);
      shape.dilation[d] = Between(1, 2, random);
      shape.extent[d] = (shape.kernel[d] - 1) * shape.dilation[d] + Between(1, 9, random);
    }
    ExpectWindows(shape, random);
  }
}

}  // namespace
}  // namespace sordino
