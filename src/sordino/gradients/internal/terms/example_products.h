// A product of matrices for each example (CPU, float32).
//
// libtorch's batched product runs at two thirds of the rate of these on a CPU.
#ifndef SORDINO_GRADIENTS_INTERNAL_TERMS_EXAMPLE_PRODUCTS_H_
#define SORDINO_GRADIENTS_INTERNAL_TERMS_EXAMPLE_PRODUCTS_H_

#include <ATen/core/Tensor.h>

namespace sordino {

// left_i^T right_i for left [examples, rows, p] and right [examples, rows, q]: [examples, p, q].
// Squared norms are added to `squared` [examples] (float64) while a product is in the cache.
at::Tensor ExampleProducts(const at::Tensor& left, const at::Tensor& right,
                           const at::Tensor& squared);

// more + sum_i left_i^T right_i for left [examples, rows, p] and right [examples, rows, q]: [p, q].
// `more`: float64 [p, q], or undefined for 0. Each product is rounded to float32 by itself, so that
// it depends on nothing but its example; the sum is in float64 and rounded once, unless it is
// `wide`.
at::Tensor SumOfExampleProducts(const at::Tensor& left, const at::Tensor& right,
                                const at::Tensor& more, bool wide);

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_INTERNAL_TERMS_EXAMPLE_PRODUCTS_H_
