// Events in the form that renyi.h and its kin compute with: as one Gaussian, with twice the reach,
// with rounded noise.
#include <cmath>

#include "sordino/accounting/internal/event_kind.h"
#include "sordino/accounting/renyi.h"

namespace sordino {

std::optional<double> EquivalentGaussian(const Event& event) {
  double sum = 0;  // of 1 / sigma^2
  for (const auto& [part, count] : event.Flatten()) {
    const std::optional<double> precision = part.kind().Precision(part);
    if (!precision) return std::nullopt;
    sum += static_cast<double>(count) * *precision;
  }
  if (!(sum > 0) || std::isinf(sum)) return std::nullopt;
  return 1 / std::sqrt(sum);
}

Event DoubledReach(const Event& event) { return event.kind().DoubledReach(event); }

Event FixedReach(const Event& event) { return event.kind().FixedReach(event); }

Event CoarsenNoise(const Event& event, double per_e, Coarsening coarsening) {
  return event.kind().Coarsened(event, CoarseGrid(per_e, coarsening));
}

}  // namespace sordino
