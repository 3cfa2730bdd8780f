// The weighted sums of term.h.
#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <utility>

#include "sordino/base/check.h"
#include "sordino/gradients/internal/terms/example_products.h"
#include "sordino/gradients/internal/terms/fused_terms.h"
#include "sordino/gradients/internal/terms/term.h"
#include "sordino/gradients/internal/terms/term_rows.h"
#include "sordino/gradients/internal/terms/tied_term.h"
#include "sordino/kernels/row_operations.h"
#include "sordino/kernels/row_sums.h"

namespace sordino {
namespace {

at::Tensor Blocks(const at::Tensor& rows, const ExampleLayout& layout) {
  return rows.reshape({layout.outer, layout.examples, layout.inner, -1});
}

at::Tensor OfBlocks(const at::Tensor& by_example, const ExampleLayout& layout) {
  return by_example.view({1, layout.examples, 1, 1});
}

// Multiplies row r by the factor of its example; a factor of 0 wins over infinities and NaN.
at::Tensor ScaleRows(const at::Tensor& rows, const ExampleLayout& layout,
                     const ExampleFactors& factors) {
  const at::Tensor wide = Wide(rows);
  at::Tensor scaled = Blocks(wide, layout) * OfBlocks(factors.InTypeOf(wide), layout);
  if (!factors.all_finite) scaled.masked_fill_(OfBlocks(factors.None(), layout), 0);
  return scaled.reshape(wide.sizes());
}

at::Tensor MaskRows(const at::Tensor& rows, const ExampleLayout& layout,
                    const ExampleFactors& factors) {
  at::Tensor wide = Wide(rows);
  if (factors.all_finite) return wide;
  return Blocks(wide, layout)
      .masked_fill(OfBlocks(factors.None(), layout), 0)
      .reshape(wide.sizes());
}

// left^T right over one row of each example. The results of up to kMaxBlocks float32 products are
// added in float32: roundings of the result, which the plan of the sum counts.
at::Tensor ProductOverRows(const at::Tensor& left, const at::Tensor& right,
                           const SumAccuracy& accuracy) {
  const std::int64_t rows = left.size(0);
  const std::int64_t longest = accuracy.rows_per_sum;
  if (left.scalar_type() == at::kDouble) return at::mm(left.t(), right);
  if (rows <= longest && !accuracy.wide) return at::mm(left.t(), right);
  if (longest * kMaxBlocks < rows || accuracy.wide) {
    at::Tensor sum = at::mm(left.to(at::kDouble).t(), right.to(at::kDouble));
    return accuracy.wide ? sum : sum.to(left.scalar_type());
  }
  const std::int64_t blocks = (rows + longest - 1) / longest;
  const std::int64_t block = (rows + blocks - 1) / blocks;
  at::Tensor sum = at::mm(left.slice(0, 0, block).t(), right.slice(0, 0, block));
  for (std::int64_t begin = block; begin < rows; begin += block) {
    const std::int64_t end = std::min(begin + block, rows);
    sum.add_(at::mm(left.slice(0, begin, end).t(), right.slice(0, begin, end)));
  }
  return sum;
}

// left^T right over several rows of each example: a product for each example, added up in float64,
// with what lookups of the same matrix add to it.
at::Tensor ProductOfExamples(const at::Tensor& left, const at::Tensor& right,
                             const ExampleLayout& layout, const at::Tensor& of_lookups, bool wide) {
  const std::int64_t p = left.size(1);
  const std::int64_t q = right.size(1);
  if (left.is_cpu() && left.scalar_type() != at::kDouble) {
    return SumOfExampleProducts(ByExample(left, layout, 0, layout.examples),
                                ByExample(right, layout, 0, layout.examples), of_lookups, wide);
  }
  if (left.scalar_type() == at::kDouble && !wide) {
    const at::Tensor product = at::mm(left.t(), right);
    return of_lookups.defined() ? product + of_lookups : product;
  }
  SORDINO_CHECK(!of_lookups.defined() || left.is_cpu(),
                "matrices are tied to tables on a CPU alone");
  at::Tensor sum = at::zeros({p, q}, left.options().dtype(at::kDouble));
  const std::int64_t chunk = std::max<std::int64_t>(1, ChunkElements(left) / (p * q));
  for (std::int64_t begin = 0; begin < layout.examples; begin += chunk) {
    const std::int64_t end = std::min(begin + chunk, layout.examples);
    const at::Tensor products = at::bmm(ByExample(left, layout, begin, end).transpose(1, 2),
                                        ByExample(right, layout, begin, end));
    sum.add_(products.sum(at::IntArrayRef{0}, false, at::kDouble));
  }
  if (of_lookups.defined()) sum.add_(of_lookups);
  return wide ? sum : sum.to(left.scalar_type());
}

at::Tensor TableSum(const Term& term, const ExampleFactors& factors, bool wide) {
  const LookupRows lookup = AsLookup(term);
  if (term.b.is_cpu()) return LookupWeightedSum(lookup, factors.float64, wide);
  if (HasLookupOperations(lookup)) return DeviceLookupSum(lookup, factors.float64, wide);
  // Rows of an example that cancel must do so before they meet those of others, which no operation
  // of libtorch takes care of.
  return LookupWeightedSum(OnCpu(lookup), factors.float64.cpu(), wide).to(term.b.device());
}

}  // namespace

ExampleFactors::ExampleFactors(const at::Tensor& factors, bool is_all_finite, at::Tensor float32)
    : float64(factors.contiguous()), all_finite(is_all_finite), float32_(std::move(float32)) {}

const at::Tensor& ExampleFactors::None() const {
  if (!none_.defined()) none_ = float64 == 0;
  return none_;
}

const at::Tensor& ExampleFactors::InTypeOf(const at::Tensor& values) const {
  if (values.scalar_type() == at::kDouble) return float64;
  if (!float32_.defined()) float32_ = float64.to(at::kFloat);
  return float32_;
}

at::Tensor WeightedSum(const Term& term, const ExampleFactors& factors,
                       const SumAccuracy& accuracy) {
  if (term.fused != FusedUse::kNone) {
    return FusedWeightedSum(term, factors.float64, accuracy.wide);
  }
  const at::NoTF32Guard full_precision;
  switch (term.kind) {
    case TermKind::kOuter: {
      const bool one_row = term.layout.rows_per_example() == 1 && !term.lookup;
      if (one_row && accuracy.rows_per_sum >= kRowsPerSmallSum &&
          OneRowSumIsSmall(term.a, term.b)) {
        return OneRowSum(term.a, term.b, factors.float64).reshape(term.sizes);
      }
      const at::Tensor left = MaskRows(term.a, term.layout, factors);
      const at::Tensor right = ScaleRows(term.b, term.layout, factors);
      return (one_row ? ProductOverRows(left, right, accuracy)
                      : ProductOfExamples(left, right, term.layout,
                                          LookupSum(term, factors, accuracy.wide), accuracy.wide))
          .reshape(term.sizes);
    }
    case TermKind::kRows:
    case TermKind::kDirect: {
      const at::Tensor gradients = term.kind == TermKind::kRows ? SumOfRows(term) : term.b;
      if (gradients.is_cpu()) {
        return WeightedRowSum(gradients, factors.float64, accuracy.wide).reshape(term.sizes);
      }
      if (HasRowOperations(gradients)) {
        const auto sums = DeviceRowSums({{.rows = gradients.flatten(1)}},
                                        factors.float64.unsqueeze(0), accuracy.wide);
        return sums.front().reshape(term.sizes);
      }
      const at::Tensor rows = MaskRows(gradients, {1, term.layout.examples, 1}, factors);
      return ProductOverRows(factors.InTypeOf(rows).unsqueeze(1), rows, accuracy)
          .reshape(term.sizes);
    }
    case TermKind::kLookup:
      return TableSum(term, factors, accuracy.wide).reshape(term.sizes);
    case TermKind::kConvolution:
      return WeightedConvolutionGradient(term.convolution, term.a, term.b, term.layout,
                                         factors.float64, accuracy.wide);
  }
  return {};
}

at::Tensor ProductOfRows(const at::Tensor& left, const at::Tensor& right,
                         const SumAccuracy& accuracy) {
  const at::NoTF32Guard full_precision;
  return ProductOverRows(left, right, accuracy);
}

at::Tensor TransposedWeightedSum(const Term& term, const ExampleFactors& factors,
                                 const SumAccuracy& accuracy) {
  SORDINO_CHECK(term.kind == TermKind::kOuter && !term.lookup, "a sum of outer products alone");
  // Of the same bits as the norms: turned when it is finished.
  if (term.fused != FusedUse::kNone) {
    return FusedWeightedSum(term, factors.float64, accuracy.wide)
        .view({term.a.size(1), term.b.size(1)})
        .t()
        .contiguous();
  }
  Term turned = term;
  std::swap(turned.a, turned.b);
  turned.sizes = {term.b.size(1), term.a.size(1)};
  return WeightedSum(turned, factors, accuracy);
}

}  // namespace sordino
