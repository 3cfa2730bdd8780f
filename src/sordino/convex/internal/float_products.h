// Products of float32 rows with float64 weights and slopes, computed and summed in float64.
//
// A row is converted where it is multiplied, in registers, so float32 is all that is read: a copy
// of a block in float64 would be written and read again, twice as large. Every result is a sum of
// its products in some order, of which each is rounded at most once.
#ifndef SORDINO_CONVEX_INTERNAL_FLOAT_PRODUCTS_H_
#define SORDINO_CONVEX_INTERNAL_FLOAT_PRODUCTS_H_

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace sordino::internal {

// Rows of a table: features [count, d], or [count, d - 1] and a last column [count].
struct FloatRows {
  at::Tensor features = {};
  at::Tensor last_column = {};  // may be undefined
};

// Whether the products of rows with so many scores are faster here than libtorch's of a converted
// block. A compiler knows the least processor of an architecture, libtorch the one that it runs on;
// so more than one score needs a fused float64 product in every processor, as aarch64 has it.
bool PrefersFloatProducts(std::int64_t scores);

// x theta, [count, K].
at::Tensor FloatScores(const FloatRows& rows, const at::Tensor& theta);
// x^T slopes, [d, K].
at::Tensor FloatProducts(const FloatRows& rows, const at::Tensor& slopes);

}  // namespace sordino::internal

#endif  // SORDINO_CONVEX_INTERNAL_FLOAT_PRODUCTS_H_
