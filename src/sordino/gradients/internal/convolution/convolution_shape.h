// A convolution with its operands, brought to one form: three spatial dimensions, and the two
// tensors named by their part in the gradient instead of by direction.
//
// The gradient of the weight is the same sum for a convolution and for a transposed one,
//
//     dL/dW[s, c, k] = sum_t signal[s, t] * image[c, t * stride + k * dilation - padding],
//
// where the image is what the kernel slides over and the signal has one value for each position
// of the kernel: (input, output gradient) for a convolution, (output gradient, input) for a
// transposed one. In both cases libtorch stores the weight as [signal channels, image channels /
// groups, kernel...]. One and two spatial dimensions get leading dimensions of size 1.
#ifndef SORDINO_GRADIENTS_INTERNAL_CONVOLUTION_CONVOLUTION_SHAPE_H_
#define SORDINO_GRADIENTS_INTERNAL_CONVOLUTION_CONVOLUTION_SHAPE_H_

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <vector>

#include "sordino/gradients/internal/convolution/convolution_gradients.h"
#include "sordino/kernels/example_layout.h"

namespace sordino {

using Extent = std::array<std::int64_t, 3>;  // depth, height, width

inline std::int64_t Volume(const Extent& extent) { return extent[0] * extent[1] * extent[2]; }

struct ConvolutionShape {
  Extent kernel;
  Extent stride;
  Extent padding;
  Extent dilation;
  Extent image;      // without padding
  Extent positions;  // of the kernel in the image
  std::int64_t groups;
  std::int64_t image_channels;
  std::int64_t signal_channels;
  ExampleLayout layout;

  std::int64_t image_channels_per_group() const { return image_channels / groups; }
  std::int64_t signal_channels_per_group() const { return signal_channels / groups; }
  // Entries of one row of the column matrix of a group.
  std::int64_t columns() const { return Volume(kernel) * image_channels_per_group(); }
  // One image channel a group: the gradient is no matrix product then.
  bool depthwise() const { return groups > 1 && image_channels == groups; }
  std::int64_t weights() const { return columns() * signal_channels; }
  std::int64_t rows_per_example() const { return layout.rows_per_example() * Volume(positions); }
  Extent padded() const;
  // The index, among all images, of image `index` of an example.
  std::int64_t ImageOf(std::int64_t example, std::int64_t index) const {
    return (index / layout.inner * layout.examples + example) * layout.inner + index % layout.inner;
  }
};

struct ConvolutionOperands {
  ConvolutionShape shape;
  at::Tensor image;     // [images, channels, depth, height, width], a view
  at::Tensor signal;    // the same, one pixel a position
  at::ScalarType type;  // of products and results: float64 for float64, else float32
  std::int64_t spatial_dimensions;
};

// Stops the program where sizes contradict each other: a gradient would be attributed wrongly.
ConvolutionOperands MakeOperands(const Convolution& convolution, const at::Tensor& input,
                                 const at::Tensor& output_gradient, const ExampleLayout& layout);

// The sizes of the weight.
std::vector<std::int64_t> WeightSizes(const ConvolutionOperands& operands);

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_INTERNAL_CONVOLUTION_CONVOLUTION_SHAPE_H_
