#include "sordino/gradients/internal/terms/broadcast.h"

#include <optional>

namespace sordino {
namespace {

// How a tensor is viewed and what is summed to have one reduced tensor for each example.
struct Reduction {
  std::vector<std::int64_t> view;
  std::vector<std::int64_t> summed;
  std::int64_t example_dim = -1;
};

std::optional<Reduction> PlanReduction(const std::vector<std::int64_t>& full,
                                       const std::vector<std::int64_t>& reduced,
                                       const ExampleLayout& layout) {
  std::vector<std::int64_t> target(full.size(), 1);
  const std::size_t added = full.size() - reduced.size();
  for (std::size_t k = 0; k < reduced.size(); ++k) target[added + k] = reduced[k];

  // The dimension that holds the examples is cut into [before, examples, after].
  Reduction plan;
  std::int64_t inside = 1;
  for (const std::int64_t size : full) inside *= size;
  const auto push = [&](std::int64_t size, bool sum) {
    if (sum) plan.summed.push_back(static_cast<std::int64_t>(plan.view.size()));
    plan.view.push_back(size);
  };
  for (std::size_t k = 0; k < full.size(); ++k) {
    const std::int64_t outside = inside;
    inside = full[k] == 0 ? 0 : inside / full[k];
    const bool holds_examples = plan.example_dim < 0 && outside >= layout.examples * layout.inner &&
                                layout.inner >= inside && layout.examples > 1;
    if (!holds_examples) {
      push(full[k], target[k] == 1);
      continue;
    }
    if (target[k] != 1 || layout.inner % inside != 0) return std::nullopt;
    const std::int64_t after = layout.inner / inside;
    if (full[k] % (layout.examples * after) != 0) return std::nullopt;
    push(full[k] / (layout.examples * after), true);
    plan.example_dim = static_cast<std::int64_t>(plan.view.size());
    push(layout.examples, false);
    push(after, true);
  }
  if (plan.example_dim >= 0) return plan;
  if (layout.examples != 1) return std::nullopt;
  plan.view.insert(plan.view.begin(), 1);
  for (std::int64_t& dim : plan.summed) ++dim;
  plan.example_dim = 0;
  return plan;
}

}  // namespace

at::Tensor ReducePerExample(const at::Tensor& values, const std::vector<std::int64_t>& full,
                            const std::vector<std::int64_t>& reduced, const ExampleLayout& layout) {
  const auto plan = PlanReduction(full, reduced, layout);
  if (!plan) return {};
  at::Tensor result = values.reshape(plan->view);
  if (!plan->summed.empty()) result = result.sum(plan->summed, /*keepdim=*/true);
  return result.movedim(plan->example_dim, 0).reshape({layout.examples, -1});
}

}  // namespace sordino
