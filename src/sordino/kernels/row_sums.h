// Sums over rows on the CPU that libtorch has no single operation for.
//
// Small models are all overhead: each of these is one pass without temporaries, in the calling
// thread when the work is small.
#ifndef SORDINO_KERNELS_ROW_SUMS_H_
#define SORDINO_KERNELS_ROW_SUMS_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "sordino/kernels/example_layout.h"

namespace sordino {

// A squared norm that is computed here is off by at most this many units of roundoff of the values,
// relatively: a square, a sum of kSquaresPerSum, and what float64 does.
inline constexpr int kSquaresPerSum = 32;
inline constexpr int kNormRoundings = kSquaresPerSum + 2;

// Rows that OneRowSum adds up in the type of the values before it continues in float64.
inline constexpr int kRowsPerSmallSum = 32;

// The squared L2 norm of `count` values, for float and double.
template <typename Scalar>
double SquaredNorm(const Scalar* values, std::int64_t count);

// Squared L2 norms of the rows of [rows, n], float64 [rows]; CPU and CUDA.
at::Tensor RowSquaredNorms(const at::Tensor& rows);

// The squared norm of a_i b_i^T for each row i, added to squared [rows] (float64); infinite where
// the squared norm of a row of a or b is above `limit`.
void AddOneRowSquaredNorms(const at::Tensor& a, const at::Tensor& b, double limit,
                           const at::Tensor& squared);

// Square roots, and whether all of them are at most `limit` (not so for NaN); CPU, float64.
struct Roots {
  at::Tensor roots;
  bool within = true;
};
Roots RootsWithin(const at::Tensor& squared, double limit);

// min(1, bounds[row] / norms[row][k]), and 0 in the place of a number that is not normal; NaN for
// NaN. norms [rows, n], bounds [rows, 1]; CPU and CUDA, float64.
at::Tensor FactorsWithin(const at::Tensor& norms, const at::Tensor& bounds);

// How many entries of each row of [rows, n] (CPU, float64) are above the limit of the row or NaN;
// int64 [rows].
at::Tensor CountAbove(const at::Tensor& values, const std::vector<double>& limits);

// sum_i factors[i] rows_i in float64, rounded once to the type of rows [rows, n] (CPU, float32 or
// float64) unless it is `wide`; rows of factor 0 are left out. factors [rows], float64.
at::Tensor WeightedRowSum(const at::Tensor& rows, const at::Tensor& factors, bool wide = false);

// The sums over the rows of each example, [examples, n], of rows [rows, n] (CPU, float32 or
// float64): in float64, rounded once to the type of the rows, in an order that depends on the rows
// of the example alone. libtorch's reductions have another order for the last columns of a tensor,
// so that what an example's sum rounds to would depend on how many others there are.
at::Tensor ExampleSums(const at::Tensor& rows, const ExampleLayout& layout);

// sum_i factors[i] a_i b_i^T, [p, q], for products that are too small for a matrix library
// (OneRowSumIsSmall); rows of factor 0 are left out.
bool OneRowSumIsSmall(const at::Tensor& a, const at::Tensor& b);
at::Tensor OneRowSum(const at::Tensor& a, const at::Tensor& b, const at::Tensor& factors);

// A lookup table of `vocabulary` rows: index [rows], gradient [rows, n] (float32 or float64, CPU).
// owners [rows] (int64) replaces the layout where it is defined. Rows of the padding index are
// left out.
struct LookupRows {
  at::Tensor index;
  at::Tensor gradient;
  ExampleLayout layout;
  at::Tensor owners;
  std::int64_t vocabulary = 0;
  std::int64_t padding_index = -1;
};

// Adds to squared [examples] (float64) the squared norm of each example's table gradient: rows of
// one example that look up the same entry are added before they are squared.
void AddLookupSquaredNorms(const LookupRows& lookup, const at::Tensor& squared);

// sum_i factors[i] g_i, [vocabulary, n], each entry summed in float64 and rounded to the type of
// the gradient unless it is `wide`; factors [examples], float64. Rows of one example that look up
// the same entry are added first, as for its norm: rows that cancel leave nothing in the sum of the
// others.
at::Tensor LookupWeightedSum(const LookupRows& lookup, const at::Tensor& factors,
                             bool wide = false);

}  // namespace sordino

#endif  // SORDINO_KERNELS_ROW_SUMS_H_
