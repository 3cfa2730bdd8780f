#include "sordino/gradients/norm_cost.h"

#include <algorithm>
#include <cstdint>

namespace sordino {
namespace {

// Rates of matrix products and of memory, in flops and bytes a nanosecond; what counts is their
// quotient.
struct Machine {
  double products;
  double gram_products;
  double memory;
};
constexpr Machine kCpu{125, 90, 15};
constexpr Machine kCuda{30000, 20000, 3000};

// Gradients larger than this an example are kept only where they take no more memory than what they
// replace; smaller ones where that is faster, and a batch is cut when they become too many.
constexpr double kLargeBytes = 16e6;

}  // namespace

NormForm CheapestForm(const Term& term) {
  if (term.kind != TermKind::kOuter && term.kind != TermKind::kConvolution) return NormForm::kKeep;
  const Machine& machine = term.b.is_cpu() ? kCpu : kCuda;
  const auto examples = static_cast<double>(term.layout.examples);
  double rows = static_cast<double>(term.layout.rows_per_example());
  double entries = 1;  // p q
  double features = 0;  // p + q
  if (term.kind == TermKind::kOuter) {
    if (term.layout.rows_per_example() == 1) return NormForm::kGram;
    const auto p = static_cast<double>(term.a.size(1));
    const auto q = static_cast<double>(term.b.size(1));
    entries = p * q;
    features = p + q;
  } else {
    for (const std::int64_t size : term.sizes) entries *= static_cast<double>(size);
    const at::Tensor& image = term.convolution.transposed ? term.a : term.b;
    const double channels = static_cast<double>(image.size(1));
    rows *= static_cast<double>(image.numel()) /
            std::max(1.0, static_cast<double>(image.size(0)) * channels);
    features = channels + entries / std::max(1.0, channels);
  }
  const double product = 2 * examples * rows * entries / machine.products;
  const double bytes = 4 * examples * entries;
  const double replaced = 4 * static_cast<double>(term.a.numel() + term.b.numel());
  const double keep = product + 2 * bytes / machine.memory;
  const double discard = 2 * product;
  const double gram =
      2 * examples * rows * rows * features / machine.gram_products + product;
  const bool may_keep = bytes <= replaced || bytes <= kLargeBytes * examples;
  if (may_keep && keep <= std::min(gram, discard)) return NormForm::kKeep;
  return gram <= discard ? NormForm::kGram : NormForm::kDiscard;
}

}  // namespace sordino
