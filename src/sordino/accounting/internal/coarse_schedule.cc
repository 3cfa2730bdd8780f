#include "sordino/accounting/internal/coarse_schedule.h"

#include "sordino/accounting/renyi.h"

namespace sordino {
namespace {

// Points for each factor of e that rounding begins with.
constexpr double kFinestGrid = 16384;
// So many expected steps with the record make a schedule dense enough for the contour.
constexpr double kManyHits = 40;

bool CanBeRounded(const Event& step) {
  const bool sampled = step.kind() == Event::Kind::kPoisson || step.kind() == Event::Kind::kFixed;
  const Event::Kind noise = sampled ? step.children()[0].first.kind() : step.kind();
  return noise == Event::Kind::kLaplace || (sampled && noise == Event::Kind::kGaussian);
}

// Laplace noise has no contour, however dense.
bool HasContour(const Event& step) {
  return !step.children().empty() && step.children()[0].first.kind() == Event::Kind::kGaussian;
}

}  // namespace

std::optional<CoarseSchedule> CoarseSchedule::Of(const Event& event) {
  if (event.kind() != Event::Kind::kCompose || event.children().size() <= kMaxLines) {
    return std::nullopt;
  }
  double hits = 0;
  for (const auto& [step, count] : event.children()) {
    if (!CanBeRounded(step)) return std::nullopt;
    if (HasContour(step)) hits += static_cast<double>(count) * step.numbers()[0];
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
