#include "sordino/gradients/broadcast.h"

namespace sordino {

at::Tensor ReducePerExample(const at::Tensor& values, const std::vector<std::int64_t>& full,
                            const std::vector<std::int64_t>& reduced,
                            const ExampleLayout& layout) {
  std::vector<std::int64_t> target(full.size(), 1);
  const std::size_t added = full.size() - reduced.size();
  for (std::size_t k = 0; k < reduced.size(); ++k) target[added + k] = reduced[k];

  // The dimension that holds the examples is cut into [before, examples, after].
  std::vector<std::int64_t> view;
  std::vector<std::int64_t> summed;
  std::int64_t example_dim = -1;
  std::int64_t inside = values.numel();
  for (std::size_t k = 0; k < full.size(); ++k) {
    const std::int64_t outside = inside;
    inside = full[k] == 0 ? 0 : inside / full[k];
    const bool holds_examples = example_dim < 0 && outside >= layout.examples * layout.inner &&
                                layout.inner >= inside && layout.examples > 1;
    const auto push = [&](std::int64_t size, bool sum) {
      if (sum) summed.push_back(static_cast<std::int64_t>(view.size()));
      view.push_back(size);
    };
    if (!holds_examples) {
      push(full[k], target[k] == 1);
      continue;
    }
    if (target[k] != 1 || layout.inner % inside != 0) return {};
    const std::int64_t after = layout.inner / inside;
    if (full[k] % (layout.examples * after) != 0) return {};
    push(full[k] / (layout.examples * after), true);
    example_dim = static_cast<std::int64_t>(view.size());
    push(layout.examples, false);
    push(after, true);
  }
  if (example_dim < 0) {
    if (layout.examples != 1) return {};
    view.insert(view.begin(), 1);
    for (std::int64_t& dim : summed) ++dim;
    example_dim = 0;
  }
  at::Tensor result = values.reshape(view);
  if (!summed.empty()) result = result.sum(summed, /*keepdim=*/true);
  return result.movedim(example_dim, 0).reshape({layout.examples, -1});
}

}  // namespace sordino
