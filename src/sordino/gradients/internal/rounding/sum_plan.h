// Meets a declared share of rounding in the sensitivity.
//
// The sensitivity of a sum is declared before anything is computed: bound times 1 + rounding. What
// floating-point arithmetic adds depends on how long its sums are and on how much the terms of a
// gradient may cancel (rounding.h); both are chosen here so that it is never more than declared.
// The choice depends on shapes and declared numbers only, never on values.
//
// A batch of more than kUnitsOfPart units has float64 sums, results included, and costs no more
// than a smaller one.
#ifndef SORDINO_GRADIENTS_INTERNAL_ROUNDING_SUM_PLAN_H_
#define SORDINO_GRADIENTS_INTERNAL_ROUNDING_SUM_PLAN_H_

#include <cstdint>
#include <vector>

#include "sordino/gradients/internal/terms/term.h"

namespace sordino {

// A part of a batch, which is summed as one, has no more units than this.
inline constexpr std::int64_t kUnitsOfPart = 8192;
// Parts that are added up before their sum is added to those of others.
inline constexpr std::int64_t kPartsPerSum = 4096;

// Whether sums of batches of up to so many units are float64.
inline bool IsWide(std::int64_t largest_batch) { return largest_batch > kUnitsOfPart; }

struct SumShape {
  bool float64 = false;
  std::int64_t largest_batch = 1;     // units of a batch
  std::int64_t one_row_features = 0;  // p + q of uses with one row an example; 0 for none
  // Of uses with more rows whose gradients are not kept but computed again for the sum:
  std::int64_t recomputed_features = 0;   // where norms are from float32 Gram matrices; 0 for none
  std::int64_t recomputed_roundings = 0;  // of these norms; 0 stands for all features at once
  std::int64_t recomputed_rows = 0;       // 0 for none
  std::int64_t recomputed_product_rows = 0;  // of one float32 product; 0 stands for all of them
  std::int64_t coordinates = 1;
  std::int64_t uses = 1;
  double largest_factor = 1;
  double smallest_bound = 1;
  friend bool operator==(const SumShape&, const SumShape&) = default;
};

struct SumPlan {
  SumAccuracy accuracy;
  // factor * mass <= cancellation * bound is to hold for every example (PerExamplePass).
  double cancellation = 1;
  // What rounding adds at most, relative to the sensitivity.
  double slack = 0;
};

// Throws Error when no choice keeps the slack within `rounding`.
SumPlan PlanSum(const SumShape& shape, double rounding);

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_INTERNAL_ROUNDING_SUM_PLAN_H_
