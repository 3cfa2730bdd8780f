#include "sordino/gradients/internal/convolution/convolution_columns.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "sordino/gradients/internal/convolution/convolution_shape.h"
#include "sordino/gradients/internal/convolution/tiled_transpose.h"

namespace sordino {
namespace {

// Runs are copied in whole chunks: what is written too much is overwritten by the next run, and
// the buffers end with this many values of slack.
constexpr std::int64_t kSlack = 16;

// One row of columns: the runs at `offsets` from `corner`, one after the other. Short runs have
// kQuads chunks of four values, a number known to the compiler; others (kQuads = 0) chunks of
// kSlack values.
template <int kQuads, typename T>
inline T* CopyRow(const T* corner, const std::vector<std::int64_t>& offsets, std::int64_t run,
                  T* row) {
  for (const std::int64_t offset : offsets) {
    const T* source = corner + offset;
    if constexpr (kQuads > 0) {
      for (int i = 0; i < kQuads; ++i) std::memcpy(row + 4 * i, source + 4 * i, 4 * sizeof(T));
    } else {
      for (std::int64_t i = 0; i < run; i += kSlack) {
        std::memcpy(row + i, source + i, kSlack * sizeof(T));
      }
    }
    row += run;
  }
  return row;
}

}  // namespace

template <typename T>
PaddedImage<T>::PaddedImage(const at::Tensor& images, const Extent& padding)
    : images_(images), padding_(padding) {
  for (std::size_t i = 0; i < extent_.size(); ++i) {
    extent_[i] = images.size(static_cast<std::int64_t>(i) + 2) + 2 * padding[i];
  }
  buffer_.resize(static_cast<std::size_t>(Volume(extent_) * images.size(1) + kSlack));
}

template <typename T>
void PaddedImage<T>::Load(std::int64_t image) {
  VisitData(images_, [&](const auto* data) { LoadFrom(data + image * images_.stride(0)); });
}

template <typename T>
template <typename Source>
void PaddedImage<T>::LoadFrom(const Source* source) {
  const at::IntArrayRef sizes = images_.sizes();
  const at::IntArrayRef strides = images_.strides();
  const std::int64_t channels = sizes[1];
  const std::int64_t width = sizes[4];
  for (std::int64_t d = 0; d < sizes[2]; ++d) {
    for (std::int64_t h = 0; h < sizes[3]; ++h) {
      const Source* from = source + d * strides[2] + h * strides[3];
      T* to = buffer_.data() +
              (((d + padding_[0]) * extent_[1] + h + padding_[1]) * extent_[2] + padding_[2]) *
                  channels;
      if (channels > 1 && strides[1] == 1) {
        for (std::int64_t w = 0; w < width; ++w) {
          std::copy_n(from + w * strides[4], channels, to + w * channels);
        }
      } else if (strides[4] == 1 || width == 1) {
        Transpose(from, strides[1], channels, width, to, channels);
      } else {
        for (std::int64_t c = 0; c < channels; ++c) {
          for (std::int64_t w = 0; w < width; ++w) {
            to[w * channels + c] = static_cast<T>(from[c * strides[1] + w * strides[4]]);
          }
        }
      }
    }
  }
}

template <typename T>
ColumnBlock<T>::ColumnBlock(const ConvolutionOperands& operands, std::int64_t capacity)
    : shape_(operands.shape),
      signal_operand_(operands.signal),
      capacity_(capacity),
      channels_last_(operands.shape.depthwise() ||
                     (operands.signal.size(1) > 1 && operands.signal.stride(1) == 1)),
      parts_(operands.shape.depthwise() ? 1 : operands.shape.groups),
      channels_per_part_(operands.shape.image_channels / parts_),
      row_size_(channels_per_part_ * Volume(operands.shape.kernel)),
      image_(operands.image, operands.shape.padding) {
  const Extent& padded = image_.extent();
  const std::int64_t channels = shape_.image_channels;
  const bool whole_rows = parts_ == 1 && shape_.dilation[2] == 1;
  run_ = channels_per_part_ * (whole_rows ? shape_.kernel[2] : 1);
  for (std::int64_t d = 0; d < shape_.kernel[0]; ++d) {
    for (std::int64_t h = 0; h < shape_.kernel[1]; ++h) {
      for (std::int64_t w = 0; w < (whole_rows ? 1 : shape_.kernel[2]); ++w) {
        const std::int64_t row = d * shape_.dilation[0] * padded[1] + h * shape_.dilation[1];
        run_offsets_.push_back((row * padded[2] + w * shape_.dilation[2]) * channels);
      }
    }
  }
  const auto options = operands.image.options().dtype(operands.type);
  part_stride_ = capacity * row_size_ + kSlack;
  columns_ = at::empty({parts_ * part_stride_}, options);
  signal_ = at::empty({capacity * shape_.signal_channels}, options);
}

template <typename T>
void ColumnBlock<T>::Load(std::int64_t image) {
  image_.Load(image);
  loaded_ = image;
}

template <typename T>
void ColumnBlock<T>::Append(std::int64_t first, std::int64_t count, double factor) {
  AppendColumns(first, count);
  VisitData(signal_operand_, [&](const auto* data) {
    AppendSignal(data + loaded_ * signal_operand_.stride(0), first, count, factor);
  });
  rows_ += count;
}

template <typename T>
void ColumnBlock<T>::AppendColumns(std::int64_t first, std::int64_t count) {
  switch ((run_ + 3) / 4) {
    case 1:
      return CopyRows<1>(first, count);
    case 2:
      return CopyRows<2>(first, count);
    case 3:
      return CopyRows<3>(first, count);
    case 4:
      return CopyRows<4>(first, count);
    case 5:
    case 6:
      return CopyRows<6>(first, count);
    default:
      return CopyRows<0>(first, count);
  }
}

template <typename T>
template <int kQuads>
void ColumnBlock<T>::CopyRows(std::int64_t first, std::int64_t count) {
  const Extent& padded = image_.extent();
  const Extent& positions = shape_.positions;
  const std::int64_t channels = shape_.image_channels;
  const std::int64_t step = shape_.stride[2] * channels;
  for (std::int64_t part = 0; part < parts_; ++part) {
    T* row = columns_.data_ptr<T>() + part * part_stride_ + rows_ * row_size_;
    const T* image = image_.data() + part * channels_per_part_;
    for (std::int64_t t = first; t < first + count;) {
      const std::int64_t d = t / (positions[1] * positions[2]) * shape_.stride[0];
      const std::int64_t h = t / positions[2] % positions[1] * shape_.stride[1];
      const std::int64_t w = t % positions[2];
      const std::int64_t end = std::min(first + count, t + positions[2] - w);
      const T* corner = image + (d * padded[1] + h) * padded[2] * channels + w * step;
      for (; t < end; ++t) {
        row = CopyRow<kQuads>(corner, run_offsets_, run_, row);
        corner += step;
      }
    }
  }
}

template <typename T>
template <typename Source>
void ColumnBlock<T>::AppendSignal(const Source* source, std::int64_t first, std::int64_t count,
                                  double factor) {
  const Extent& positions = shape_.positions;
  const at::IntArrayRef strides = signal_operand_.strides();
  const std::int64_t channels = shape_.signal_channels;
  // Pieces of the positions that are equidistant in memory: one row of the image, or all of them.
  const bool flat = (positions[1] == 1 || strides[3] == positions[2] * strides[4]) &&
                    (positions[0] == 1 || strides[2] == positions[1] * strides[3]);
  for (std::int64_t t = first; t < first + count;) {
    const std::int64_t w = t % positions[2];
    const std::int64_t end = flat ? first + count : std::min(first + count, t + positions[2] - w);
    const Source* from = source + t / (positions[1] * positions[2]) * strides[2] +
                         t / positions[2] % positions[1] * strides[3] + w * strides[4];
    const std::int64_t row = rows_ + t - first;
    const std::int64_t outer = channels_last_ ? end - t : channels;
    const std::int64_t inner = channels_last_ ? channels : end - t;
    const std::int64_t from_outer = channels_last_ ? strides[4] : strides[1];
    const std::int64_t from_inner = channels_last_ ? strides[1] : strides[4];
    const std::int64_t to_outer = channels_last_ ? channels : capacity_;
    T* to = signal_.data_ptr<T>() + (channels_last_ ? row * channels : row);
    for (std::int64_t i = 0; i < outer; ++i) {
      const Source* a = from + i * from_outer;
      T* b = to + i * to_outer;
      if (factor == 1 && from_inner == 1) {
        std::copy_n(a, inner, b);
      } else if (from_inner == 1) {
        for (std::int64_t j = 0; j < inner; ++j) {
          b[j] = static_cast<T>(static_cast<double>(a[j]) * factor);
        }
      } else {
        for (std::int64_t j = 0; j < inner; ++j) {
          b[j] = static_cast<T>(static_cast<double>(a[j * from_inner]) * factor);
        }
      }
    }
    t = end;
  }
}

template <typename T>
const std::vector<typename ColumnBlock<T>::Factors>& ColumnBlock<T>::PerGroup() {
  if (factors_rows_ == rows_) return factors_;
  const std::int64_t channels = shape_.signal_channels_per_group();
  factors_.clear();
  for (std::int64_t group = 0; group < shape_.groups; ++group) {
    const std::int64_t first = group * channels;
    factors_.push_back(
        {columns_.as_strided({row_size_, rows_}, {1, row_size_}, group * part_stride_),
         channels_last_
             ? signal_.as_strided({rows_, channels}, {shape_.signal_channels, 1}, first)
             : signal_.as_strided({rows_, channels}, {1, capacity_}, first * capacity_)});
  }
  factors_rows_ = rows_;
  return factors_;
}

template class PaddedImage<float>;
template class PaddedImage<double>;
template class ColumnBlock<float>;
template class ColumnBlock<double>;

}  // namespace sordino
