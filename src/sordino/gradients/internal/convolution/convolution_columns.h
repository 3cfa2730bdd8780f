// Blocks of the column matrix of a convolution, built for a fast product on the CPU.
//
// A row of the matrix holds what the kernel sees at one position (im2col), and beside it stands
// the signal of that position; the gradient of the weight is columns^T signal. A block has few
// enough rows to stay in the cache until it is multiplied, so that the column matrix of a whole
// batch, kernel-size times larger than the images, never exists.
//
// The image is first copied to a padded buffer with the channels innermost. The kernel then sees
// runs of kernel width * channels consecutive values whatever the stride, and a row is a few long
// copies. The entries of a row are therefore ordered [kernel, channel].
#ifndef SORDINO_GRADIENTS_INTERNAL_CONVOLUTION_CONVOLUTION_COLUMNS_H_
#define SORDINO_GRADIENTS_INTERNAL_CONVOLUTION_CONVOLUTION_COLUMNS_H_

#include <ATen/core/Tensor.h>
#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <array>
#include <cstdint>
#include <vector>

#include "sordino/base/check.h"
#include "sordino/gradients/internal/convolution/convolution_shape.h"

namespace sordino {

// Calls visit(pointer to the data) with the type of the tensor's elements.
template <typename Visit>
void VisitData(const at::Tensor& tensor, const Visit& visit) {
  switch (tensor.scalar_type()) {
    case at::kFloat:
      return visit(tensor.const_data_ptr<float>());
    case at::kDouble:
      return visit(tensor.const_data_ptr<double>());
    case at::kBFloat16:
      return visit(tensor.const_data_ptr<c10::BFloat16>());
    case at::kHalf:
      return visit(tensor.const_data_ptr<c10::Half>());
    default:
      SORDINO_CHECK(false, "a convolution has operands that are not floating-point numbers");
  }
}

// Copies one image of the operand [images, channels, depth, height, width] to [depth + 2 padding,
// height + 2 padding, width + 2 padding, channels], as T; the padding is zero.
template <typename T>
class PaddedImage {
 public:
  PaddedImage(const at::Tensor& images, const Extent& padding);

  void Load(std::int64_t image);
  const T* data() const { return buffer_.data(); }
  const Extent& extent() const { return extent_; }

 private:
  template <typename Source>
  void LoadFrom(const Source* source);

  const at::Tensor images_;
  const Extent padding_;
  Extent extent_;
  std::vector<T> buffer_;
};

template <typename T>
class ColumnBlock {
 public:
  // `capacity` rows at most.
  ColumnBlock(const ConvolutionOperands& operands, std::int64_t capacity);

  // Names the image whose positions are appended next.
  void Load(std::int64_t image);
  // Appends positions [first, first + count) of the image; the signal is multiplied by `factor`
  // in float64 and rounded once.
  void Append(std::int64_t first, std::int64_t count, double factor);
  void Clear() { rows_ = 0; }

  std::int64_t rows() const { return rows_; }
  std::int64_t room() const { return capacity_ - rows_; }

  // For a depthwise convolution: [rows, kernel, image channels] and [rows, signal channels].
  const T* columns() const { return columns_.template const_data_ptr<T>(); }
  const T* signal() const { return signal_.template const_data_ptr<T>(); }

  // For others: columns^T [columns, rows] and signal [rows, signal channels / groups] of a group:
  // views that hold until the next change of the block.
  struct Factors {
    at::Tensor columns;
    at::Tensor signal;
  };
  const std::vector<Factors>& PerGroup();

 private:
  void AppendColumns(std::int64_t first, std::int64_t count);
  template <int kQuads>
  void CopyRows(std::int64_t first, std::int64_t count);
  template <typename Source>
  void AppendSignal(const Source* source, std::int64_t first, std::int64_t count, double factor);

  const ConvolutionShape shape_;
  const at::Tensor signal_operand_;
  const std::int64_t capacity_;
  // The signal is kept [rows, channels] where the operand has its channels innermost, and else
  // [channels, rows]: whichever is a plain copy. A depthwise convolution needs the former.
  const bool channels_last_;
  // Channels are cut into as many column matrices as there are groups, but for a depthwise one.
  const std::int64_t parts_;
  const std::int64_t channels_per_part_;
  const std::int64_t row_size_;
  PaddedImage<T> image_;
  std::int64_t loaded_ = 0;
  std::int64_t rows_ = 0;
  std::vector<std::int64_t> run_offsets_;  // in the padded image, from the kernel's first value
  std::int64_t run_ = 0;                   // values a run
  std::int64_t part_stride_ = 0;
  at::Tensor columns_;  // [parts, capacity, row size], flat, with slack after each part
  at::Tensor signal_;
  std::vector<Factors> factors_;
  std::int64_t factors_rows_ = -1;
};

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_INTERNAL_CONVOLUTION_CONVOLUTION_COLUMNS_H_
