#include "sordino/gradients/internal/terms/norm_cost.h"

#include <algorithm>
#include <cstdint>

#include "sordino/gradients/internal/convolution/convolution_gradients.h"
#include "sordino/gradients/internal/terms/fused_terms.h"

namespace sordino {
namespace {

// Rates of matrix products and of memory, in flops and bytes a nanosecond; what counts is their
// quotient.
struct Machine {
  double products;
  double gram_products;
  double memory;
  double cache;
};
constexpr Machine kCpu{125, 90, 15, 37};
constexpr Machine kCuda{30000, 20000, 3000, 3000};

// Gram matrices of convolutions are float64, and so are some of their sums.
constexpr double kFloat64Factor = 2.2;
constexpr double kFewRowsOfCost = 32;
// A product of an example is read and added to a float64 sum.
constexpr double kBytesPerAddedEntry = 20;
// Gradients larger than this an example are kept only where they take no more memory than what they
// replace; smaller ones where that is faster, and a batch is cut when they become too many.
constexpr double kLargeBytes = 16e6;

}  // namespace

NormForm CheapestForm(const Term& term) {
  if (term.kind != TermKind::kOuter && term.kind != TermKind::kConvolution) return NormForm::kKeep;
  if (FusedUseOf(term) != FusedUse::kNone) return NormForm::kFused;
  const Machine& machine = term.b.is_cpu() ? kCpu : kCuda;
  double rows = static_cast<double>(term.layout.rows_per_example());
  double entries = 1;
  for (const std::int64_t size : term.sizes) entries *= static_cast<double>(size);
  double gram_work = 0;  // flops for an example, in units of a float32 product
  if (term.kind == TermKind::kOuter) {
    if (term.layout.rows_per_example() == 1) return NormForm::kGram;
    gram_work = 2 * rows * rows * static_cast<double>(term.a.size(1) + term.b.size(1));
  } else {
    const at::Tensor& image = term.convolution.transposed ? term.a : term.b;
    rows *= static_cast<double>(image[0][0].numel());
    gram_work =
        kFloat64Factor * 2 * rows * rows * static_cast<double>(term.a.size(1) + term.b.size(1));
  }
  // Of one example, so that the form does not depend on how many there are.
  const double bytes = 4 * entries;
  const std::int64_t saved = (term.a.numel() + term.b.numel()) / term.layout.examples;
  const double replaced = 4 * static_cast<double>(saved);
  const double product = 2 * rows * entries / machine.products;
  // Products of few rows spend their time on the result.
  const double separate_products = product * (1 + kFewRowsOfCost / rows);
  const double add_up = kBytesPerAddedEntry / 4 * bytes / machine.cache;
  const double keep = separate_products + 2 * bytes / machine.memory;
  const bool exact =
      term.kind == TermKind::kConvolution && term.b.is_cpu() &&
      SumIsFloat64(static_cast<std::int64_t>(rows), static_cast<std::int64_t>(entries));
  const double sum = exact ? kFloat64Factor * product : product + add_up;
  const double discard = separate_products + sum;
  const double gram = gram_work / machine.gram_products + sum;
  // A gradient with what lookups add to it is not kept: it is as large as a table.
  const bool may_keep = !term.lookup && (bytes <= replaced || bytes <= kLargeBytes);
  if (may_keep && keep <= std::min(gram, discard)) return NormForm::kKeep;
  return gram <= discard ? NormForm::kGram : NormForm::kDiscard;
}

}  // namespace sordino
