#include "sordino/gradients/example_count.h"

#include <ATen/core/grad_mode.h>

#include <exception>

#include "sordino/gradients/internal/isolation/isolation.h"
#include "sordino/gradients/internal/physical_batch.h"

namespace sordino {

PrivateValue<std::int64_t> CountExamples(const LossFunction& indicator, const Batch& batch,
                                         bool one_by_one, bool hide_errors) {
  const at::NoGradGuard no_grad;
  const std::int64_t examples = Examples(batch);
  const std::int64_t part = one_by_one ? 1 : examples;
  std::int64_t count = 0;
  for (std::int64_t begin = 0; begin < examples; begin += part) {
    const Batch slice = Slice(batch, begin, begin + part);
    try {
      count += IsolatedLosses(indicator, slice, part).gt(0.5).sum().item<std::int64_t>();
    } catch (const std::exception& error) {
      if (!hide_errors || IsOutOfMemory(error)) throw;
      if (part == 1) continue;
      return CountExamples(indicator, batch, /*one_by_one=*/true, hide_errors);
    }
  }
  return PrivateValue<std::int64_t>(count);
}

}  // namespace sordino
