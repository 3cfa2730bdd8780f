#include "sordino/gradients/internal/terms/tied_term.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <memory>
#include <utility>

#include "sordino/base/check.h"
#include "sordino/gradients/internal/terms/term_rows.h"
#include "sordino/kernels/row_sums.h"

namespace sordino {
namespace {

// Rows of the padding index as rows of zeros, so that every row counts.
void ZeroPadding(Term& lookup) {
  if (lookup.padding_index < 0) return;
  lookup.b = Wide(lookup.b).masked_fill((lookup.a == lookup.padding_index).unsqueeze(1), 0);
  lookup.padding_index = -1;
}

at::Tensor IndicesOf(const Term& lookup, std::int64_t begin, std::int64_t end) {
  const at::Tensor index = lookup.a.to(at::kLong).reshape({-1, 1});
  return ByExample(index, lookup.layout, begin, end).squeeze(2);
}

// [rows] to sums over the rows of each example, [examples].
at::Tensor SumByExample(const Term& lookup, const at::Tensor& values) {
  return values.reshape({lookup.layout.outer, lookup.layout.examples, lookup.layout.inner})
      .sum(at::IntArrayRef{0, 2});
}

}  // namespace

Term StackTied(std::vector<Term> terms) {
  std::vector<Term> products;
  std::vector<Term> lookups;
  for (Term& term : terms) {
    (term.kind == TermKind::kLookup ? lookups : products).push_back(std::move(term));
  }
  if (lookups.empty()) return Stack(products);
  Term lookup = Stack(lookups);
  if (products.empty()) return lookup;
  SORDINO_CHECK(!lookup.owners.defined(), "tied lookups have as many rows for every example");
  ZeroPadding(lookup);
  Term tied = Stack(products);
  lookup.sizes = {tied.a.size(1), tied.b.size(1)};
  tied.lookup = std::make_shared<const Term>(std::move(lookup));
  return tied;
}

void AddTiedSquaredNorms(const Term& term, const at::Tensor& squared) {
  const Term& lookup = *term.lookup;
  at::Tensor own = at::zeros_like(squared);
  AddOuterSquaredNorms(term, own);
  AddLookupSquaredNorms(AsLookup(lookup), own);
  const at::Tensor a = Wide(term.a);
  const at::Tensor b = Wide(term.b);
  const at::Tensor x = Wide(lookup.b);
  auto* norm = own.mutable_data_ptr<double>();
  for (std::int64_t i = 0; i < term.layout.examples; ++i) {
    const at::Tensor rows = ByExample(x, lookup.layout, i, i + 1)[0];
    at::Tensor cross = at::mm(ByExample(b, term.layout, i, i + 1)[0], rows.t());
    cross.mul_(
        ByExample(a, term.layout, i, i + 1)[0].index_select(1, IndicesOf(lookup, i, i + 1)[0]));
    norm[i] += 2 * cross.sum(at::kDouble).item<double>();
  }
  squared.add_(own.clamp_min_(0));
}

void AddLookups(const Term& lookup, std::int64_t begin, std::int64_t end, at::Tensor& gradients) {
  const at::Tensor index = IndicesOf(lookup, begin, end);
  const at::Tensor first = at::arange(end - begin, index.options()) * gradients.size(1);
  gradients.view({-1, gradients.size(2)})
      .index_add_(0, (index + first.unsqueeze(1)).reshape({-1}),
                  ByExample(Wide(lookup.b), lookup.layout, begin, end).flatten(0, 1));
}

at::Tensor LookupSum(const Term& term, const ExampleFactors& factors, bool wide) {
  if (!term.lookup) return {};
  LookupRows lookup = AsLookup(*term.lookup);
  lookup.gradient = lookup.gradient.to(at::kDouble);
  return LookupWeightedSum(lookup, factors.float64, wide);
}

void AddLookupMass(const Term& lookup, at::Tensor& mass, at::Tensor& left, at::Tensor& right) {
  const at::Tensor squares = RowSquaredNorms(Wide(lookup.b));
  mass = mass + SumByExample(lookup, squares.sqrt());
  left = left + static_cast<double>(lookup.layout.rows_per_example());
  right = right + SumByExample(lookup, squares);
}

Term WrittenOut(const Term& term) {
  return {.kind = TermKind::kDirect,
          .b = Materialise(term, 0, term.layout.examples),
          .layout = {1, term.layout.examples, 1},
          .sizes = term.sizes};
}

}  // namespace sordino
