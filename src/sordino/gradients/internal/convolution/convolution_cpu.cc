#include "sordino/gradients/internal/convolution/convolution_cpu.h"

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "sordino/device/parallel_shares.h"
#include "sordino/gradients/internal/convolution/convolution_columns.h"
#include "sordino/gradients/internal/convolution/convolution_gram.h"
#include "sordino/gradients/internal/convolution/convolution_products.h"
#include "sordino/gradients/internal/convolution/convolution_shape.h"
#include "sordino/gradients/internal/convolution/tiled_transpose.h"
#include "sordino/kernels/row_sums.h"

namespace sordino {
namespace {

// A float64 product takes about twice the time of a float32 one.
constexpr double kFloat64Cost = 2.2;
// The float64 sums of all threads together take at most this many values.
constexpr std::int64_t kSumValues = 1 << 26;

// Rows of a block for one example: as few blocks as the cache allows, of about the same size.
std::int64_t RowsPerExampleBlock(const ConvolutionShape& shape) {
  const std::int64_t rows = std::max<std::int64_t>(1, shape.rows_per_example());
  const std::int64_t blocks = (rows - 1) / RowsPerBlock(shape) + 1;
  return (rows - 1) / blocks + 1;
}

// Appends the rows of an example; a full block is multiplied into `sum` and emptied.
template <typename T>
void AppendExample(const ConvolutionShape& shape, std::int64_t example, double factor,
                   ColumnBlock<T>& block, ProductSum<T>& sum) {
  const std::int64_t positions = Volume(shape.positions);
  for (std::int64_t i = 0; i < shape.layout.rows_per_example(); ++i) {
    block.Load(shape.ImageOf(example, i));
    for (std::int64_t first = 0; first < positions;) {
      const std::int64_t count = std::min(positions - first, block.room());
      block.Append(first, count, factor);
      first += count;
      if (block.room() > 0) continue;
      sum.Add(block);
      block.Clear();
    }
  }
}

// Calls visit(example, gradient [kernel, image channels / groups, signal channels]), on several
// threads.
template <typename T, typename Visit>
void ForEachGradient(const ConvolutionOperands& operands, const Visit& visit) {
  const ConvolutionShape& shape = operands.shape;
  ParallelShares(shape.layout.examples, [&](std::int64_t begin, std::int64_t end) {
    ColumnBlock<T> block(operands, RowsPerExampleBlock(shape));
    ProductSum<T> sum(operands);
    for (std::int64_t example = begin; example < end; ++example) {
      AppendExample<T>(shape, example, 1, block, sum);
      sum.Add(block);
      visit(example, sum.Value());
      block.Clear();
      sum.Clear();
    }
  });
}

// From [kernel, image channels / groups, signal channels], in which a product leaves it, to the
// order of the weight.
template <typename T, typename Result>
void CopyInWeightOrder(const ConvolutionShape& shape, const T* gradient, Result* target) {
  const std::int64_t kernel = Volume(shape.kernel);
  const std::int64_t channels = shape.image_channels_per_group();
  // Rows of the target are far apart: a few at a time, for the sake of the translation buffer.
  constexpr std::int64_t kTargetRows = 128;
  for (std::int64_t first = 0; first < shape.signal_channels; first += kTargetRows) {
    const std::int64_t count = std::min(kTargetRows, shape.signal_channels - first);
    for (std::int64_t c = 0; c < channels; ++c) {
      Transpose(gradient + c * shape.signal_channels + first, channels * shape.signal_channels,
                kernel, count, target + (first * channels + c) * kernel, channels * kernel);
    }
  }
}

template <typename T>
at::Tensor Gradients(const ConvolutionOperands& operands, std::vector<double>& squared) {
  const ConvolutionShape& shape = operands.shape;
  const std::int64_t size = shape.weights();
  std::vector<std::int64_t> sizes = WeightSizes(operands);
  sizes.insert(sizes.begin(), shape.layout.examples);
  at::Tensor gradients = at::empty(sizes, operands.image.options().dtype(operands.type));
  T* values = gradients.data_ptr<T>();
  ForEachGradient<T>(operands, [&](std::int64_t example, const T* gradient) {
    squared[static_cast<std::size_t>(example)] = SquaredNorm(gradient, size);
    CopyInWeightOrder(shape, gradient, values + example * size);
  });
  return gradients;
}

template <typename T>
void SquaredNorms(const ConvolutionOperands& operands, std::vector<double>& squared) {
  const std::int64_t size = operands.shape.weights();
  ForEachGradient<T>(operands, [&](std::int64_t example, const T* gradient) {
    squared[static_cast<std::size_t>(example)] = SquaredNorm(gradient, size);
  });
}

void GramSquaredNorms(const ConvolutionOperands& operands, std::vector<double>& squared) {
  ParallelShares(operands.shape.layout.examples, [&](std::int64_t begin, std::int64_t end) {
    GramNorm norm(operands);
    for (std::int64_t example = begin; example < end; ++example) {
      squared[static_cast<std::size_t>(example)] = norm.SquaredNorm(example);
    }
  });
}

// The weighted sum of examples [begin, end), [kernel, image channels / groups, signal channels].
template <typename T>
at::Tensor ShareOfSum(const ConvolutionOperands& operands, const std::vector<double>& factors,
                      std::int64_t begin, std::int64_t end, bool wide) {
  ColumnBlock<T> block(operands, RowsPerBlock(operands.shape));
  ProductSum<T> sum(operands);
  for (std::int64_t example = begin; example < end; ++example) {
    const double factor = factors[static_cast<std::size_t>(example)];
    if (factor == 0) continue;
    AppendExample(operands.shape, example, factor, block, sum);
    // Float64 products of examples need not be told apart. In a large batch additions are counted
    // (sum_plan.h), and no run of them is long.
    const bool is_long = wide && sum.rows() + block.rows() >= kRowsPerSum;
    if (std::is_same_v<T, double> && !is_long) continue;
    sum.Add(block);
    block.Clear();
    sum.EndExample();
  }
  sum.Add(block);
  return sum.TakeTotal();
}

// Shares of the examples, each with a sum of its own: one for each thread where there is memory.
std::int64_t SharesOf(const ConvolutionShape& shape) {
  const std::int64_t sums = kSumValues / std::max<std::int64_t>(1, shape.weights());
  return std::max<std::int64_t>(
      1, std::min({sums, shape.layout.examples, static_cast<std::int64_t>(at::get_num_threads())}));
}

template <typename T, typename Result>
at::Tensor WeightedSum(const ConvolutionOperands& operands, const std::vector<double>& factors,
                       std::int64_t shares, bool wide) {
  const ConvolutionShape& shape = operands.shape;
  const std::int64_t size = shape.weights();
  const std::int64_t examples = shape.layout.examples;
  const std::int64_t grain = std::max<std::int64_t>(1, (examples + shares - 1) / shares);
  // Added up in their order: the result does not depend on which thread ends first.
  std::vector<at::Tensor> sums(static_cast<std::size_t>(shares));
  ParallelShares(shares, [&](std::int64_t first_share, std::int64_t last_share) {
    for (std::int64_t share = first_share; share < last_share; ++share) {
      const std::int64_t begin = std::min(examples, share * grain);
      const std::int64_t end = std::min(examples, begin + grain);
      sums[static_cast<std::size_t>(share)] = ShareOfSum<T>(operands, factors, begin, end, wide);
    }
  });
  auto* total = sums[0].mutable_data_ptr<double>();
  for (std::size_t share = 1; share < sums.size(); ++share) {
    const auto* sum = sums[share].const_data_ptr<double>();
    for (std::int64_t i = 0; i < size; ++i) total[i] += sum[i];
  }
  at::Tensor result =
      at::empty(WeightSizes(operands),
                operands.image.options().dtype(c10::CppTypeToScalarType<Result>::value));
  CopyInWeightOrder(shape, total, result.data_ptr<Result>());
  return result;
}

void AddInto(const at::Tensor& squared, const std::vector<double>& values) {
  if (!squared.defined()) return;
  auto entries = squared.accessor<double, 1>();
  for (std::int64_t i = 0; i < squared.size(0); ++i) {
    entries[i] += values[static_cast<std::size_t>(i)];
  }
}

std::vector<double> Entries(const at::Tensor& factors) {
  const auto entries = factors.accessor<double, 1>();
  std::vector<double> values;
  for (std::int64_t i = 0; i < factors.size(0); ++i) values.push_back(entries[i]);
  return values;
}

}  // namespace

at::Tensor CpuConvolutionGradients(const ConvolutionOperands& operands, const at::Tensor& squared) {
  std::vector<double> norms(static_cast<std::size_t>(operands.shape.layout.examples));
  at::Tensor gradients = operands.type == at::kDouble ? Gradients<double>(operands, norms)
                                                      : Gradients<float>(operands, norms);
  AddInto(squared, norms);
  return gradients;
}

void CpuAddSquaredNorms(const ConvolutionOperands& operands, const at::Tensor& squared) {
  std::vector<double> norms(static_cast<std::size_t>(operands.shape.layout.examples));
  const ConvolutionShape& shape = operands.shape;
  const std::int64_t pixels = shape.layout.rows_per_example() * Volume(shape.image);
  if (GramIsCheaper(shape, pixels, kFloat64Cost)) {
    GramSquaredNorms(operands, norms);
  } else if (operands.type == at::kDouble) {
    SquaredNorms<double>(operands, norms);
  } else {
    SquaredNorms<float>(operands, norms);
  }
  AddInto(squared, norms);
}

at::Tensor CpuWeightedGradient(const ConvolutionOperands& operands, const at::Tensor& factors,
                               bool wide) {
  const std::vector<double> values = Entries(factors);
  const ConvolutionShape& shape = operands.shape;
  const std::int64_t shares = SharesOf(shape);
  if (operands.type == at::kDouble) {
    return WeightedSum<double, double>(operands, values, shares, wide);
  }
  if (SumIsFloat64(shape.rows_per_example(), shape.weights())) {
    ConvolutionOperands exact = operands;
    exact.type = at::kDouble;
    // One sum, because it is large: the threads share out its products.
    return wide ? WeightedSum<double, double>(exact, values, 1, wide)
                : WeightedSum<double, float>(exact, values, 1, wide);
  }
  return wide ? WeightedSum<float, double>(operands, values, shares, wide)
              : WeightedSum<float, float>(operands, values, shares, wide);
}

}  // namespace sordino
