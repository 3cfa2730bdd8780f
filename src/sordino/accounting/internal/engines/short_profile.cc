#include "sordino/accounting/internal/engines/short_profile.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "sordino/accounting/internal/contour/contour.h"
#include "sordino/accounting/internal/engines/engine_choice.h"
#include "sordino/accounting/internal/engines/enumerated.h"
#include "sordino/accounting/internal/pairs/alternatives.h"
#include "sordino/accounting/internal/pairs/dominating_pair.h"
#include "sordino/accounting/internal/pairs/slot_pairs.h"
#include "sordino/base/quantity.h"

namespace sordino {
namespace {

bool IsForGrid(const std::vector<CountedPair>& pairs, const PairShape& shape) {
  return IsShort(pairs) && !shape.only_gaussian && !shape.single && !Enumerated::Of(pairs);
}

}  // namespace

std::optional<ShortProfile> ShortProfile::Of(const Event& event, Effort effort) {
  if (!ReasonOfUse(event).empty()) return std::nullopt;
  const AlternativeSlots alternatives = AlternativesOf(event);
  if (alternatives.upper.size() != 1 || !alternatives.choices.empty()) return std::nullopt;
  PairsOfSlots pairs_of(PairUse().log_delta, effort, false, false);
  ShortProfile profile;
  std::size_t directions = 1;
  for (std::size_t d = 0; d < directions; ++d) {
    auto pairs = PairsOf(alternatives.upper.front(), Bound::kUpper, d, pairs_of, directions);
    if (!pairs) return std::nullopt;
    const PairShape shape = ShapeOf(*pairs);
    if (!IsForGrid(*pairs, shape)) return std::nullopt;
    profile.directions_.push_back({GridProfile(std::move(*pairs), Bound::kUpper, effort),
                                   shape.largest_loss * (1 + kClosedFormError)});
  }
  return profile;
}

double ShortProfile::LogDelta(double epsilon) {
  // The direction that had most comes first; delta does not rise, so one that had less at a smaller
  // epsilon needs no look.
  std::stable_sort(
      directions_.begin(), directions_.end(),
      [](const Direction& a, const Direction& b) { return a.log_delta > b.log_delta; });
  double most = -kInfinity;
  for (Direction& direction : directions_) {
    if (direction.epsilon <= epsilon && direction.log_delta <= most) continue;
    direction.epsilon = epsilon;
    direction.log_delta =
        epsilon >= direction.largest_loss ? -kInfinity : direction.profile.LogDelta(epsilon);
    most = std::max(most, direction.log_delta);
  }
  return most;
}

}  // namespace sordino
