#include "sordino/gradients/example_count.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <exception>

#include "sordino/gradients/internal/equal_places.h"
#include "sordino/gradients/internal/isolation/isolation.h"
#include "sordino/gradients/internal/physical_batch.h"

namespace sordino {

namespace {

// An example that fails is found by halving.
std::int64_t CountOf(const LossFunction& indicator, const Batch& batch, bool hide_errors,
                     std::int64_t padded) {
  const std::int64_t examples = Examples(batch);
  try {
    const std::int64_t seen = std::max(examples, padded);
    const at::Tensor values =
        IsolatedLosses(indicator, padded > 0 ? Padded(batch, seen) : batch, seen);
    return values.narrow(0, 0, examples).gt(0.5).sum().item<std::int64_t>();
  } catch (const std::exception& error) {
    if (!hide_errors || IsOutOfMemory(error)) throw;
    if (examples == 1) return 0;
  }
  const std::int64_t half = examples / 2;
  return CountOf(indicator, Slice(batch, 0, half), hide_errors, padded) +
         CountOf(indicator, Slice(batch, half, examples), hide_errors, padded);
}

}  // namespace

PrivateValue<std::int64_t> CountExamples(const LossFunction& indicator, const Batch& batch,
                                         bool one_by_one, bool hide_errors,
                                         std::int64_t padded_examples) {
  const at::NoGradGuard no_grad;
  const std::int64_t examples = Examples(batch);
  const std::int64_t part = one_by_one ? 1 : examples;
  std::int64_t count = 0;
  for (std::int64_t begin = 0; begin < examples; begin += part) {
    count += CountOf(indicator, Slice(batch, begin, begin + part), hide_errors,
                     one_by_one ? 0 : padded_examples);
  }
  return PrivateValue<std::int64_t>(count);
}

}  // namespace sordino
