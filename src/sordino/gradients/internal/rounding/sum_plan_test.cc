#include "sordino/gradients/internal/rounding/sum_plan.h"

#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/gradients/internal/part_clipper.h"
#include "sordino/gradients/internal/rounding/rounding.h"

namespace sordino {
namespace {

constexpr double kShare = 0.01;

SumShape ShapeOf(std::int64_t largest_batch, std::int64_t rows) {
  SumShape shape;
  shape.largest_batch = largest_batch;
  shape.one_row_features = 1000;
  shape.coordinates = 1'000'000;
  shape.uses = 20;
  if (rows > 1) {
    shape.recomputed_features = 512;
    shape.recomputed_rows = rows;
  }
  return shape;
}

TEST(SumPlan, BatchesOfMillionsStayWithinTheShareOfSmallOnes) {
  for (const bool float64 : {false, true}) {
    for (const std::int64_t rows : {1, 64, 1024}) {
      for (const std::int64_t batch : {4096, 60'000, 10'000'000, 100'000'000}) {
        SumShape shape = ShapeOf(batch, rows);
        shape.float64 = float64;
        const SumPlan plan = PlanSum(shape, kShare);
        EXPECT_LE(plan.slack, kShare) << batch << " of " << rows << " rows";
        EXPECT_EQ(plan.accuracy.wide, batch > kUnitsOfPart);
        if (plan.accuracy.wide) {
          EXPECT_EQ(plan.accuracy.rows_per_sum, 0);
        }
      }
    }
  }
}

// What is clipped more than its norm asks for, because its terms cancel, is not more in large
// batches.
TEST(SumPlan, LargeBatchesLeaveAsMuchRoomForCancellation) {
  for (const std::int64_t rows : {64, 1024}) {
    const double small = PlanSum(ShapeOf(4096, rows), kShare).cancellation;
    EXPECT_GT(small, 5);
    EXPECT_GE(PlanSum(ShapeOf(60'000, rows), kShare).cancellation, small);
    EXPECT_GE(PlanSum(ShapeOf(10'000'000, rows), kShare).cancellation, small);
  }
}

TEST(SumPlan, SmallBatchesKeepTheirFloat32Sums) {
  for (const std::int64_t batch : {256, 1024, 4096}) {
    const SumPlan plan = PlanSum(ShapeOf(batch, 1), kShare);
    EXPECT_FALSE(plan.accuracy.wide);
    EXPECT_GE(plan.accuracy.rows_per_sum, 16) << batch;
  }
}

TEST(SumPlan, RefusesABatchThatFloat64IsTooShortFor) {
  EXPECT_THROW(PlanSum(ShapeOf(std::int64_t{1} << 40, 1), kShare), Error);
}

// 1 and then terms of a little more than half a unit in the last place of 1: each addition to the
// first term rounds up.
std::vector<float> RoundsUp(std::size_t count) {
  std::vector<float> terms(count, 0x1.0001p-24F);
  terms[0] = 1;
  return terms;
}

// Sums of sums: `counts[0]` terms are added up, then `counts[1]` of their sums, and so on.
float InLevels(const std::vector<float>& terms, const std::vector<std::size_t>& counts) {
  std::vector<float> level = terms;
  for (const std::size_t count : counts) {
    std::vector<float> next;
    for (std::size_t i = 0; i < level.size(); ++i) {
      if (i % count == 0) {
        next.push_back(level[i]);
      } else {
        next.back() += level[i];
      }
    }
    level = next;
  }
  float sum = 0;
  for (const float value : level) sum += value;
  return sum;
}

// The bound of rounding.h on a sum in parts, with float32 in the place of float64: it holds for the
// number of additions that a term takes part in, is nearly reached, and one long sum violates it.
TEST(SumPlan, ASumInPartsIsOffByTheAdditionsOfOneTerm) {
  constexpr std::size_t kTerms = std::size_t{64} * 64 * 64;
  const std::vector<float> terms = RoundsUp(kTerms);
  double exact = 0;
  for (const float term : terms) exact += static_cast<double>(term);
  const auto error = [&](const std::vector<std::size_t>& counts) {
    return std::abs(static_cast<double>(InLevels(terms, counts)) - exact);
  };
  const double limit = Gamma(64 + 64 + 64, kFloat32Roundoff) * exact;
  EXPECT_LE(error({64, 64}), limit);
  EXPECT_GE(error({64, 64}), limit / 4);
  EXPECT_GT(error({}), 100 * limit);
}

// 2^53 and ones: a running sum loses every one of them. (Each part is one number.)
TEST(TotalsOfParts, AddsManyPartsUpInShortSums) {
  constexpr std::int64_t kParts = 3 * kPartsPerSum + 6;
  TotalsOfParts totals(1);
  double running = 0x1p53;
  for (std::int64_t i = 0; i < kParts; ++i) {
    Totals part;
    part.gradients = {at::full({1}, i == 0 ? 0x1p53 : 1.0, at::kDouble)};
    totals.Add(std::move(part));
    if (i > 0) running += 1;
  }
  EXPECT_EQ(running, 0x1p53);
  const double sum = totals.Take().gradients[0].item<double>();
  EXPECT_EQ(sum - 0x1p53, 2 * kPartsPerSum + 6);
}

TEST(TotalsOfParts, OfNothingAreUndefined) {
  const Totals totals = TotalsOfParts(2).Take();
  ASSERT_EQ(totals.gradients.size(), 2);
  EXPECT_FALSE(totals.gradients[0].defined());
  EXPECT_TRUE(totals.norms.empty());
}

}  // namespace
}  // namespace sordino
