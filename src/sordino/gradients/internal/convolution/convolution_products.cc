#include "sordino/gradients/internal/convolution/convolution_products.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/addmm_cpu_dispatch.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm_cpu_dispatch.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "sordino/gradients/internal/convolution/convolution_columns.h"
#include "sordino/gradients/internal/convolution/convolution_shape.h"

namespace sordino {
namespace {

// Half of a core's second-level cache on common machines; a product of fewer rows than kFewRows
// spends its time on reading and writing the result instead.
constexpr std::int64_t kBlockValues = 1 << 17;
constexpr std::int64_t kFewRows = 128;

}  // namespace

std::int64_t RowsPerBlock(const ConvolutionShape& shape) {
  const std::int64_t row = std::max<std::int64_t>(1, shape.columns() * shape.groups);
  return std::clamp(kBlockValues / row, kFewRows, kRowsPerSum);
}

template <typename T>
ProductSum<T>::ProductSum(const ConvolutionOperands& operands)
    : shape_(operands.shape),
      size_(operands.shape.weights()),
      sum_(at::empty({operands.shape.columns(), operands.shape.signal_channels},
                     operands.image.options().dtype(operands.type))) {
  const std::int64_t channels = operands.shape.signal_channels_per_group();
  for (std::int64_t group = 0; group < operands.shape.groups; ++group) {
    sum_of_group_.push_back(sum_.narrow(1, group * channels, channels));
  }
}

template <typename T>
void ProductSum<T>::Add(ColumnBlock<T>& block) {
  if (block.rows() == 0) return;
  if (std::is_same_v<T, float> && rows_ + block.rows() > kRowsPerSum) Flush();
  if (shape_.depthwise()) {
    AddDepthwise(block);
  } else {
    AddMatrixProducts(block);
  }
  rows_ += block.rows();
}

template <typename T>
void ProductSum<T>::AddMatrixProducts(ColumnBlock<T>& block) {
  const auto& factors = block.PerGroup();
  for (std::size_t group = 0; group < factors.size(); ++group) {
    at::Tensor& sum = sum_of_group_[group];
    const auto& [columns, signal] = factors[group];
    if (rows_ == 0) {
      at::cpu::mm_out(sum, columns, signal);
    } else {
      at::cpu::addmm_out(sum, sum, columns, signal);
    }
  }
}

template <typename T>
void ProductSum<T>::AddDepthwise(const ColumnBlock<T>& block) {
  T* sum = sum_.data_ptr<T>();
  if (rows_ == 0) std::fill_n(sum, size_, T{0});
  const std::int64_t kernel = Volume(shape_.kernel);
  const std::int64_t channels = shape_.image_channels;
  const std::int64_t multiplier = shape_.signal_channels_per_group();
  const T* columns = block.columns();
  for (std::int64_t row = 0; row < block.rows(); ++row) {
    const T* signal = block.signal() + row * shape_.signal_channels;
    for (std::int64_t k = 0; k < kernel; ++k, columns += channels) {
      T* target = sum + k * shape_.signal_channels;
      if (multiplier == 1) {
        for (std::int64_t c = 0; c < channels; ++c) target[c] += columns[c] * signal[c];
        continue;
      }
      for (std::int64_t c = 0; c < channels; ++c) {
        for (std::int64_t i = c * multiplier; i < (c + 1) * multiplier; ++i) {
          target[i] += columns[c] * signal[i];
        }
      }
    }
  }
}

template <typename T>
void ProductSum<T>::Clear() {
  rows_ = 0;
  has_moved_ = false;
}

template <typename T>
void ProductSum<T>::Flush() {
  if (rows_ == 0) return;
  const T* sum = sum_.const_data_ptr<T>();
  if (!moved_.defined()) moved_ = at::empty({size_}, sum_.options().dtype(at::kDouble));
  auto* moved = moved_.mutable_data_ptr<double>();
  if (has_moved_) {
    for (std::int64_t i = 0; i < size_; ++i) moved[i] += static_cast<double>(sum[i]);
  } else {
    for (std::int64_t i = 0; i < size_; ++i) moved[i] = static_cast<double>(sum[i]);
  }
  rows_ = 0;
  has_moved_ = true;
}

template <typename T>
const T* ProductSum<T>::Value() {
  if (has_moved_) {
    Flush();
    const auto* moved = moved_.const_data_ptr<double>();
    std::transform(moved, moved + size_, sum_.data_ptr<T>(),
                   [](double value) { return static_cast<T>(value); });
  } else if (rows_ == 0) {
    sum_.zero_();
  }
  return sum_.const_data_ptr<T>();
}

template <typename T>
at::Tensor ProductSum<T>::TakeTotal() {
  if (std::is_same_v<T, double> && !has_moved_ && rows_ > 0) return sum_;
  Flush();
  return has_moved_ ? moved_ : at::zeros({size_}, sum_.options().dtype(at::kDouble));
}

template class ProductSum<float>;
template class ProductSum<double>;

}  // namespace sordino
