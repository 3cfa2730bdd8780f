#include "sordino/kernels/row_operations.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/alias.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/mv.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "sordino/base/check.h"
#include "sordino/kernels/alignment.h"
#include "sordino/kernels/internal/row_products.h"
#include "sordino/kernels/launch.h"

namespace sordino {
namespace {

// Hands `launch` as many matrices as a launch takes, and the number of those before them.
template <typename Add, typename Launch>
void ForEachLaunch(std::size_t count, std::int64_t rows, const Add& add, const Launch& launch) {
  for (std::size_t begin = 0; begin < count; begin += kernels::kMaxMatrices) {
    kernels::RowMatrices all;
    all.rows = rows;
    for (std::size_t k = begin; k < std::min(count, begin + kernels::kMaxMatrices); ++k) {
      all.matrices[all.count++] = add(k);
    }
    launch(all, static_cast<std::int64_t>(begin));
  }
}

// Factors of norms, or of their squares, as `arrays` says.
DeviceFactors Clipped(const at::Tensor& norms, const at::Tensor& bounds, const at::Tensor& mask,
                      double largest, kernels::FactorArrays arrays) {
  SORDINO_CHECK(norms.is_contiguous() && bounds.is_contiguous() && bounds.numel() == norms.size(0),
                "norms and bounds of the same groups");
  // Operations of libtorch that do nothing: a recording keeps what they are given, and does not see
  // what our own kernels read (device/recorded_graph.h).
  static_cast<void>(at::alias(bounds));
  if (mask.defined()) static_cast<void>(at::alias(mask));
  DeviceFactors result{at::empty_like(norms),
                       at::empty(norms.sizes(), norms.options().dtype(at::kFloat)),
                       at::empty({norms.size(0)}, norms.options().dtype(at::kLong))};
  arrays.bounds = bounds.const_data_ptr<double>();
  arrays.mask = mask.defined() ? mask.const_data_ptr<bool>() : nullptr;
  arrays.factors64 = result.float64.mutable_data_ptr<double>();
  arrays.factors32 = result.float32.mutable_data_ptr<float>();
  arrays.above = result.above.mutable_data_ptr<std::int64_t>();
  arrays.groups = norms.size(0);
  arrays.rows = norms.size(1);
  arrays.largest = largest;
  OnDeviceOf(norms, [&](auto stream) { kernels::LaunchFactors(arrays, stream); });
  return result;
}

// A launch, or a few, for matrices with a factor for each row; `result_of` makes the tensor that a
// matrix becomes.
template <typename ResultOf, typename Launch>
std::vector<at::Tensor> ForEachFactored(const std::vector<FactoredRows>& all,
                                        const at::Tensor& factors, const ResultOf& result_of,
                                        const Launch& launch) {
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
        results.push_back(result_of(packed.back()));
        return kernels::RowMatrix{.values = packed.back().const_data_ptr<float>(),
                                  .result = results.back().mutable_data_ptr<float>(),
                                  .width = packed.back().size(1),
                                  .group = all[k].group,
                                  .scales = all[k].scales};
      },
      [&](const kernels::RowMatrices& some, std::int64_t /*begin*/) { launch(some); });
  return results;
}

kernels::LookupArrays ArraysOf(const LookupRows& lookup, const at::Tensor& index,
                               const at::Tensor& gradient) {
  return {.index = index.const_data_ptr<std::int64_t>(),
          .gradient = gradient.const_data_ptr<float>(),
          .outer = lookup.layout.outer,
          .examples = lookup.layout.examples,
          .inner = lookup.layout.inner,
          .width = gradient.size(1),
          .padding_index = lookup.padding_index};
}

at::Tensor ExampleSums(const at::Tensor& rows, const NormalisedRows& normalised,
                       const ExampleLayout& layout) {
  constexpr std::int64_t kMost = std::int64_t{1} << 30;
  SORDINO_CHECK(rows.dim() == 2 && rows.size(0) == layout.rows(), "rows as the layout says");
  SORDINO_CHECK(layout.rows_per_example() <= kMost &&
                    layout.examples <= kMost / (rows.size(1) / kernels::kSumColumns + 1),
                "rows that a kernel can count");
  const at::Tensor values = rows.contiguous();
  at::Tensor result = at::empty({layout.examples, rows.size(1)}, rows.options());
  if (result.numel() == 0) return result;
  kernels::ExampleSumArrays arrays{.values = values.const_data_ptr<float>(),
                                   .result = result.mutable_data_ptr<float>(),
                                   .outer = layout.outer,
                                   .examples = layout.examples,
                                   .inner = layout.inner,
                                   .width = rows.size(1)};
  arrays.fours = rows.size(1) % 4 == 0 && kernels::IsAligned(arrays.values) &&
                 kernels::IsAligned(arrays.result);
  at::Tensor input;
  at::Tensor mean;
  at::Tensor deviation;
  if (normalised.input.defined()) {
    input = normalised.input.contiguous();
    mean = normalised.mean.contiguous();
    deviation = normalised.deviation.contiguous();
    SORDINO_CHECK(input.sizes() == rows.sizes() && mean.numel() == rows.size(0) &&
                      deviation.numel() == rows.size(0),
                  "a mean and a deviation for each row");
    arrays.input = input.const_data_ptr<float>();
    arrays.mean = mean.const_data_ptr<float>();
    arrays.deviation = deviation.const_data_ptr<float>();
    arrays.fours = arrays.fours && kernels::IsAligned(arrays.input);
  }
  OnDeviceOf(rows, [&](auto stream) { kernels::LaunchExampleSums(arrays, stream); });
  return result;
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
  return kKernelsAreBuilt && values.is_cuda() && values.scalar_type() == at::kFloat;
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
        return kernels::RowMatrix{.values = packed.back().const_data_ptr<float>(),
                                  .width = packed.back().size(1)};
      },
      [&](kernels::RowMatrices& all, std::int64_t begin) {
        double* const result = squared.mutable_data_ptr<double>() + begin * rows;
        const int spans = kernels::CountSpans(all);
        at::Tensor memory;
        if (spans > all.count) memory = at::empty({spans, rows}, squared.options());
        double* const parts = memory.defined() ? memory.mutable_data_ptr<double>() : result;
        OnDeviceOf(squared, [&](auto stream) {
          kernels::LaunchSquaredNorms(all, spans, parts, result, stream);
        });
      });
  return squared;
}

void DeviceAddPieces(const std::vector<kernels::NormPiece>& pieces, const at::Tensor& squared,
                     double limit, const at::Tensor& total) {
  SORDINO_CHECK(total.is_contiguous() && total.size(1) == squared.size(1),
                "squared norms of all groups and examples");
  for (std::size_t begin = 0; begin < pieces.size(); begin += kernels::kMaxPieces) {
    kernels::NormPieces all;
    for (std::size_t k = begin; k < std::min(pieces.size(), begin + kernels::kMaxPieces); ++k) {
      all.pieces[all.count++] = pieces[k];
    }
    OnDeviceOf(total, [&](auto stream) {
      kernels::LaunchAddPieces(all, squared.const_data_ptr<double>(), limit, total.size(0),
                               total.size(1), total.mutable_data_ptr<double>(), stream);
    });
  }
}

void DeviceAddRowNorms(const std::vector<at::Tensor>& matrices,
                       const std::vector<kernels::NormPiece>& pieces, double limit,
                       const at::Tensor& total) {
  const bool is_small = matrices.size() <= kernels::kMaxMatrices &&
                        pieces.size() <= kernels::kMaxPieces &&
                        std::all_of(matrices.begin(), matrices.end(), [](const at::Tensor& matrix) {
                          return matrix.size(1) <= kernels::kMaxSmallWidth;
                        });
  if (!is_small) return DeviceAddPieces(pieces, DeviceSquaredNorms(matrices), limit, total);
  SORDINO_CHECK(total.is_contiguous(), "squared norms of all groups and examples");
  kernels::RowMatrices all;
  all.rows = total.size(1);
  std::vector<at::Tensor> packed;
  packed.reserve(matrices.size());
  for (const at::Tensor& matrix : matrices) {
    SORDINO_CHECK(matrix.size(0) == all.rows, "matrices have a row for each example");
    packed.push_back(matrix.contiguous());
    all.matrices[all.count++] = {.values = packed.back().const_data_ptr<float>(),
                                 .width = matrix.size(1)};
  }
  kernels::NormPieces some;
  for (const kernels::NormPiece& piece : pieces) some.pieces[some.count++] = piece;
  OnDeviceOf(total, [&](auto stream) {
    kernels::LaunchSmallNorms(all, some, limit, total.size(0), total.mutable_data_ptr<double>(),
                              stream);
  });
}

DeviceFactors DeviceClip(const at::Tensor& norms, const at::Tensor& factors,
                         const at::Tensor& bounds, const at::Tensor& mask, double largest) {
  SORDINO_CHECK(factors.is_contiguous() && factors.sizes() == norms.sizes(),
                "norms and factors of the same groups");
  return Clipped(
      norms, bounds, mask, largest,
      {.norms = norms.const_data_ptr<double>(), .factors = factors.const_data_ptr<double>()});
}

DeviceClipped DeviceClipToBound(const at::Tensor& squared, const at::Tensor& below,
                                const at::Tensor& bounds, const at::Tensor& mask, double largest) {
  SORDINO_CHECK(below.is_contiguous() && below.numel() == squared.size(0),
                "a bound for each group");
  static_cast<void>(at::alias(below));
  at::Tensor norms = at::empty_like(squared);
  DeviceFactors factors = Clipped(squared, bounds, mask, largest,
                                  {.squared = squared.const_data_ptr<double>(),
                                   .below = below.const_data_ptr<double>(),
                                   .roots = norms.mutable_data_ptr<double>()});
  return {std::move(norms), std::move(factors)};
}

std::vector<at::Tensor> DeviceScaledRows(const std::vector<FactoredRows>& all,
                                         const at::Tensor& factors) {
  return ForEachFactored(
      all, factors, [](const at::Tensor& rows) { return at::empty_like(rows); },
      [&](const kernels::RowMatrices& some) {
        OnDeviceOf(factors, [&](auto stream) {
          kernels::LaunchScaleRows(some, factors.const_data_ptr<float>(), stream);
        });
      });
}

std::vector<at::Tensor> DeviceRowSums(const std::vector<FactoredRows>& all,
                                      const at::Tensor& factors, bool wide) {
  if (wide) return WideRowSums(all, factors);
  return ForEachFactored(
      all, factors,
      [](const at::Tensor& rows) { return at::empty({rows.size(1)}, rows.options()); },
      [&](const kernels::RowMatrices& some) {
        OnDeviceOf(factors, [&](auto stream) {
          kernels::LaunchSumRows(some, factors.const_data_ptr<double>(), stream);
        });
      });
}

bool AreSmallProducts(const std::vector<FactoredProduct>& all, std::int64_t rows) {
  constexpr std::int64_t kMostRows = 1024;
  constexpr std::int64_t kMostEntries = std::int64_t{1} << 16;
  std::int64_t entries = 0;
  for (const FactoredProduct& product : all) {
    entries += (product.left.defined() ? product.left.size(1) : 1) * product.right.size(1);
  }
  return rows <= kMostRows && entries <= kMostEntries && all.size() <= kernels::kMaxProducts;
}

std::vector<at::Tensor> DeviceRowProducts(const std::vector<FactoredProduct>& all,
                                          const at::Tensor& factors) {
  SORDINO_CHECK(all.size() <= kernels::kMaxProducts, "products of one launch");
  const at::Tensor weights = factors.contiguous();
  kernels::RowProducts products;
  products.rows = weights.size(1);
  products.factors = weights.const_data_ptr<double>();
  std::vector<at::Tensor> packed;
  std::vector<at::Tensor> results;
  packed.reserve(2 * all.size());
  results.reserve(all.size());
  const auto pointer = [&](const at::Tensor& rows) {
    SORDINO_CHECK(rows.size(0) == products.rows, "a factor for each row");
    return packed.emplace_back(rows.contiguous()).const_data_ptr<float>();
  };
  for (const FactoredProduct& own : all) {
    const bool is_sum = !own.left.defined();
    const std::int64_t p = is_sum ? 1 : own.left.size(1);
    const std::int64_t q = own.right.size(1);
    results.push_back(is_sum ? at::empty({q}, own.right.options())
                             : at::empty({p, q}, own.right.options()));
    kernels::RowProduct& product = products.products[products.count++];
    product = {.left = is_sum ? nullptr : pointer(own.left),
               .right = pointer(own.right),
               .result = results.back().mutable_data_ptr<float>(),
               .p = static_cast<std::int32_t>(p),
               .q = static_cast<std::int32_t>(q),
               .group = static_cast<std::int32_t>(own.group),
               .first_tile = products.tiles};
    products.tiles += kernels::TilesOver(product.p) * kernels::TilesOver(product.q);
  }
  if (products.tiles == 0) return results;
  OnDeviceOf(weights, [&](auto stream) { kernels::LaunchRowProducts(products, stream); });
  return results;
}

at::Tensor DeviceExampleSums(const at::Tensor& rows, const ExampleLayout& layout) {
  return ExampleSums(rows, {}, layout);
}

at::Tensor DeviceNormalisedSums(const at::Tensor& rows, const NormalisedRows& normalised,
                                const ExampleLayout& layout) {
  SORDINO_CHECK(normalised.input.defined(), "what the rows are multiplied by");
  return ExampleSums(rows, normalised, layout);
}

bool HasLookupOperations(const LookupRows& lookup) {
  return HasRowOperations(lookup.gradient) && !lookup.owners.defined() &&
         lookup.index.scalar_type() == at::kLong &&
         lookup.layout.rows_per_example() <= kernels::kMaxLookupRows;
}

void DeviceAddLookupNorms(const LookupRows& lookup, const at::Tensor& squared) {
  SORDINO_CHECK(squared.is_contiguous() && squared.numel() == lookup.layout.examples,
                "one squared norm for each example");
  const at::Tensor index = lookup.index.contiguous();
  const at::Tensor gradient = lookup.gradient.contiguous();
  kernels::LookupArrays arrays = ArraysOf(lookup, index, gradient);
  arrays.squared = squared.mutable_data_ptr<double>();
  OnDeviceOf(squared, [&](auto stream) { kernels::LaunchLookupNorms(arrays, stream); });
}

at::Tensor DeviceLookupSum(const LookupRows& lookup, const at::Tensor& factors, bool wide) {
  SORDINO_CHECK(factors.is_contiguous() && factors.numel() == lookup.layout.examples,
                "one factor for each example");
  const at::Tensor index = lookup.index.contiguous();
  const at::Tensor gradient = lookup.gradient.contiguous();
  at::Tensor table = at::zeros({lookup.vocabulary, gradient.size(1)}, factors.options());
  kernels::LookupArrays arrays = ArraysOf(lookup, index, gradient);
  arrays.factors = factors.const_data_ptr<double>();
  arrays.table = table.mutable_data_ptr<double>();
  OnDeviceOf(table, [&](auto stream) { kernels::LaunchLookupSum(arrays, stream); });
  return wide ? table : table.to(at::kFloat);
}

}  // namespace sordino
