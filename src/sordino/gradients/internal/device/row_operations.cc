#include "sordino/gradients/internal/device/row_operations.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/alias.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/mv.h>
#include <ATen/ops/zeros.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

#include <algorithm>
#include <cstddef>

#include "sordino/base/check.h"

namespace sordino {
namespace {

void* CurrentStream(const at::Tensor& on) {
  return c10::cuda::getCurrentCUDAStream(on.device().index()).stream();
}

// Hands `launch` as many matrices as a launch takes, and the number of those before them.
template <typename Add, typename Launch>
void ForEachLaunch(std::size_t count, std::int64_t rows, const Add& add, const Launch& launch) {
  for (std::size_t begin = 0; begin < count; begin += device::kMaxMatrices) {
    device::RowMatrices all;
    all.rows = rows;
    for (std::size_t k = begin; k < std::min(count, begin + device::kMaxMatrices); ++k) {
      all.matrices[all.count++] = add(k);
    }
    launch(all, static_cast<std::int64_t>(begin));
    C10_CUDA_CHECK(cudaGetLastError());
  }
}

device::LookupArrays ArraysOf(const LookupRows& lookup, const at::Tensor& index,
                              const at::Tensor& gradient) {
  return {.index = index.const_data_ptr<std::int64_t>(),
          .gradient = gradient.const_data_ptr<float>(),
          .outer = lookup.layout.outer,
          .examples = lookup.layout.examples,
          .inner = lookup.layout.inner,
          .width = gradient.size(1),
          .padding_index = lookup.padding_index};
}

// By operations of libtorch: a few launches more do not show in a large batch.
std::vector<at::Tensor> WideRowSums(const std::vector<FactoredRows>& all,
                                    const at::Tensor& factors) {
  std::vector<at::Tensor> results;
  results.reserve(all.size());
  for (const FactoredRows& own : all) {
    const at::Tensor weights = factors.select(0, own.group);
    const at::Tensor rows = own.rows.to(at::kDouble);
    results.push_back(at::mv(rows.masked_fill((weights == 0).unsqueeze(1), 0).t(), weights));
  }
  return results;
}

}  // namespace

bool HasRowOperations(const at::Tensor& values) {
  return values.is_cuda() && values.scalar_type() == at::kFloat;
}

at::Tensor DeviceSquaredNorms(const std::vector<at::Tensor>& matrices) {
  SORDINO_CHECK(!matrices.empty(), "there are matrices to take norms of");
  const std::int64_t rows = matrices.front().size(0);
  at::Tensor squared = at::empty({static_cast<std::int64_t>(matrices.size()), rows},
                                 matrices.front().options().dtype(at::kDouble));
  std::vector<at::Tensor> packed;
  packed.reserve(matrices.size());
  ForEachLaunch(
      matrices.size(), rows,
      [&](std::size_t k) {
        SORDINO_CHECK(matrices[k].size(0) == rows, "matrices have a row for each example");
        packed.push_back(matrices[k].contiguous());
        return device::RowMatrix{.values = packed.back().const_data_ptr<float>(),
                                 .width = packed.back().size(1)};
      },
      [&](const device::RowMatrices& all, std::int64_t begin) {
        device::LaunchSquaredNorms(all, squared.mutable_data_ptr<double>() + begin * rows,
                                   CurrentStream(squared));
      });
  return squared;
}

void DeviceAddPieces(const std::vector<device::NormPiece>& pieces, const at::Tensor& squared,
                     double limit, const at::Tensor& total) {
  SORDINO_CHECK(total.is_contiguous() && total.size(1) == squared.size(1),
                "squared norms of all groups and examples");
  for (std::size_t begin = 0; begin < pieces.size(); begin += device::kMaxPieces) {
    device::NormPieces all;
    for (std::size_t k = begin; k < std::min(pieces.size(), begin + device::kMaxPieces); ++k) {
      all.pieces[all.count++] = pieces[k];
    }
    device::LaunchAddPieces(all, squared.const_data_ptr<double>(), limit, total.size(0),
                            total.size(1), total.mutable_data_ptr<double>(), CurrentStream(total));
    C10_CUDA_CHECK(cudaGetLastError());
  }
}

DeviceFactors DeviceClip(const at::Tensor& norms, const at::Tensor& factors,
                         const at::Tensor& bounds, const at::Tensor& mask, double largest) {
  SORDINO_CHECK(norms.is_contiguous() && factors.is_contiguous() && bounds.is_contiguous() &&
                    factors.sizes() == norms.sizes() && bounds.numel() == norms.size(0),
                "norms, factors and bounds of the same groups");
  // Operations of libtorch that do nothing: a recording keeps what they are given, and does not see
  // what our own kernels read (device/recorded_graph.h).
  static_cast<void>(at::alias(bounds));
  if (mask.defined()) static_cast<void>(at::alias(mask));
  DeviceFactors result{at::empty_like(factors),
                       at::empty(factors.sizes(), factors.options().dtype(at::kFloat)),
                       at::empty({norms.size(0)}, norms.options().dtype(at::kLong))};
  device::LaunchFactors({.norms = norms.const_data_ptr<double>(),
                         .factors = factors.const_data_ptr<double>(),
                         .bounds = bounds.const_data_ptr<double>(),
                         .mask = mask.defined() ? mask.const_data_ptr<bool>() : nullptr,
                         .factors64 = result.float64.mutable_data_ptr<double>(),
                         .factors32 = result.float32.mutable_data_ptr<float>(),
                         .above = result.above.mutable_data_ptr<std::int64_t>(),
                         .groups = norms.size(0),
                         .rows = norms.size(1),
                         .largest = largest},
                        CurrentStream(norms));
  C10_CUDA_CHECK(cudaGetLastError());
  return result;
}

std::vector<at::Tensor> DeviceScaledRows(const std::vector<FactoredRows>& all,
                                         const at::Tensor& factors) {
  const std::int64_t rows = factors.size(1);
  std::vector<at::Tensor> packed;
  std::vector<at::Tensor> results;
  packed.reserve(all.size());
  results.reserve(all.size());
  ForEachLaunch(
      all.size(), rows,
      [&](std::size_t k) {
        SORDINO_CHECK(all[k].rows.size(0) == rows, "a factor for each row");
        packed.push_back(all[k].rows.contiguous());
        results.push_back(at::empty_like(packed.back()));
        return device::RowMatrix{.values = packed.back().const_data_ptr<float>(),
                                 .result = results.back().mutable_data_ptr<float>(),
                                 .width = packed.back().size(1),
                                 .group = all[k].group,
                                 .scales = all[k].scales};
      },
      [&](const device::RowMatrices& some, std::int64_t /*begin*/) {
        device::LaunchScaleRows(some, factors.const_data_ptr<float>(), CurrentStream(factors));
      });
  return results;
}

std::vector<at::Tensor> DeviceRowSums(const std::vector<FactoredRows>& all,
                                      const at::Tensor& factors, bool wide) {
  if (wide) return WideRowSums(all, factors);
  const std::int64_t rows = factors.size(1);
  std::vector<at::Tensor> packed;
  std::vector<at::Tensor> results;
  packed.reserve(all.size());
  results.reserve(all.size());
  ForEachLaunch(
      all.size(), rows,
      [&](std::size_t k) {
        SORDINO_CHECK(all[k].rows.size(0) == rows, "a factor for each row");
        packed.push_back(all[k].rows.contiguous());
        results.push_back(at::empty({packed.back().size(1)}, packed.back().options()));
        return device::RowMatrix{.values = packed.back().const_data_ptr<float>(),
                                 .result = results.back().mutable_data_ptr<float>(),
                                 .width = packed.back().size(1),
                                 .group = all[k].group};
      },
      [&](const device::RowMatrices& some, std::int64_t /*begin*/) {
        device::LaunchSumRows(some, factors.const_data_ptr<double>(), CurrentStream(factors));
      });
  return results;
}

bool HasLookupOperations(const LookupRows& lookup) {
  return HasRowOperations(lookup.gradient) && !lookup.owners.defined() &&
         lookup.index.scalar_type() == at::kLong &&
         lookup.layout.rows_per_example() <= device::kMaxLookupRows;
}

void DeviceAddLookupNorms(const LookupRows& lookup, const at::Tensor& squared) {
  SORDINO_CHECK(squared.is_contiguous() && squared.numel() == lookup.layout.examples,
                "one squared norm for each example");
  const at::Tensor index = lookup.index.contiguous();
  const at::Tensor gradient = lookup.gradient.contiguous();
  device::LookupArrays arrays = ArraysOf(lookup, index, gradient);
  arrays.squared = squared.mutable_data_ptr<double>();
  device::LaunchLookupNorms(arrays, CurrentStream(squared));
  C10_CUDA_CHECK(cudaGetLastError());
}

at::Tensor DeviceLookupSum(const LookupRows& lookup, const at::Tensor& factors, bool wide) {
  SORDINO_CHECK(factors.is_contiguous() && factors.numel() == lookup.layout.examples,
                "one factor for each example");
  const at::Tensor index = lookup.index.contiguous();
  const at::Tensor gradient = lookup.gradient.contiguous();
  at::Tensor table = at::zeros({lookup.vocabulary, gradient.size(1)}, factors.options());
  device::LookupArrays arrays = ArraysOf(lookup, index, gradient);
  arrays.factors = factors.const_data_ptr<double>();
  arrays.table = table.mutable_data_ptr<double>();
  device::LaunchLookupSum(arrays, CurrentStream(table));
  C10_CUDA_CHECK(cudaGetLastError());
  return wide ? table : table.to(at::kFloat);
}

}  // namespace sordino
