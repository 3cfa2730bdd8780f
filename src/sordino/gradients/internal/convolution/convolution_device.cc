#include "sordino/gradients/internal/convolution/convolution_device.h"

#include <ATen/Context.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sordino/gradients/internal/convolution/convolution_gram.h"
#include "sordino/gradients/internal/convolution/convolution_products.h"
#include "sordino/gradients/internal/convolution/convolution_shape.h"

namespace sordino {
namespace {

using Sizes = std::vector<std::int64_t>;

// Float64 products are half as fast as float32 ones on the large cards and far slower on small
// ones; Gram matrices are taken only where they win by a wide margin.
constexpr double kDeviceFloat64Cost = 8;

// Examples [first, first + count) as [outer, count, inner, channels, depth, height, width].
at::Tensor Slice(const at::Tensor& operand, const ExampleLayout& layout, std::int64_t first,
                 std::int64_t count) {
  return operand.unflatten(0, {layout.outer, layout.examples, layout.inner})
      .narrow(1, first, count);
}

at::Tensor Padded(const at::Tensor& slice, const ConvolutionShape& shape) {
  const Extent& padding = shape.padding;
  if (padding == Extent{0, 0, 0}) return slice;
  return at::constant_pad_nd(
      slice, {padding[2], padding[2], padding[1], padding[1], padding[0], padding[0]}, 0);
}

// The columns of a padded slice, [count, groups, channels, kernel (3), outer, inner, positions
// (3)]: a view in which the kernel's overlapping windows share memory.
at::Tensor Windows(const at::Tensor& padded, const ConvolutionShape& shape) {
  const ExampleLayout& layout = shape.layout;
  const std::int64_t channels = shape.image_channels_per_group();
  const at::IntArrayRef strides = padded.strides();
  Sizes sizes = {padded.size(1), shape.groups, channels};
  Sizes steps = {strides[1], strides[3] * channels, strides[3]};
  for (std::size_t i = 0; i < 3; ++i) {
    sizes.push_back(shape.kernel[i]);
    steps.push_back(strides[4 + i] * shape.dilation[i]);
  }
  sizes.insert(sizes.end(), {layout.outer, layout.inner});
  steps.insert(steps.end(), {strides[0], strides[2]});
  for (std::size_t i = 0; i < 3; ++i) {
    sizes.push_back(shape.positions[i]);
    steps.push_back(strides[4 + i] * shape.stride[i]);
  }
  return padded.as_strided(sizes, steps, padded.storage_offset());
}

// [count, groups, columns, rows]
at::Tensor Columns(const at::Tensor& image_slice, const ConvolutionShape& shape) {
  return Windows(Padded(image_slice, shape), shape)
      .reshape({image_slice.size(1), shape.groups, shape.columns(), shape.rows_per_example()});
}

// [count, groups, signal channels / groups, rows]
at::Tensor Signal(const at::Tensor& signal_slice, const ConvolutionShape& shape) {
  return signal_slice.permute({1, 3, 0, 2, 4, 5, 6})
      .reshape({signal_slice.size(1), shape.groups, shape.signal_channels_per_group(),
                shape.rows_per_example()});
}

// [count * groups, signal channels / groups, columns], the order of the weight.
at::Tensor SliceGradients(const ConvolutionOperands& operands, std::int64_t first,
                          std::int64_t count) {
  const ConvolutionShape& shape = operands.shape;
  const at::Tensor columns =
      Columns(Slice(operands.image, shape.layout, first, count).to(operands.type), shape);
  const at::Tensor signal =
      Signal(Slice(operands.signal, shape.layout, first, count).to(operands.type), shape);
  return at::bmm(signal.flatten(0, 1), columns.flatten(0, 1).transpose(1, 2));
}

void AddNorms(const at::Tensor& squared, std::int64_t first, const at::Tensor& gradients) {
  const at::Tensor norms =
      at::linalg_vector_norm(gradients, 2, at::IntArrayRef{1}, /*keepdim=*/false, at::kDouble);
  squared.narrow(0, first, norms.size(0)).add_(norms.square());
}

// How many examples make up about `bytes` at `values` values an example.
std::int64_t ExamplesPerSlice(const ConvolutionOperands& operands, std::int64_t values,
                              std::int64_t bytes) {
  const auto width = static_cast<std::int64_t>(c10::elementSize(operands.type));
  return std::max<std::int64_t>(1, bytes / std::max<std::int64_t>(1, values * width));
}

std::int64_t ValuesPerExample(const ConvolutionShape& shape) {
  return std::max(shape.rows_per_example() * shape.columns() * shape.groups, shape.weights());
}

template <typename Visit>
void ForEachSlice(std::int64_t examples, std::int64_t per_slice, const Visit& visit) {
  for (std::int64_t first = 0; first < examples; first += per_slice) {
    visit(first, std::min(per_slice, examples - first));
  }
}

}  // namespace

at::Tensor DeviceConvolutionGradients(const ConvolutionOperands& operands,
                                      const at::Tensor& squared, std::int64_t bytes) {
  const at::NoTF32Guard full_precision;
  const ConvolutionShape& shape = operands.shape;
  Sizes sizes = WeightSizes(operands);
  sizes.insert(sizes.begin(), shape.layout.examples);
  const std::int64_t per_slice = ExamplesPerSlice(operands, ValuesPerExample(shape), bytes);
  if (shape.layout.examples > 0 && shape.layout.examples <= per_slice) {
    at::Tensor all = SliceGradients(operands, 0, shape.layout.examples).view(sizes);
    if (squared.defined()) AddNorms(squared, 0, all.flatten(1));
    return all;
  }
  at::Tensor gradients = at::empty(sizes, operands.image.options().dtype(operands.type));
  ForEachSlice(shape.layout.examples, per_slice, [&](std::int64_t first, std::int64_t count) {
    const at::Tensor slice = gradients.narrow(0, first, count);
    slice.copy_(SliceGradients(operands, first, count).view_as(slice));
    if (squared.defined()) AddNorms(squared, first, slice.flatten(1));
  });
  return gradients;
}

void DeviceAddSquaredNorms(const ConvolutionOperands& operands, const at::Tensor& squared,
                           std::int64_t bytes) {
  const at::NoTF32Guard full_precision;
  const ConvolutionShape& shape = operands.shape;
  const std::int64_t pixels = shape.layout.rows_per_example() * Volume(shape.padded());
  const bool gram = GramIsCheaper(shape, pixels, kDeviceFloat64Cost);
  const std::int64_t values = gram ? 2 * shape.groups * std::max(pixels, shape.rows_per_example()) *
                                         std::max(pixels, shape.rows_per_example())
                                   : ValuesPerExample(shape);
  const std::int64_t per_slice = ExamplesPerSlice(operands, values, bytes);
  ForEachSlice(shape.layout.examples, per_slice, [&](std::int64_t first, std::int64_t count) {
    if (gram) {
      squared.narrow(0, first, count).add_(DeviceGramSquaredNorms(operands, first, count));
    } else {
      AddNorms(squared, first,
               SliceGradients(operands, first, count).view({count, shape.weights()}));
    }
  });
}

at::Tensor DeviceWeightedGradient(const ConvolutionOperands& operands, const at::Tensor& factors,
                                  bool wide, std::int64_t bytes) {
  const at::NoTF32Guard full_precision;
  const ConvolutionShape& shape = operands.shape;
  const ExampleLayout& layout = shape.layout;
  const at::Tensor zero = at::scalar_tensor(0, operands.image.options().dtype(operands.type));
  at::Tensor total = at::zeros({shape.groups, shape.signal_channels_per_group(), shape.columns()},
                               operands.image.options().dtype(at::kDouble));
  // A product for each example: what it rounds to depends on that example only.
  const std::int64_t per_slice = ExamplesPerSlice(operands, ValuesPerExample(shape), bytes);
  ForEachSlice(layout.examples, per_slice, [&](std::int64_t first, std::int64_t count) {
    const at::Tensor scale = factors.narrow(0, first, count).view({1, count, 1, 1, 1, 1, 1});
    const at::Tensor used = scale.ne(0);
    const at::Tensor image =
        at::where(used, Slice(operands.image, layout, first, count).to(operands.type), zero);
    const at::Tensor signal = at::where(
        used,
        Slice(operands.signal, layout, first, count).to(at::kDouble).mul(scale).to(operands.type),
        zero);
    const at::Tensor products = at::bmm(Signal(signal, shape).flatten(0, 1),
                                        Columns(image, shape).flatten(0, 1).transpose(1, 2));
    total.add_(products.view({count, shape.groups, products.size(1), products.size(2)})
                   .sum({0}, /*keepdim=*/false, at::kDouble));
  });
  return total.to(wide ? at::kDouble : operands.type).view(WeightSizes(operands));
}

at::Tensor DeviceGramSquaredNorms(const ConvolutionOperands& operands, std::int64_t first,
                                  std::int64_t count) {
  const at::NoTF32Guard full_precision;
  const ConvolutionShape& shape = operands.shape;
  const ExampleLayout& layout = shape.layout;
  const Extent extent = shape.padded();
  const std::int64_t images = layout.rows_per_example();
  const std::int64_t pixels = images * Volume(extent);
  const at::Tensor image =
      Padded(Slice(operands.image, layout, first, count), shape)
          .permute({1, 3, 0, 2, 4, 5, 6})
          .to(at::kDouble)
          .reshape({count * shape.groups, shape.image_channels_per_group(), pixels});
  const at::Tensor signal =
      Signal(Slice(operands.signal, layout, first, count), shape).flatten(0, 1).to(at::kDouble);
  const at::Tensor gram = at::bmm(image.transpose(1, 2), image).contiguous();
  const Extent pitch = {extent[1] * extent[2], extent[2], 1};
  Sizes sizes = {count * shape.groups};
  Sizes steps = {pixels * pixels};
  for (std::size_t i = 0; i < 3; ++i) {
    sizes.push_back(shape.kernel[i]);
    steps.push_back(pitch[i] * shape.dilation[i] * (pixels + 1));
  }
  for (const std::int64_t scale : {pixels, std::int64_t{1}}) {
    sizes.push_back(images);
    steps.push_back(scale * Volume(extent));
    for (std::size_t i = 0; i < 3; ++i) {
      sizes.push_back(shape.positions[i]);
      steps.push_back(scale * pitch[i] * shape.stride[i]);
    }
  }
  const std::int64_t rows = shape.rows_per_example();
  const at::Tensor column_gram =
      gram.as_strided(sizes, steps, 0).sum({1, 2, 3}).reshape({count, shape.groups, rows, rows});
  const at::Tensor signal_gram = at::bmm(signal.transpose(1, 2), signal);
  return column_gram.mul(signal_gram.view_as(column_gram)).sum({1, 2, 3}).clamp_min(0);
}

}  // namespace sordino
