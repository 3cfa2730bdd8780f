#include "sordino/gradients/example_count.h"

#include <ATen/core/grad_mode.h>

#include "sordino/gradients/internal/isolation/isolation.h"

namespace sordino {

PrivateValue<std::int64_t> CountExamples(const LossFunction& indicator, const Batch& batch,
                                         bool one_by_one) {
  const at::NoGradGuard no_grad;
  const std::int64_t examples = Examples(batch);
  const std::int64_t part = one_by_one ? 1 : examples;
  std::int64_t count = 0;
  for (std::int64_t begin = 0; begin < examples; begin += part) {
    const Batch slice = Slice(batch, begin, begin + part);
    count += IsolatedLosses(indicator, slice, part).gt(0.5).sum().item<std::int64_t>();
  }
  return PrivateValue<std::int64_t>(count);
}

}  // namespace sordino
