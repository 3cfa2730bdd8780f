// Products of a block of rows with weights and with slopes, in float64.
//
// For one score and features that are kept in float32, a product does little with each number that
// it reads, so numbers are converted where they are multiplied. Everything else is converted once
// for both products, which libtorch computes.
#ifndef SORDINO_CONVEX_INTERNAL_ROW_BLOCK_H_
#define SORDINO_CONVEX_INTERNAL_ROW_BLOCK_H_

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "sordino/convex/problem.h"

namespace sordino::internal {

class RowBlock {
 public:
  // A block of the table, for weights of `scores` columns.
  RowBlock(const Problem& problem, std::int64_t begin, std::int64_t count, std::int64_t scores);
  // Rows in float64.
  explicit RowBlock(at::Tensor rows) : rows_(std::move(rows)) {}

  // x theta, [count, K].
  at::Tensor Scores(const at::Tensor& theta) const;
  // sum += x^T slopes, [d, K]. The product is computed apart, as sums of `count` products in some
  // order, and then added: each entry of the sum is rounded once a block.
  void AddProducts(const at::Tensor& slopes, at::Tensor& sum) const;

 private:
  at::Tensor rows_;         // float64, [count, d]; undefined where the following are used
  at::Tensor features_;     // float32, [count, d] or [count, d - 1]
  at::Tensor last_column_;  // float32, [count]; may be undefined
};

}  // namespace sordino::internal

#endif  // SORDINO_CONVEX_INTERNAL_ROW_BLOCK_H_
