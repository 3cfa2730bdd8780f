// Convolution gradients on the CPU: examples are shared out among the threads, and each thread
// multiplies one block of columns at a time. See convolution_gradients.h for what is computed.
#ifndef SORDINO_GRADIENTS_INTERNAL_CONVOLUTION_CONVOLUTION_CPU_H_
#define SORDINO_GRADIENTS_INTERNAL_CONVOLUTION_CONVOLUTION_CPU_H_

#include <ATen/core/Tensor.h>

#include "sordino/gradients/internal/convolution/convolution_shape.h"

namespace sordino {

at::Tensor CpuConvolutionGradients(const ConvolutionOperands& operands, const at::Tensor& squared);
void CpuAddSquaredNorms(const ConvolutionOperands& operands, const at::Tensor& squared);
at::Tensor CpuWeightedGradient(const ConvolutionOperands& operands, const at::Tensor& factors,
                               bool wide);

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_INTERNAL_CONVOLUTION_CONVOLUTION_CPU_H_
