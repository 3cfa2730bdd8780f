// Matrix products and convolutions of an isolated pass (isolation.h) in bfloat16.
//
// With Precision::kBfloat16 (device/precision.h) the factors of every product that takes values of
// an example are converted to bfloat16, and its result to float32. The backward pass follows: the
// gradient of a result is converted, and its products are those of bfloat16 factors. All other
// operations see float32, so each does what it does without this, and parameters, losses and what
// becomes of gradients are float32 as ever. A conversion between a parameter and a product is no
// part of the parameter's path (tape.h): what is clipped is a product of the bfloat16 numbers that
// met there, which float32 holds exactly (rounding.h).
//
//   converted: linear, matmul, mm, bmm, mv, addmm, addmv, addbmm, baddbmm, convolution in all
//   forms, scaled dot-product attention
//
// Recurrent layers and cells stay as they are, and so do products of parameters alone and of
// float64, float16 and bfloat16 tensors.
#ifndef SORDINO_GRADIENTS_INTERNAL_ISOLATION_BFLOAT16_PRODUCTS_H_
#define SORDINO_GRADIENTS_INTERNAL_ISOLATION_BFLOAT16_PRODUCTS_H_

#include <ATen/core/Tensor.h>

#include <initializer_list>

namespace sordino::isolated {

// In its scope on this thread, products of an isolated pass have the precision that is used, or
// that of their factors.
class ProductPrecision {
 public:
  enum class Of { kUsed, kFactors };
  explicit ProductPrecision(Of precision);
  ~ProductPrecision();
  ProductPrecision(const ProductPrecision&) = delete;
  ProductPrecision& operator=(const ProductPrecision&) = delete;

 private:
  const bool before_;
};

// Whether a product of these factors is one of bfloat16; undefined tensors and masks do not count.
bool ConvertsFactors(std::initializer_list<at::Tensor> factors);

// In bfloat16 where it is float32.
at::Tensor Narrowed(const at::Tensor& factor);

// The type that the rounding of values is of: bfloat16 for float32 where products are converted.
at::ScalarType RoundingType(at::ScalarType type);

}  // namespace sordino::isolated

#endif  // SORDINO_GRADIENTS_INTERNAL_ISOLATION_BFLOAT16_PRODUCTS_H_
