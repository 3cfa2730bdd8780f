#include "sordino/cli/epsilon_curve.h"

#include <algorithm>
#include <cmath>

#include "sordino/accounting/accountant.h"
#include "sordino/accounting/calibration.h"
#include "sordino/base/error.h"
#include "sordino/base/exact_count.h"

namespace sordino {
namespace {

constexpr int kPoints = 25;
// Of a sequence with more phases than this the points in between are quick bounds.
constexpr std::size_t kManyPhases = 200;

std::vector<std::uint64_t> LogSpacedSteps(std::uint64_t total) {
  std::vector<std::uint64_t> steps;
  for (int i = 0; i < kPoints; ++i) {
    const double share = static_cast<double>(i) / (kPoints - 1);
    const double t = std::round(std::pow(static_cast<double>(total), share));
    steps.push_back(std::clamp<std::uint64_t>(static_cast<std::uint64_t>(t), 1, total));
  }
  steps.back() = total;
  steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
  return steps;
}

Interval PointBetween(const Event& prefix, Delta delta, bool quick) {
  if (quick) {
    const Interval value = CertifiedEpsilon(prefix, std::log(delta.value()), Effort::kQuick).value;
    if (std::isfinite(value.upper)) return value;
  }
  return SpentEpsilon(prefix, delta);
}

}  // namespace

std::uint64_t StepSequence::TotalSteps() const {
  std::uint64_t total = 0;
  for (const auto& [event, count] : phases) {
    if (count > kMaxExactCount - total) {
      throw Error("the steps add up to more than 2^53; use fewer.");
    }
    total += count;
  }
  return total;
}

Event StepSequence::Prefix(std::uint64_t steps) const {
  std::vector<std::pair<Event, std::uint64_t>> taken;
  for (const auto& [event, count] : phases) {
    if (steps == 0) break;
    taken.emplace_back(event, std::min(count, steps));
    steps -= taken.back().second;
  }
  return Event::Compose(std::move(taken), adjacency);
}

std::vector<CurvePoint> EpsilonCurve(const StepSequence& sequence, Delta delta, Interval whole) {
  const std::uint64_t total = sequence.TotalSteps();
  if (total == 0) return {};
  std::vector<CurvePoint> curve;
  const bool quick = sequence.phases.size() > kManyPhases;
  for (const std::uint64_t steps : LogSpacedSteps(total)) {
    curve.push_back(
        {steps, steps == total ? whole : PointBetween(sequence.Prefix(steps), delta, quick)});
  }
  for (std::size_t i = 1; i < curve.size(); ++i) {
    curve[i].epsilon.lower = std::max(curve[i].epsilon.lower, curve[i - 1].epsilon.lower);
  }
  for (std::size_t i = curve.size() - 1; i > 0; --i) {
    curve[i - 1].epsilon.upper = std::min(curve[i - 1].epsilon.upper, curve[i].epsilon.upper);
  }
  return curve;
}

}  // namespace sordino
