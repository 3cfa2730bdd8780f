#include "sordino/gradients/internal/terms/broadcast.h"

#include <algorithm>
#include <optional>

#include "sordino/gradients/internal/terms/term_rows.h"

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
  // [examples, what is summed, what is left]
  std::vector<std::int64_t> order = {plan->example_dim};
  order.insert(order.end(), plan->summed.begin(), plan->summed.end());
  std::int64_t rows = 1;
  for (const std::int64_t dim : plan->summed) rows *= plan->view[static_cast<std::size_t>(dim)];
  for (std::int64_t dim = 0; dim < static_cast<std::int64_t>(plan->view.size()); ++dim) {
    if (std::find(order.begin(), order.end(), dim) == order.end()) order.push_back(dim);
  }
  const at::Tensor by_example = values.reshape(plan->view).permute(order);
  return SumOfRows(by_example.reshape({layout.examples * rows, -1}), {1, layout.examples, rows});
}

}  // namespace sordino
