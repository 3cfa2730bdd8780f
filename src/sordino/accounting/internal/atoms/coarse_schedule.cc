#include "sordino/accounting/internal/atoms/coarse_schedule.h"

#include "sordino/accounting/internal/event_kind.h"
#include "sordino/accounting/renyi.h"

namespace sordino {
namespace {

// Points for each factor of e that rounding begins with.
constexpr double kFinestGrid = 16384;
// So many expected steps with the record make a schedule dense enough for the contour.
constexpr double kManyHits = 40;

}  // namespace

std::optional<CoarseSchedule> CoarseSchedule::Of(const Event& event) {
  if (!event.IsComposition() || event.children().size() <= kMaxLines) {
    return std::nullopt;
  }
  double hits = 0;
  for (const auto& [step, count] : event.children()) {
    const std::optional<double> one = step.kind().ContourHits(step, std::nullopt);
    if (!one) return std::nullopt;
    hits += static_cast<double>(count) * *one;
  }
  if (hits >= kManyHits) return std::nullopt;
  double per_e = kFinestGrid;
  Event coarse = CoarsenNoise(event, per_e, Coarsening::kLessPrivate);
  while (coarse.children().size() > kMaxLines && per_e > 1) {
    per_e *= 0.7;
    coarse = CoarsenNoise(event, per_e, Coarsening::kLessPrivate);
  }
  if (coarse.children().size() > kMaxLines) return std::nullopt;
  return CoarseSchedule{coarse, CoarsenNoise(event, per_e, Coarsening::kMorePrivate)};
}

}  // namespace sordino
