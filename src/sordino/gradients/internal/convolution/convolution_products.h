// Products of column blocks and their sums: the arithmetic of convolution gradients on the CPU.
//
// Rounding. One product sums in the compute type over the rows of its block, in an order that the
// matrix library chooses; with u the unit roundoff its error in an entry is at most
// gamma_n = n u / (1 - n u) times the sum of the absolute values, n the number of rows (Higham,
// Accuracy and Stability of Numerical Algorithms, 3.1). At most kRowsPerSum rows, all of one
// example, are summed so in float32 before the result is added to a float64 sum.
#ifndef SORDINO_GRADIENTS_INTERNAL_CONVOLUTION_CONVOLUTION_PRODUCTS_H_
#define SORDINO_GRADIENTS_INTERNAL_CONVOLUTION_CONVOLUTION_PRODUCTS_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "sordino/gradients/internal/convolution/convolution_columns.h"
#include "sordino/gradients/internal/convolution/convolution_shape.h"

namespace sordino {

// Rows (positions of the kernel) that one float32 accumulator sums at most.
inline constexpr std::int64_t kRowsPerSum = 1024;

// Rows that a block of columns may have so that it stays in the cache.
std::int64_t RowsPerBlock(const ConvolutionShape& shape);

template <typename T>
class ProductSum {
 public:
  explicit ProductSum(const ConvolutionOperands& operands);

  // Adds columns^T signal.
  void Add(ColumnBlock<T>& block);
  // What comes next is of another example, and starts a float32 sum of its own: the rounded
  // product of an example depends on that example only.
  void EndExample() { Flush(); }
  // That were added since.
  std::int64_t rows() const { return rows_; }
  void Clear();

  // The sum [kernel, image channels / groups, signal channels]: rounded to T, or as it is; the
  // latter is the last thing that is asked for.
  const T* Value();
  at::Tensor TakeTotal();

 private:
  void AddMatrixProducts(ColumnBlock<T>& block);
  void AddDepthwise(const ColumnBlock<T>& block);
  void Flush();

  const ConvolutionShape shape_;
  const std::int64_t size_;
  at::Tensor sum_;
  std::vector<at::Tensor> sum_of_group_;
  std::int64_t rows_ = 0;  // in sum_
  // What was moved out of sum_; allocated when first needed.
  at::Tensor moved_;
  bool has_moved_ = false;
};

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_INTERNAL_CONVOLUTION_CONVOLUTION_PRODUCTS_H_
