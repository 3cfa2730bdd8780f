// Squared norms of per-example convolution gradients from Gram matrices, without the gradients.
//
// With cols [rows, columns] and signal [rows, channels] of one example,
//
//     || cols^T signal ||_F^2 = sum_{t,u} (cols cols^T)[t,u] (signal signal^T)[t,u]
//
// (Goodfellow, arXiv 1510.01799; for convolutions Rochette, Manoel, Tramel, arXiv 1912.06015). The
// columns repeat pixels, so their Gram matrix is a sum over the kernel of entries of the Gram
// matrix of the pixels, which costs kernel-size times less than that of the columns:
//
//     (cols cols^T)[t,u] = sum_k pixels[t + k] . pixels[u + k].
//
// The terms of the sum have both signs. In float32 their rounding can exceed the norm itself where
// the gradient is much smaller than |image| |signal|, and a norm that is too small is a privacy
// bug; so everything here is float64: products of float32 values are then exact, and the error
// is at most (channels + rows^2) 2^-53 |image|^2 |signal|^2 times the kernel's size.
#ifndef SORDINO_GRADIENTS_INTERNAL_CONVOLUTION_CONVOLUTION_GRAM_H_
#define SORDINO_GRADIENTS_INTERNAL_CONVOLUTION_CONVOLUTION_GRAM_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "sordino/gradients/internal/convolution/convolution_shape.h"

namespace sordino {

// Whether the Gram matrices of an example, the one of `pixels` pixels and the one of its rows, cost
// less than its gradient; an operation in float64 takes `float64_cost` times that in float32.
bool GramIsCheaper(const ConvolutionShape& shape, std::int64_t pixels, double float64_cost);

class GramNorm {
 public:
  explicit GramNorm(const ConvolutionOperands& operands);

  double SquaredNorm(std::int64_t example);

 private:
  // The kernel value k meets `pixel` at position `row` of the same image.
  struct Meeting {
    std::int32_t row;
    std::int32_t pixel;
  };

  double WeighedSum() const;

  const ConvolutionShape shape_;
  const at::Tensor image_operand_;
  const at::Tensor signal_operand_;
  std::vector<std::vector<Meeting>> meetings_;  // for each value of the kernel; padding left out
  at::Tensor pixels_;                           // [image channels, images * pixels], float64
  at::Tensor signal_;                           // [signal channels, rows], float64
  at::Tensor pixel_gram_;
  at::Tensor signal_gram_;
  std::vector<at::Tensor> pixels_of_group_;
  std::vector<at::Tensor> signal_of_group_;
};

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_INTERNAL_CONVOLUTION_CONVOLUTION_GRAM_H_
