#include "sordino/gradients/internal/convolution/convolution_gram.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm_cpu_dispatch.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sordino/gradients/internal/convolution/convolution_columns.h"
#include "sordino/gradients/internal/convolution/convolution_shape.h"

namespace sordino {
namespace {

// One term of the weighed sum takes as long as this many operations of a product.
constexpr double kTermCost = 16;
// Building a column entry, likewise.
constexpr double kColumnCost = 8;
constexpr std::int64_t kMaxGramSize = 2048;

// [channels, pixels] of one image, as float64, into rows that are `stride` long.
void CopyImage(const at::Tensor& images, std::int64_t image, double* target, std::int64_t stride) {
  VisitData(images, [&](const auto* data) {
    const at::IntArrayRef sizes = images.sizes();
    const at::IntArrayRef strides = images.strides();
    for (std::int64_t c = 0; c < sizes[1]; ++c) {
      double* to = target + c * stride;
      for (std::int64_t d = 0; d < sizes[2]; ++d) {
        for (std::int64_t h = 0; h < sizes[3]; ++h) {
          const auto* from =
              data + image * strides[0] + c * strides[1] + d * strides[2] + h * strides[3];
          for (std::int64_t w = 0; w < sizes[4]; ++w) {
            *to++ = static_cast<double>(from[w * strides[4]]);
          }
        }
      }
    }
  });
}

}  // namespace

bool GramIsCheaper(const ConvolutionShape& shape, std::int64_t pixels, double float64_cost) {
  if (pixels > kMaxGramSize || shape.rows_per_example() > kMaxGramSize) return false;
  const auto n = static_cast<double>(pixels);
  const auto rows = static_cast<double>(shape.rows_per_example());
  const auto columns = static_cast<double>(shape.columns());
  const auto image_channels = static_cast<double>(shape.image_channels);
  const auto signal_channels = static_cast<double>(shape.signal_channels);
  const auto groups = static_cast<double>(shape.groups);
  const auto kernel = static_cast<double>(Volume(shape.kernel));
  const double gram = 2 * float64_cost * (n * n * image_channels + rows * rows * signal_channels) +
                      kTermCost * groups * kernel * rows * rows;
  const double gradient =
      2 * rows * columns * signal_channels + kColumnCost * rows * columns * groups;
  return gram < gradient;
}

GramNorm::GramNorm(const ConvolutionOperands& operands)
    : shape_(operands.shape), image_operand_(operands.image), signal_operand_(operands.signal) {
  const std::int64_t images = shape_.layout.rows_per_example();
  const Extent& image = shape_.image;
  const Extent& positions = shape_.positions;
  for (std::int64_t k = 0; k < Volume(shape_.kernel); ++k) {
    const Extent at = {k / (shape_.kernel[1] * shape_.kernel[2]),
                       k / shape_.kernel[2] % shape_.kernel[1], k % shape_.kernel[2]};
    std::vector<Meeting>& meetings = meetings_.emplace_back();
    for (std::int64_t row = 0; row < images * Volume(positions); ++row) {
      const std::int64_t t = row % Volume(positions);
      const Extent position = {t / (positions[1] * positions[2]), t / positions[2] % positions[1],
                               t % positions[2]};
      std::int64_t pixel = row / Volume(positions);
      bool inside = true;
      for (std::size_t i = 0; i < at.size(); ++i) {
        const std::int64_t x =
            position[i] * shape_.stride[i] + at[i] * shape_.dilation[i] - shape_.padding[i];
        inside = inside && x >= 0 && x < image[i];
        pixel = pixel * image[i] + x;
      }
      if (!inside) continue;
      meetings.push_back({static_cast<std::int32_t>(row), static_cast<std::int32_t>(pixel)});
    }
  }
  const auto options = operands.image.options().dtype(at::kDouble);
  const std::int64_t pixels = images * Volume(image);
  const std::int64_t rows = images * Volume(positions);
  pixels_ = at::empty({shape_.image_channels, pixels}, options);
  signal_ = at::empty({shape_.signal_channels, rows}, options);
  pixel_gram_ = at::empty({pixels, pixels}, options);
  signal_gram_ = at::empty({rows, rows}, options);
  const std::int64_t image_channels = shape_.image_channels_per_group();
  const std::int64_t signal_channels = shape_.signal_channels_per_group();
  for (std::int64_t group = 0; group < shape_.groups; ++group) {
    pixels_of_group_.push_back(pixels_.narrow(0, group * image_channels, image_channels));
    signal_of_group_.push_back(signal_.narrow(0, group * signal_channels, signal_channels));
  }
}

double GramNorm::SquaredNorm(std::int64_t example) {
  const std::int64_t images = shape_.layout.rows_per_example();
  for (std::int64_t i = 0; i < images; ++i) {
    const std::int64_t image = shape_.ImageOf(example, i);
    CopyImage(image_operand_, image, pixels_.data_ptr<double>() + i * Volume(shape_.image),
              pixels_.size(1));
    CopyImage(signal_operand_, image, signal_.data_ptr<double>() + i * Volume(shape_.positions),
              signal_.size(1));
  }
  double sum = 0;
  for (std::size_t group = 0; group < pixels_of_group_.size(); ++group) {
    at::cpu::mm_out(pixel_gram_, pixels_of_group_[group].t(), pixels_of_group_[group]);
    at::cpu::mm_out(signal_gram_, signal_of_group_[group].t(), signal_of_group_[group]);
    sum += WeighedSum();
  }
  // A gradient of zeros may leave a rounding error below zero.
  return sum < 0 ? 0 : sum;
}

// Both matrices are symmetric: terms off the diagonal are met once and count twice.
double GramNorm::WeighedSum() const {
  const double* pixel_gram = pixel_gram_.const_data_ptr<double>();
  const double* signal_gram = signal_gram_.const_data_ptr<double>();
  const std::int64_t pixels = pixel_gram_.size(0);
  const std::int64_t rows = signal_gram_.size(0);
  double diagonal = 0;
  double rest = 0;
  for (const std::vector<Meeting>& meetings : meetings_) {
    for (std::size_t i = 0; i < meetings.size(); ++i) {
      const double* p = pixel_gram + meetings[i].pixel * pixels;
      const double* s = signal_gram + meetings[i].row * rows;
      diagonal += p[meetings[i].pixel] * s[meetings[i].row];
      double sums[4] = {0, 0, 0, 0};
      std::size_t j = 0;
      for (; j + 4 <= i; j += 4) {
        for (std::size_t lane = 0; lane < 4; ++lane) {
          sums[lane] += p[meetings[j + lane].pixel] * s[meetings[j + lane].row];
        }
      }
      for (; j < i; ++j) rest += p[meetings[j].pixel] * s[meetings[j].row];
      rest += (sums[0] + sums[1]) + (sums[2] + sums[3]);
    }
  }
  return diagonal + 2 * rest;
}

}  // namespace sordino
