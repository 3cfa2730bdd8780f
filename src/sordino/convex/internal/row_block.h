// Products of a block of rows with weights and with slopes, in float64.
//
// Features that are kept in float32 are converted in registers (internal/float_products.h) where
// that is faster, or once for both products, which libtorch computes.
#ifndef SORDINO_CONVEX_INTERNAL_ROW_BLOCK_H_
#define SORDINO_CONVEX_INTERNAL_ROW_BLOCK_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <utility>

#include "sordino/convex/internal/float_products.h"
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
  at::Tensor rows_;       // float64, [count, d]; undefined where the following is used
  FloatRows float_rows_;  // float32
};

}  // namespace sordino::internal

#endif  // SORDINO_CONVEX_INTERNAL_ROW_BLOCK_H_
