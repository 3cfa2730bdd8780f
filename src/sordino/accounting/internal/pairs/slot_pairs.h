// The dominating pairs of slots (alternatives.h): those of the release, or the envelope of what the
// slot may hold.
#ifndef SORDINO_ACCOUNTING_INTERNAL_SLOT_PAIRS_H_
#define SORDINO_ACCOUNTING_INTERNAL_SLOT_PAIRS_H_

#include <cstddef>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "sordino/accounting/effort.h"
#include "sordino/accounting/internal/contour/contour.h"
#include "sordino/accounting/internal/grid/discretise.h"
#include "sordino/accounting/internal/pairs/adaptive_choice.h"
#include "sordino/accounting/internal/pairs/alternatives.h"
#include "sordino/accounting/internal/pairs/dominating_pair.h"

namespace sordino {

// Alternatives share most of their slots, so that pairs are kept where there are several.
class PairsOfSlots {
 public:
  // With `shared`, pairs for nearly the same count count as the same: it decides their ranges only.
  PairsOfSlots(double log_delta, Effort effort, bool shared, bool one_of_many)
      : use_{log_delta, 1, effort, one_of_many, false, false}, shared_(shared) {}

  // `blocks` and `alone`: see PairUse.
  DominatingPairs operator()(const Slot& slot, bool blocks = false, bool alone = false);

 private:
  PairUse use_;
  bool shared_;
  std::unordered_map<std::string, DominatingPairs> known_;
};

// The releases of slots in one direction, from above or as they are attained; `directions` is
// raised to how many there are. nullopt where a release has no pair from above.
std::optional<std::vector<CountedPair>> PairsOf(const Slots& slots, Bound bound, std::size_t d,
                                                PairsOfSlots& pairs_of, std::size_t& directions);

// The choices of an event in one direction, from above or as they are attained; `directions` is
// raised to how many there are. nullopt where a release has no pair from above.
std::optional<AdaptiveComposition> CompositionOf(const AlternativeSlots& event, Bound bound,
                                                 std::size_t direction, PairsOfSlots& pairs_of,
                                                 std::size_t& directions);

}  // namespace sordino

#endif  // SORDINO_ACCOUNTING_INTERNAL_SLOT_PAIRS_H_
