#include "sordino/gradients/internal/terms/term.h"

#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "sordino/base/check.h"
#include "sordino/base/quantity.h"
#include "sordino/gradients/internal/rounding/rounding.h"
#include "sordino/gradients/internal/terms/example_products.h"
#include "sordino/gradients/internal/terms/fused_terms.h"
#include "sordino/gradients/internal/terms/term_rows.h"
#include "sordino/gradients/internal/terms/tied_term.h"
#include "sordino/kernels/row_operations.h"
#include "sordino/kernels/row_sums.h"

namespace sordino {
namespace {

// Gradients of a lookup of examples [begin, end), written out.
at::Tensor MaterialiseLookup(const Term& term, std::int64_t begin, std::int64_t end) {
  const std::int64_t vocabulary = term.sizes[0];
  const at::Tensor rows = Wide(term.b);
  const at::Tensor owners = OwnersOf(term);
  const at::Tensor index = term.a.to(at::kLong);
  const at::Tensor mine =
      (owners >= begin).logical_and(owners < end).logical_and(index != term.padding_index);
  const at::Tensor place = at::where(mine, (owners - begin) * vocabulary + index, 0);
  at::Tensor table = at::zeros({(end - begin) * vocabulary, rows.size(1)}, rows.options());
  table.index_add_(0, place, at::where(mine.unsqueeze(1), rows, at::zeros({}, rows.options())));
  return table.reshape({end - begin, -1});
}

// Lookups of one table: each may have a padding index of its own, and bags have no layout.
Term StackLookups(const std::vector<Term>& terms) {
  Term stacked = terms.front();
  std::vector<at::Tensor> index;
  std::vector<at::Tensor> rows;
  std::vector<at::Tensor> owners;
  for (const Term& term : terms) {
    index.push_back(term.a.reshape({-1}));
    rows.push_back(term.padding_index < 0
                       ? Wide(term.b)
                       : Wide(term.b).masked_fill((term.a == term.padding_index).unsqueeze(1), 0));
    owners.push_back(OwnersOf(term));
  }
  stacked.a = at::cat(index);
  stacked.b = at::cat(rows);
  stacked.owners = at::cat(owners);
  stacked.layout = {1, terms.front().layout.examples, 1};
  stacked.padding_index = -1;
  return stacked;
}

// The rows of examples [begin, end) of a term with a layout. Whole outer blocks cannot be cut
// without a copy; the copies are of one chunk.
Term ExamplesOf(const Term& term, std::int64_t begin, std::int64_t end) {
  if (begin == 0 && end == term.layout.examples) return term;
  const std::int64_t rows = term.layout.rows_per_example();
  const auto cut = [&](const at::Tensor& all) {
    std::vector<std::int64_t> sizes = all.sizes().vec();
    sizes[0] = (end - begin) * rows;
    return ByExample(all.flatten(1), term.layout, begin, end).reshape(sizes);
  };
  Term part = term;
  part.a = cut(term.a);
  part.b = cut(term.b);
  part.layout = {1, end - begin, rows};
  return part;
}

// [examples, T, features] to [examples, T, T], float64 where there are many features.
at::Tensor GramOf(const at::Tensor& rows) {
  const std::int64_t features = rows.size(2);
  if (features <= kFeaturesPerGram || rows.scalar_type() == at::kDouble) {
    return at::bmm(rows, rows.transpose(1, 2));
  }
  at::Tensor sum;
  for (std::int64_t first = 0; first < features; first += kFeaturesPerGram) {
    const at::Tensor part = rows.narrow(2, first, std::min(kFeaturesPerGram, features - first));
    const at::Tensor gram = at::bmm(part, part.transpose(1, 2));
    sum = sum.defined() ? sum.add_(gram) : gram.to(at::kDouble);
  }
  return sum;
}

}  // namespace

void AddOuterSquaredNorms(const Term& term, const at::Tensor& squared) {
  const std::int64_t rows = term.layout.rows_per_example();
  if (rows == 1) {
    AddOneRowSquaredNorms(Wide(term.a), Wide(term.b), kMaxRowsNorm * kMaxRowsNorm, squared);
    return;
  }
  const at::Tensor a = Wide(term.a);
  const at::Tensor b = Wide(term.b);
  const std::int64_t chunk = std::max<std::int64_t>(1, ChunkElements(a) / (rows * rows));
  for (std::int64_t begin = 0; begin < term.layout.examples; begin += chunk) {
    const std::int64_t end = std::min(begin + chunk, term.layout.examples);
    const at::Tensor left = ByExample(a, term.layout, begin, end);
    const at::Tensor right = ByExample(b, term.layout, begin, end);
    const at::Tensor products = GramOf(left) * GramOf(right);
    squared.slice(0, begin, end)
        .add_(products.sum(at::IntArrayRef{1, 2}, false, at::kDouble).clamp_min_(0));
  }
}

Term Stack(const std::vector<Term>& terms) {
  SORDINO_CHECK(!terms.empty(), "there is something to stack");
  if (terms.size() == 1) return terms.front();
  Term stacked = terms.front();
  if (stacked.kind == TermKind::kLookup) return StackLookups(terms);
  std::vector<at::Tensor> a;
  std::vector<at::Tensor> b;
  std::int64_t blocks = 0;
  for (const Term& term : terms) {
    SORDINO_CHECK(term.kind == stacked.kind && term.layout.examples == stacked.layout.examples,
                  "terms of one kind over the same examples");
    // Rows move so that each term is whole outer blocks of one row for each example.
    const ExampleLayout& layout = term.layout;
    const auto reorder = [&](const at::Tensor& rows) {
      if (layout.inner == 1) return rows;
      return rows.reshape({layout.outer, layout.examples, layout.inner, rows.size(1)})
          .transpose(1, 2)
          .reshape(rows.sizes());
    };
    if (term.a.defined()) a.push_back(reorder(term.a));
    b.push_back(reorder(term.b));
    blocks += layout.rows_per_example();
  }
  if (!a.empty()) stacked.a = at::cat(a);
  stacked.b = at::cat(b);
  stacked.layout = {blocks, stacked.layout.examples, 1};
  return stacked;
}

at::Tensor Materialise(const Term& term, std::int64_t begin, std::int64_t end) {
  if (term.fused != FusedUse::kNone) return FusedMaterialise(ExamplesOf(term, begin, end));
  switch (term.kind) {
    case TermKind::kOuter: {
      const at::Tensor a = ByExample(Wide(term.a), term.layout, begin, end);
      const at::Tensor b = ByExample(Wide(term.b), term.layout, begin, end);
      at::Tensor gradients = at::bmm(a.transpose(1, 2), b);
      if (term.lookup) AddLookups(*term.lookup, begin, end, gradients);
      return gradients.reshape({end - begin, -1});
    }
    case TermKind::kRows:
      return SumOfRows(term).slice(0, begin, end);
    case TermKind::kLookup:
      return MaterialiseLookup(term, begin, end);
    case TermKind::kConvolution: {
      const Term part = ExamplesOf(term, begin, end);
      return ConvolutionGradients(part.convolution, part.a, part.b, part.layout, {})
          .reshape({end - begin, -1});
    }
    case TermKind::kDirect:
      return term.b.slice(0, begin, end);
  }
  return {};
}

at::Tensor AddSquaredNorms(const Term& term, NormForm form, const at::Tensor& squared) {
  const at::NoTF32Guard full_precision;
  switch (term.kind) {
    case TermKind::kDirect:
      squared.add_(RowSquaredNorms(term.b));
      return term.b;
    case TermKind::kRows: {
      at::Tensor gradients = SumOfRows(term);
      squared.add_(RowSquaredNorms(gradients));
      return gradients;
    }
    case TermKind::kLookup: {
      const LookupRows lookup = AsLookup(term);
      if (term.b.is_cpu()) {
        AddLookupSquaredNorms(lookup, squared);
      } else if (HasLookupOperations(lookup)) {
        DeviceAddLookupNorms(lookup, squared);
      } else {
        // Of the bits that the sum is of (TableSum).
        const at::Tensor own = at::zeros(squared.sizes(), at::TensorOptions(at::kDouble));
        AddLookupSquaredNorms(OnCpu(lookup), own);
        squared.add_(own.to(squared.device()));
      }
      return {};
    }
    case TermKind::kConvolution:
      if (form == NormForm::kKeep) {
        return ConvolutionGradients(term.convolution, term.a, term.b, term.layout, squared)
            .reshape({term.layout.examples, -1});
      }
      AddConvolutionSquaredNorms(term.convolution, term.a, term.b, term.layout, squared);
      return {};
    case TermKind::kOuter:
      if (form != NormForm::kGram) break;
      if (term.lookup) {
        AddTiedSquaredNorms(term, squared);
      } else {
        AddOuterSquaredNorms(term, squared);
      }
      return {};
  }
  if (form == NormForm::kKeep && term.kind == TermKind::kOuter && !term.lookup) {
    const at::Tensor a = Wide(term.a);
    if (a.is_cpu() && a.scalar_type() == at::kFloat) {
      const std::int64_t examples = term.layout.examples;
      return ExampleProducts(ByExample(a, term.layout, 0, examples),
                             ByExample(Wide(term.b), term.layout, 0, examples), squared)
          .reshape({examples, -1});
    }
    at::Tensor gradients = Materialise(term, 0, term.layout.examples);
    squared.add_(RowSquaredNorms(gradients));
    return gradients;
  }
  std::int64_t size = 1;
  for (const std::int64_t extent : term.sizes) size *= std::max<std::int64_t>(1, extent);
  const std::int64_t chunk = std::max<std::int64_t>(1, ChunkElements(term.b) / size);
  for (std::int64_t begin = 0; begin < term.layout.examples; begin += chunk) {
    const std::int64_t end = std::min(begin + chunk, term.layout.examples);
    squared.slice(0, begin, end).add_(RowSquaredNorms(Materialise(term, begin, end)));
  }
  return {};
}

at::Tensor GradientsToKeep(const Term& term, NormForm form) {
  switch (term.kind) {
    case TermKind::kDirect:
      return term.b;
    case TermKind::kRows:
      return SumOfRows(term);
    case TermKind::kLookup:
      return {};
    case TermKind::kOuter:
    case TermKind::kConvolution:
      break;
  }
  if (form != NormForm::kKeep) return {};
  if (term.kind == TermKind::kConvolution) {
    return ConvolutionGradients(term.convolution, term.a, term.b, term.layout, {})
        .reshape({term.layout.examples, -1});
  }
  return Materialise(term, 0, term.layout.examples);
}

at::Tensor AbsoluteMass(const Term& term) {
  constexpr double kLimit = kMaxRowsNorm * kMaxRowsNorm;
  if (term.kind == TermKind::kConvolution) {
    // Every pixel enters at most `copies` columns, so |columns| <= sqrt(copies) |image|; then
    // Cauchy and Schwarz. It meets entry k of the kernel where k dilation is its place modulo the
    // stride: one entry in stride / gcd(stride, dilation).
    double copies = 1;
    for (std::size_t k = 0; k < term.convolution.stride.size(); ++k) {
      const std::int64_t stride = term.convolution.stride[k];
      const std::int64_t every = stride / std::gcd(stride, term.convolution.dilation[k]);
      const std::int64_t entries = (term.convolution.weight[k + 2] + every - 1) / every;
      copies *= static_cast<double>(entries);
    }
    const auto norms = [&](const at::Tensor& images) {
      return RowSquaredNorms(images.reshape({images.size(0), -1}))
          .reshape({term.layout.outer, term.layout.examples, term.layout.inner})
          .sum(at::IntArrayRef{0, 2});
    };
    const at::Tensor a = norms(Wide(term.a));
    const at::Tensor b = norms(Wide(term.b));
    const at::Tensor columns = (term.convolution.transposed ? b : a) * copies;
    const at::Tensor signal = term.convolution.transposed ? a : b;
    return (columns * signal).sqrt().masked_fill_(at::maximum(columns, signal) > kLimit, kInfinity);
  }
  const at::Tensor a = RowSquaredNorms(Wide(term.a));
  const at::Tensor b = RowSquaredNorms(Wide(term.b));
  const auto by_example = [&](const at::Tensor& rows) {
    return rows.reshape({term.layout.outer, term.layout.examples, term.layout.inner})
        .sum(at::IntArrayRef{0, 2});
  };
  at::Tensor left = by_example(a);
  at::Tensor right = by_example(b);
  at::Tensor mass = by_example((a * b).sqrt());
  if (term.lookup) AddLookupMass(*term.lookup, mass, left, right);
  return mass.masked_fill_(at::maximum(left, right) > kLimit, kInfinity);
}

}  // namespace sordino
