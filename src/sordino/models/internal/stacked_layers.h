// Layers of k models at once (stacked_model.h).
#ifndef SORDINO_MODELS_INTERNAL_STACKED_LAYERS_H_
#define SORDINO_MODELS_INTERNAL_STACKED_LAYERS_H_

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace sordino::internal {

// [k, n, in] to [k, n, out] by weights [k, out, in] and biases [k, out].
at::Tensor StackedLinear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);

struct StackedConvolution {
  std::int64_t stride = 1;
  std::int64_t padding = 0;
};
// Images with the channels last, [k, n, height, width, in], to [k, n, height', width', out] by
// kernels [k, out, in, rows, columns] and biases [k, out]. Float32 on the CPU.
at::Tensor StackedConvolve(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                           StackedConvolution how);

// Windows of 2 by 2 at every place: [k, n, height, width, c] to [k, n, height - 1, width - 1, c].
at::Tensor StackedPool(const at::Tensor& x);

}  // namespace sordino::internal

#endif  // SORDINO_MODELS_INTERNAL_STACKED_LAYERS_H_
