// Convolution gradients in operations of libtorch alone, for any device (CUDA above all).
//
// No synchronisation with the host and no shape that depends on data, so a step can be captured
// in a graph. See convolution_gradients.h for what is computed.
#ifndef SORDINO_GRADIENTS_INTERNAL_CONVOLUTION_CONVOLUTION_DEVICE_H_
#define SORDINO_GRADIENTS_INTERNAL_CONVOLUTION_CONVOLUTION_DEVICE_H_

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "sordino/gradients/internal/convolution/convolution_shape.h"

namespace sordino {

// Bytes of columns (or of Gram matrices) that exist at a time, where one example needs no more.
inline constexpr std::int64_t kDeviceBytes = std::int64_t{1} << 30;

at::Tensor DeviceConvolutionGradients(const ConvolutionOperands& operands,
                                      const at::Tensor& squared, std::int64_t bytes = kDeviceBytes);
void DeviceAddSquaredNorms(const ConvolutionOperands& operands, const at::Tensor& squared,
                           std::int64_t bytes = kDeviceBytes);
at::Tensor DeviceWeightedGradient(const ConvolutionOperands& operands, const at::Tensor& factors,
                                  bool wide, std::int64_t bytes = kDeviceBytes);

// Squared norms of examples [first, first + count) by the Gram matrices of convolution_gram.h, with
// the padding among the pixels: the sum over the kernel is then one over a strided view of the
// Gram matrix.
at::Tensor DeviceGramSquaredNorms(const ConvolutionOperands& operands, std::int64_t first,
                                  std::int64_t count);

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_INTERNAL_CONVOLUTION_CONVOLUTION_DEVICE_H_
