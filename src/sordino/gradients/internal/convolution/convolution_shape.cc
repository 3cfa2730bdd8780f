#include "sordino/gradients/internal/convolution/convolution_shape.h"

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sordino/base/check.h"

namespace sordino {
namespace {

// Sizes of the spatial dimensions, `missing` in front where there are fewer than three.
Extent ToExtent(at::IntArrayRef sizes, std::int64_t missing) {
  Extent extent = {missing, missing, missing};
  const std::size_t first = extent.size() - sizes.size();
  for (std::size_t i = 0; i < sizes.size(); ++i) extent[first + i] = sizes[i];
  return extent;
}

at::Tensor ToFiveDimensions(at::Tensor tensor) {
  while (tensor.dim() < 5) tensor = tensor.unsqueeze(2);
  return tensor;
}

// libtorch lets one number stand for all spatial dimensions.
std::vector<std::int64_t> Expanded(const std::vector<std::int64_t>& values, std::int64_t count) {
  if (values.size() == 1) {
    return std::vector<std::int64_t>(static_cast<std::size_t>(count), values.front());
  }
  return values;
}

void Check(const ConvolutionOperands& operands, const Convolution& convolution) {
  const ConvolutionShape& shape = operands.shape;
  const std::int64_t images = shape.layout.rows();
  SORDINO_CHECK(operands.image.size(0) == images && operands.signal.size(0) == images,
                "a convolution has another number of images than its examples own");
  SORDINO_CHECK(shape.groups > 0 && shape.image_channels % shape.groups == 0 &&
                    shape.signal_channels % shape.groups == 0,
                "the channels of a convolution do not divide into its groups");
  SORDINO_CHECK(convolution.weight[0] == shape.signal_channels &&
                    convolution.weight[1] == shape.image_channels_per_group(),
                "the weight of a convolution does not fit the channels of its operands");
  const Extent padded = shape.padded();
  for (std::size_t i = 0; i < padded.size(); ++i) {
    const std::int64_t reach =
        (shape.positions[i] - 1) * shape.stride[i] + (shape.kernel[i] - 1) * shape.dilation[i] + 1;
    SORDINO_CHECK(shape.positions[i] == 0 || reach <= padded[i],
                  "the kernel of a convolution reaches beyond the padded image");
  }
}

}  // namespace

Extent ConvolutionShape::padded() const {
  Extent extent = image;
  for (std::size_t i = 0; i < extent.size(); ++i) extent[i] += 2 * padding[i];
  return extent;
}

ConvolutionOperands MakeOperands(const Convolution& convolution, const at::Tensor& input,
                                 const at::Tensor& output_gradient, const ExampleLayout& layout) {
  const std::int64_t spatial = input.dim() - 2;
  SORDINO_CHECK(spatial >= 1 && spatial <= 3 && output_gradient.dim() == input.dim() &&
                    static_cast<std::int64_t>(convolution.weight.size()) == input.dim(),
                "a convolution has one to three spatial dimensions");
  ConvolutionOperands operands;
  operands.spatial_dimensions = spatial;
  const bool is_double =
      input.scalar_type() == at::kDouble || output_gradient.scalar_type() == at::kDouble;
  operands.type = is_double ? at::kDouble : at::kFloat;
  const at::Tensor& image = convolution.transposed ? output_gradient : input;
  const at::Tensor& signal = convolution.transposed ? input : output_gradient;
  operands.image = ToFiveDimensions(image.detach());
  operands.signal = ToFiveDimensions(signal.detach());

  ConvolutionShape& shape = operands.shape;
  const at::IntArrayRef weight = convolution.weight;
  shape.kernel = ToExtent(weight.slice(2), 1);
  shape.stride = ToExtent(Expanded(convolution.stride, spatial), 1);
  shape.padding = ToExtent(Expanded(convolution.padding, spatial), 0);
  shape.dilation = ToExtent(Expanded(convolution.dilation, spatial), 1);
  shape.image = ToExtent(image.sizes().slice(2), 1);
  shape.positions = ToExtent(signal.sizes().slice(2), 1);
  shape.groups = convolution.groups;
  shape.image_channels = image.size(1);
  shape.signal_channels = signal.size(1);
  shape.layout = layout;
  Check(operands, convolution);
  return operands;
}

std::vector<std::int64_t> WeightSizes(const ConvolutionOperands& operands) {
  const ConvolutionShape& shape = operands.shape;
  std::vector<std::int64_t> sizes = {shape.signal_channels, shape.image_channels_per_group()};
  sizes.insert(sizes.end(), shape.kernel.end() - operands.spatial_dimensions, shape.kernel.end());
  return sizes;
}

}  // namespace sordino
