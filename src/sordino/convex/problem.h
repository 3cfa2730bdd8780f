// A table as convex learning sees it: rows of bounded norm with their targets.
//
// The bounds of the proofs are made true here and never assumed: a row whose norm is above the
// bound is scaled down to it, a row with an entry that is not finite becomes 0, a target is clipped
// into its bounds. The column of ones of an intercept is a column like the others: inside the norm,
// and regularised.
//
// Features stay in the precision that they come in. The stored number, once its row was scaled, is
// the feature that the proofs are about: sums and products are computed in float64 from blocks of
// rows, and float32 converts to float64 without rounding.
#ifndef SORDINO_CONVEX_PROBLEM_H_
#define SORDINO_CONVEX_PROBLEM_H_

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "sordino/base/component.h"
#include "sordino/convex/loss.h"

namespace sordino {

// What is declared about a table before it is read.
struct TableShape {
  Choice loss{"logistic"};    // of ConvexLosses()
  std::int64_t features = 0;  // columns, that of ones included
  std::int64_t classes = 2;   // of losses that classify
  double row_bound = 1;       // R
  double target_bound = 1;    // B, of losses that predict numbers
};
inline constexpr std::int64_t kMaxConvexFeatures = 1'000'000;
inline constexpr std::int64_t kMaxConvexClasses = 10'000;
// What the bounds on rounding are computed for (internal/gradient_sum.h).
inline constexpr std::int64_t kMaxConvexRows = std::int64_t{1} << 26;
inline constexpr std::int64_t kMaxConvexEntries = std::int64_t{1} << 33;

// Throws Error for a loss that is not known and for numbers outside their range.
const ConvexLoss& CheckedLoss(const TableShape& shape);

class Problem {
 public:
  // features: [n, d], float32 or float64; a contiguous tensor is taken as it is and its rows are
  // clipped in place, anything else is copied. targets: [n], classes 0 ... classes - 1 as int64 or
  // numbers as float64. last_column: [n] or undefined; where it is given, features are [n, d - 1],
  // so that a table gets its column of ones without being copied. n may be 0. Throws Error for
  // sizes or types that do not agree with the shape, for too large a table, and for a class that is
  // not declared.
  Problem(TableShape shape, const at::Tensor& features, const at::Tensor& targets,
          const at::Tensor& last_column = {});

  const TableShape& shape() const { return shape_; }
  const ConvexLoss& loss() const { return *loss_; }
  LossBounds bounds() const { return loss_->Bounds(shape_.classes, shape_.target_bound); }
  std::int64_t rows() const { return features_.size(0); }
  std::int64_t scores() const { return loss_->Scores(shape_.classes); }
  const at::Tensor& targets() const { return targets_; }
  // Features in float64, [count, d], every row of norm at most R, rounding included. It may share
  // their memory.
  at::Tensor Rows(std::int64_t begin, std::int64_t count) const;
  at::Tensor ChosenRows(const at::Tensor& rows) const;
  // The same as they are kept, float32 or float64: [n, d], or [n, d - 1] with a last column [n].
  const at::Tensor& stored_features() const { return features_; }
  const at::Tensor& last_column() const { return last_column_; }

 private:
  TableShape shape_;
  const ConvexLoss* loss_;
  at::Tensor features_;
  at::Tensor last_column_;  // may be undefined
  at::Tensor targets_;
};

// On public data: the numbers are exact and not private.
struct Evaluation {
  double risk = 0;      // mean loss
  double accuracy = 0;  // share of right classes, or 1 - residual / total squares of numbers (R^2)
};
// 0 and 0 for a table without rows.
Evaluation Evaluate(const Problem& problem, const at::Tensor& coefficients);

}  // namespace sordino

#endif  // SORDINO_CONVEX_PROBLEM_H_
