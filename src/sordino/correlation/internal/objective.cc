#include "sordino/correlation/internal/objective.h"

#include <cstddef>

namespace sordino {

std::vector<double> ErrorWeights(std::int64_t steps, CorrelationObjective objective) {
  std::vector<double> weights(static_cast<std::size_t>(steps), 1.0);
  if (objective == CorrelationObjective::kMaxError) return weights;
  for (std::size_t t = 0; t < weights.size(); ++t) {
    weights[t] = static_cast<double>(weights.size() - t) / static_cast<double>(weights.size());
  }
  return weights;
}

PatternSquare::PatternSquare(std::span<const double> column, const Participation& participation)
    : slope_(static_cast<std::size_t>(participation.steps), 0.0) {
  const std::size_t steps = slope_.size();
  const auto separation = static_cast<std::size_t>(participation.separation);
  const std::size_t span = separation * static_cast<std::size_t>(participation.Fitting());
  const auto at = [&](std::size_t t) { return t < column.size() ? column[t] : 0.0; };
  // By differences: the rounding of long runs does not matter to an optimiser.
  std::vector<double> sum(steps);
  for (std::size_t t = 0; t < steps; ++t) {
    sum[t] = at(t);
    if (t >= separation) sum[t] += sum[t - separation];
    if (t >= span) sum[t] -= at(t - span);
    value_ += sum[t] * sum[t];
  }
  for (std::size_t t = steps; t-- > 0;) {
    slope_[t] = 2 * sum[t];
    if (t + separation < steps) slope_[t] += slope_[t + separation];
    if (t + span < steps) slope_[t] -= 2 * sum[t + span];
  }
}

}  // namespace sordino
