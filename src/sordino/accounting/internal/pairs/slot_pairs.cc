#include "sordino/accounting/internal/pairs/slot_pairs.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

#include "sordino/accounting/internal/pairs/envelope.h"

namespace sordino {
namespace {

constexpr std::uint64_t kMaxShared = std::uint64_t{1} << 62;

DominatingPairs MakePairs(const std::vector<Event>& options, const PairUse& use) {
  if (options.size() == 1) return DominatingPairsOf(options.front(), use);
  std::vector<DominatingPairs> all;
  std::size_t most = 1;
  for (const Event& option : options) {
    all.push_back(DominatingPairsOf(option, use));
    if (all.back().upper.empty()) return {{}, {}, all.back().reason, false, 1, 1};
    most = std::max(most, all.back().upper.size());
  }
  DominatingPairs envelopes;
  for (std::size_t d = 0; d < most; ++d) {
    std::vector<LossPair> direction;
    direction.reserve(all.size());
    for (const DominatingPairs& one : all) direction.push_back(one.upper[d % one.upper.size()]);
    envelopes.upper.push_back(EnvelopeOf(direction));
  }
  return envelopes;
}

}  // namespace

DominatingPairs PairsOfSlots::operator()(const Slot& slot, bool blocks, bool alone) {
  PairUse use = use_;
  use.count = slot.count;
  use.blocks = blocks;
  use.alone = alone;
  if (!shared_) return MakePairs(slot.options, use);
  if (!blocks && slot.count <= kMaxShared) use.count = std::bit_ceil(slot.count);
  std::string key =
      std::to_string(use.count) + (blocks ? " in blocks of " : " of ") + (alone ? "only " : "");
  for (const Event& option : slot.options) key += option.ToString();
  const auto [found, is_new] = known_.try_emplace(std::move(key));
  if (is_new) found->second = MakePairs(slot.options, use);
  return found->second;
}

std::optional<std::vector<CountedPair>> PairsOf(const Slots& slots, Bound bound, std::size_t d,
                                                PairsOfSlots& pairs_of, std::size_t& directions) {
  std::vector<CountedPair> pairs;
  for (const Slot& slot : slots) {
    const DominatingPairs all = pairs_of(slot);
    const std::vector<LossPair>& one = bound == Bound::kUpper ? all.upper : all.attained();
    if (one.empty() && bound == Bound::kUpper) return std::nullopt;
    if (one.empty()) continue;
    directions = std::max(directions, one.size());
    pairs.push_back({one[d % one.size()], slot.count});
  }
  return pairs;
}

std::optional<AdaptiveComposition> CompositionOf(const AlternativeSlots& event, Bound bound,
                                                 std::size_t direction, PairsOfSlots& pairs_of,
                                                 std::size_t& directions) {
  AdaptiveComposition composition;
  auto others = PairsOf(event.others, bound, direction, pairs_of, directions);
  if (!others) return std::nullopt;
  composition.others = std::move(*others);
  for (const PartChoice& choice : event.choices) {
    ChosenSteps steps;
    steps.count = choice.count;
    for (const Slots& part : bound == Bound::kUpper ? choice.upper : choice.lower) {
      auto option = PairsOf(part, bound, direction, pairs_of, directions);
      if (!option) return std::nullopt;
      steps.options.push_back(std::move(*option));
    }
    composition.choices.push_back(std::move(steps));
  }
  return composition;
}

}  // namespace sordino
