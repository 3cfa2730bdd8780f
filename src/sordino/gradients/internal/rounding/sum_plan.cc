#include "sordino/gradients/internal/rounding/sum_plan.h"

#include <algorithm>
#include <string>

#include "sordino/base/error.h"
#include "sordino/gradients/internal/convolution/convolution_products.h"
#include "sordino/gradients/internal/rounding/rounding.h"
#include "sordino/kernels/row_sums.h"

namespace sordino {
namespace {

// A sum is rounded when blocks are added up or it leaves a float64 accumulator, when a part of a
// cut batch is added, and when it takes the type of the parameter.
constexpr double kRoundingsOfTheResult = kMaxBlocks + 2;
// Sums shorter than this are better taken in float64.
constexpr std::int64_t kShortestSum = 16;
constexpr double kMaxCancellation = 0x1p20;

// Float64 additions that a product of a unit with so many rows takes part in: with the other rows
// of the unit and, in a float64 convolution, with fewer than kRowsPerSum rows of others, then with
// the other units of its part, and so on.
std::int64_t Additions(std::int64_t rows, std::int64_t units) {
  return rows + kRowsPerSum + kUnitsOfPart + kPartsPerSum +
         (units + kPartsPerSum - 1) / kPartsPerSum;
}

RoundingModel Model(const SumShape& shape) {
  RoundingModel model;
  const double u = shape.float64 ? kFloat64Roundoff : kFloat32Roundoff;
  model.product_roundoff = u;
  model.norm_roundoff = u;
  model.sum_roundoff = u;
  const bool wide = IsWide(shape.largest_batch);
  model.result_roundoff = kRoundingsOfTheResult * (wide ? kFloat64Roundoff : u);
  if (wide) model.additions = Additions(/*rows=*/1, shape.largest_batch);
  model.largest_batch = shape.largest_batch;
  model.coordinates = shape.coordinates;
  model.uses = std::max<std::int64_t>(1, shape.uses);
  model.largest_factor = shape.largest_factor;
  model.smallest_bound = shape.smallest_bound;
  if (shape.float64) model.underflow = 0x1p-1022;
  return model;
}

}  // namespace

SumPlan PlanSum(const SumShape& shape, double rounding) {
  const bool recomputes = shape.recomputed_rows > 0;
  // What is computed again needs room for cancellation; sums over rows can always be float64.
  const double share = recomputes ? rounding / 4 : rounding;
  SumPlan plan;

  // One row an example, and gradients that are kept: nothing cancels, rows of many examples meet in
  // one product. A sum over k entries in blocks is no worse than one over k entries.
  RoundingModel rows = Model(shape);
  rows.features = std::max<std::int64_t>(shape.one_row_features, kNormRoundings);
  // The rounding of the result is one for all coordinates, and counted once.
  if (recomputes) rows.result_roundoff = 0;
  plan.accuracy.wide = IsWide(shape.largest_batch);
  plan.accuracy.rows_per_sum = plan.accuracy.wide ? 0 : LongestSum(rows, share);
  if (plan.accuracy.rows_per_sum < kShortestSum) {
    plan.accuracy.rows_per_sum = 0;
    rows.sum_roundoff = kFloat64Roundoff;
    rows.rows_per_sum = 1;
  } else {
    rows.rows_per_sum = plan.accuracy.rows_per_sum;
  }
  plan.slack = RoundingSlack(rows);

  // Several rows: a product for each example, added up in float64.
  if (recomputes) {
    RoundingModel products = Model(shape);
    products.sum_roundoff = kFloat64Roundoff;
    products.features = shape.recomputed_features;
    products.norm_roundings = shape.recomputed_roundings;
    // A product of one row is rounded too.
    products.rows = std::max<std::int64_t>(2, shape.recomputed_rows);
    products.product_rows = shape.recomputed_product_rows;
    if (plan.accuracy.wide) {
      products.additions = Additions(products.rows, shape.largest_batch);
    }
    double slack = 0;
    for (plan.cancellation = kMaxCancellation; plan.cancellation >= 1; plan.cancellation /= 1.25) {
      products.cancellation = plan.cancellation;
      slack = RoundingSlack(products);
      if (slack <= rounding - plan.slack) break;
    }
    plan.slack = plan.cancellation >= 1 ? plan.slack + slack : 2 * rounding + 1;
  }
  if (!(plan.slack <= rounding)) {
    throw Error("rounding in batches of up to " + std::to_string(shape.largest_batch) +
                " examples cannot be kept within " + std::to_string(rounding) +
                " of the sensitivity; declare a smaller largest_batch or a larger rounding, or "
                "train in float64.");
  }
  return plan;
}

}  // namespace sordino
