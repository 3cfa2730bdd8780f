// The addresses and fragments of groups of warps, run thread by thread on the CPU.
#include "sordino/gradients/internal/device/fused_groups.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "sordino/gradients/internal/device/fused_copy.h"
#include "sordino/gradients/internal/device/fused_plan.h"
#include "sordino/gradients/internal/device/fused_rows.h"
#include "sordino/gradients/internal/device/fused_tile.h"

namespace sordino {
namespace {

// The gradients of all examples. The right operand is read as the description that wgmma gets says.
std::vector<double> EmulateGroups(const RowsSource& source) {
  const FusedPlan plan = PlanRows(source, /*groups=*/true, kGroupsChoice);
  constexpr int kAlongRows = GroupTile::kBlocksAcross * GroupTile::kBlockWords;
  const std::int64_t entries = std::int64_t{source.m} * source.n;
  std::vector<double> gradients(static_cast<std::size_t>(source.examples * entries));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (int tile = 0; tile < plan.tiles(); ++tile) {
    const FusedPlace where = PlaceOfTile<GroupTile>(tile, plan.tiles_m, plan.tiles_n);
    RowsSource::Cursor cursor;
    for (int k = 0; k < source.examples * source.pieces(); ++k) {
      const int example = cursor.example;
      std::vector<Four> memory(GroupTile::kStageWords / 4, Four{nan, nan, nan, nan});
      auto* stage = reinterpret_cast<float*>(memory.data());
      for (int thread = 0; thread < GroupTile::kThreads; ++thread) {
        LoadForGroups(source, cursor, where, thread, stage);
      }
      source.Advance(cursor);
      for (int step = 0; step < GroupTile::kSteps; ++step) {
        const float* right = stage + GroupTile::kLeftWords + GroupRightWord(step * kStepRows, 0);
        // The fragments of a warp are 16 rows, of which thread 4 g + t has rows g and g + 8.
        std::vector<std::array<float, 8>> left(GroupTile::kM);
        for (std::size_t thread = 0; thread < GroupTile::kThreads; ++thread) {
          float a[4];
          GroupFragment(stage, static_cast<int>(thread), step, a);
          const std::size_t row = thread / kWarpLanes * 16 + thread % kWarpLanes / 4;
          const std::size_t t = thread % 4;
          left[row][t] = a[0];
          left[row + 8][t] = a[1];
          left[row][t + 4] = a[2];
          left[row + 8][t + 4] = a[3];
        }
        for (std::size_t thread = 0; thread < GroupTile::kThreads; ++thread) {
          for (int i = 0; i < GroupTile::kEntries; ++i) {
            const FusedEntry entry = GroupEntryOf(static_cast<int>(thread), i);
            if (where.m + entry.row >= source.m || where.n + entry.column >= source.n) continue;
            const std::size_t row = thread / kWarpLanes * 16 + thread % kWarpLanes / 4 +
                                    static_cast<std::size_t>(i % 4 / 2) * 8;
            const int n = i / 4 * 8 + static_cast<int>(thread % 4) * 2 + i % 2;
            double& sum = gradients[static_cast<std::size_t>(
                example * entries + std::int64_t{where.m + entry.row} * source.n + where.n +
                entry.column)];
            for (int t = 0; t < kStepRows; ++t) {
              const float value =
                  right[t / 4 * kAlongRows + n / 8 * GroupTile::kBlockWords + n % 8 * 4 + t % 4];
              sum += static_cast<double>(left[row][static_cast<std::size_t>(t)] * value);
            }
          }
        }
      }
    }
  }
  return gradients;
}

TEST(FusedGroups, RowsReachTheirEntries) {
  std::mt19937 random(6);
  const auto between = [&](int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(random);
  };
  for (int trial = 0; trial < 12; ++trial) {
    const int examples = between(1, 3);
    const int rows = between(1, 80);
    const int m = between(1, 150);
    const int n = between(1, 150);
    const bool together = trial % 2 == 0;  // the rows of an example, or one of each example
    // Small whole numbers: their sums are exact in any order.
    const auto whole = [&](int width) {
      std::vector<float> values(static_cast<std::size_t>(examples) * rows * width);
      for (float& value : values) value = static_cast<float>(between(-3, 3));
      return values;
    };
    const std::vector<float> left = whole(m);
    const std::vector<float> right = whole(n);
    const std::int64_t example_step = together ? rows : 1;
    const std::int64_t row_step = together ? 1 : examples;
    RowsSource source;
    source.left = {left.data(), example_step * m, row_step * m, m % 4 == 0};
    source.right = {right.data(), example_step * n, row_step * n, n % 4 == 0};
    source.examples = examples;
    source.rows = rows;
    source.m = m;
    source.n = n;
    std::vector<double> expected(static_cast<std::size_t>(examples) * m * n);
    for (std::size_t k = 0; k < expected.size(); ++k) {
      const auto place = static_cast<std::int64_t>(k);
      for (int t = 0; t < rows; ++t) {
        const std::int64_t row = place / n / m * example_step + t * row_step;
        expected[k] += static_cast<double>(left[static_cast<std::size_t>(row * m + place / n % m)] *
                                           right[static_cast<std::size_t>(row * n + place % n)]);
      }
    }
    EXPECT_EQ(EmulateGroups(source), expected) << rows << " rows, " << m << " x " << n;
  }
}

TEST(FusedGroups, AreTakenWhereTheirTilesAreFilled) {
  RowsSource source;
  source.examples = 256;
  source.rows = 128;
  source.m = 256;
  source.n = 768;
  EXPECT_EQ(PlanRows(source, true).choice, kGroupsChoice);
  EXPECT_NE(PlanRows(source, false).choice, kGroupsChoice);
  source.m = 10;
  EXPECT_NE(PlanRows(source, true).choice, kGroupsChoice);
}

}  // namespace
}  // namespace sordino
