#include "sordino/gradients/internal/convolution/convolution_gradients.h"

#include <ATen/core/Tensor.h>

#include "sordino/base/check.h"
#include "sordino/gradients/internal/convolution/convolution_cpu.h"
#include "sordino/gradients/internal/convolution/convolution_device.h"
#include "sordino/gradients/internal/convolution/convolution_shape.h"

namespace sordino {
namespace {

void CheckPerExample(const at::Tensor& values, const ExampleLayout& layout) {
  SORDINO_CHECK(
      values.scalar_type() == at::kDouble && values.dim() == 1 && values.size(0) == layout.examples,
      "norms and factors of convolution gradients are one float64 an example");
}

}  // namespace

at::Tensor ConvolutionGradients(const Convolution& convolution, const at::Tensor& input,
                                const at::Tensor& output_gradient, const ExampleLayout& layout,
                                const at::Tensor& squared) {
  if (squared.defined()) CheckPerExample(squared, layout);
  const ConvolutionOperands operands = MakeOperands(convolution, input, output_gradient, layout);
  return input.is_cpu() ? CpuConvolutionGradients(operands, squared)
                        : DeviceConvolutionGradients(operands, squared);
}

void AddConvolutionSquaredNorms(const Convolution& convolution, const at::Tensor& input,
                                const at::Tensor& output_gradient, const ExampleLayout& layout,
                                const at::Tensor& squared) {
  CheckPerExample(squared, layout);
  const ConvolutionOperands operands = MakeOperands(convolution, input, output_gradient, layout);
  input.is_cpu() ? CpuAddSquaredNorms(operands, squared) : DeviceAddSquaredNorms(operands, squared);
}

at::Tensor WeightedConvolutionGradient(const Convolution& convolution, const at::Tensor& input,
                                       const at::Tensor& output_gradient,
                                       const ExampleLayout& layout, const at::Tensor& factors,
                                       bool wide) {
  CheckPerExample(factors, layout);
  const ConvolutionOperands operands = MakeOperands(convolution, input, output_gradient, layout);
  return input.is_cpu() ? CpuWeightedGradient(operands, factors, wide)
                        : DeviceWeightedGradient(operands, factors, wide);
}

}  // namespace sordino
