// CertifiedEpsilon and CertifiedLogDelta: the worst over what a record can meet, in every direction
// of the adjacency.
#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sordino/accounting/accountant.h"
#include "sordino/accounting/internal/atoms/coarse_schedule.h"
#include "sordino/accounting/internal/engines/contradiction.h"
#include "sordino/accounting/internal/engines/engines.h"
#include "sordino/accounting/internal/event_kind.h"
#include "sordino/accounting/internal/pairs/adaptive_choice.h"
#include "sordino/accounting/internal/pairs/alternatives.h"
#include "sordino/accounting/internal/pairs/dominating_pair.h"
#include "sordino/accounting/internal/pairs/slot_pairs.h"
#include "sordino/accounting/renyi.h"

namespace sordino {
namespace {

// One direction of the adjacency of one alternative.
struct DirectionBounds {
  std::vector<CountedPair> upper;
  std::vector<CountedPair> lower;  // empty where it would be the same
  bool same = true;                // upper and lower are the same pairs
  bool has_upper = true;           // every release has a dominating pair
  bool new_upper = true;           // no earlier direction has the same
  bool new_lower = true;

  const std::vector<CountedPair>& attained() const { return same ? upper : lower; }
};

// The slot that matters most of those with a range of losses: of several ranges one may be taken in
// blocks (bounded_range.h).
const Slot* SlotInBlocks(const Slots& slots) {
  const Slot* found = nullptr;
  double most = 0;
  for (const Slot& slot : slots) {
    const Event& first = slot.options.front();
    const double range = first.kind().BlockRange(first);
    if (slot.options.size() > 1 || range == 0) continue;
    const double size = static_cast<double>(slot.count) * range * range;
    if (found != nullptr && size <= most) continue;
    found = &slot;
    most = size;
  }
  return found;
}

// Pair d of a list that is repeated for `all` directions; it may be moved out when it is used last.
CountedPair TakePair(std::vector<LossPair>& pairs, std::size_t d, std::size_t all,
                     std::uint64_t count) {
  LossPair& pair = pairs[d % pairs.size()];
  if (d + pairs.size() < all) return {pair, count};
  return {std::move(pair), count};
}

std::vector<DirectionBounds> DirectionsOf(const Slots& slots, PairsOfSlots& pairs_of,
                                          std::string& reason) {
  std::vector<DominatingPairs> all;
  std::size_t uppers = 1;
  std::size_t lowers = 1;
  bool exact = true;
  const Slot* in_blocks = SlotInBlocks(slots);
  for (const Slot& slot : slots) {
    all.push_back(pairs_of(slot, &slot == in_blocks, slots.size() == 1));
    if (all.back().upper.empty()) reason = all.back().reason;
    uppers = std::max(uppers, all.back().upper.size());
    lowers = std::max(lowers, all.back().attained().size());
    exact = exact && all.back().exact;
  }
  std::vector<DirectionBounds> directions(std::max(uppers, lowers));
  for (std::size_t d = 0; d < directions.size(); ++d) {
    DirectionBounds& direction = directions[d];
    direction.new_upper = d < uppers;
    direction.new_lower = d < lowers;
    direction.same = exact;
    for (std::size_t i = 0; i < all.size(); ++i) {
      DominatingPairs& pairs = all[i];
      const std::uint64_t count = slots[i].count;
      if (!exact && !pairs.attained().empty()) {
        const std::vector<LossPair>& attained = pairs.attained();
        // Fewer than all releases lose no more.
        const std::uint64_t copies = count / pairs.lower_block;
        if (copies > 0) direction.lower.push_back({attained[d % attained.size()], copies});
      }
      if (pairs.upper.empty()) {
        direction.has_upper = false;
      } else {
        const std::uint64_t copies = count / pairs.block + (count % pairs.block > 0 ? 1 : 0);
        direction.upper.push_back(TakePair(pairs.upper, d, directions.size(), copies));
      }
    }
  }
  return directions;
}

bool HasSingleOptions(const AlternativeSlots& alternatives) {
  return std::all_of(alternatives.upper.begin(), alternatives.upper.end(), [](const Slots& slots) {
    return std::all_of(slots.begin(), slots.end(),
                       [](const Slot& slot) { return slot.options.size() == 1; });
  });
}

bool HasManySlots(const AlternativeSlots& alternatives) {
  constexpr std::size_t kMany = 32;
  return std::any_of(alternatives.upper.begin(), alternatives.upper.end(),
                     [](const Slots& slots) { return slots.size() > kMany; });
}

// The worst over alternatives and directions; `solve` is ComposedEpsilon or ComposedLogDelta. Its
// answers are checked one by one: a lower end above its upper end is a contradiction.
// `choose` is AdaptiveEpsilon or AdaptiveLogDelta.
template <typename Solve, typename Choose>
class WorstCase {
 public:
  WorstCase(const Event& event, double log_delta, Effort effort, Interval nothing, double none,
            Solve solve, Choose choose)
      : alternatives_(AlternativesOf(event)),
        single_(HasSingleOptions(alternatives_)),
        effort_(effort),
        nothing_(nothing),
        solve_(std::move(solve)),
        choose_(std::move(choose)),
        pairs_of_(log_delta, effort, alternatives_.upper.size() > 1 || !single_,
                  HasManySlots(alternatives_)),
        result_{{none, none}, "", ""} {}

  Certified Find() {
    // Quick answers say which of many alternatives matter.
    const bool many = effort_ == Effort::kFull && alternatives_.upper.size() > 1;
    std::vector<double> quick;
    if (many) {
      for (const Slots& slots : alternatives_.upper) quick.push_back(Add(slots, Effort::kQuick));
      const double lower = result_.value.lower;
      result_ = {{lower, nothing_.lower}, "", ""};
    }
    for (std::size_t i = 0; i < alternatives_.upper.size(); ++i) {
      if (many && quick[i] <= result_.value.lower) {
        Raise(quick[i], "quick");
      } else {
        Add(alternatives_.upper[i], effort_);
      }
    }
    if (!single_) RaiseLower();
    if (!alternatives_.choices.empty()) GoThroughChoices();
    if (result_.engine.empty()) result_.engine = "closed form";
    return result_;
  }

 private:
  void Raise(double upper, const std::string& engine) {
    if (result_.engine.empty() || upper > result_.value.upper) result_.engine = engine;
    result_.value.upper = std::max(result_.value.upper, upper);
  }

  // Counts one alternative in; its upper end.
  double Add(const Slots& slots, Effort effort) {
    double worst = nothing_.lower;
    if (slots.empty()) return worst;
    const std::vector<DirectionBounds> directions = DirectionsOf(slots, pairs_of_, result_.reason);
    for (const DirectionBounds& direction : directions) {
      if (!direction.new_upper) continue;
      const bool same = direction.same && single_;
      Answer answer{nothing_, ""};
      if (direction.has_upper) {
        answer = solve_(direction.upper, {result_.value.lower, {true, same}, effort});
        if (!same) answer.value.lower = nothing_.lower;
      }
      result_.value.lower = std::max(result_.value.lower, answer.value.lower);
      worst = std::max(worst, answer.value.upper);
      if (direction.has_upper) {
        Raise(answer.value.upper, answer.engine);
      } else {
        result_.value.upper = std::max(result_.value.upper, answer.value.upper);
      }
    }
    if (single_) AddLower(directions, effort);
    return worst;
  }

  // Of the lower ends of all directions the largest counts. Quick answers say which directions may
  // have it.
  void AddLower(const std::vector<DirectionBounds>& directions, Effort effort) {
    struct Asked {
      const std::vector<CountedPair>* pairs;
      Interval quick;
    };
    std::vector<Asked> asked;
    for (const DirectionBounds& one : directions) {
      const bool own = !one.same || !one.has_upper;
      if (own && one.new_lower && !one.attained().empty())
        asked.push_back({&one.attained(), nothing_});
    }
    const auto raise = [&](double lower) {
      result_.value.lower = std::max(result_.value.lower, lower);
    };
    const bool full = effort == Effort::kFull;
    bool proven = true;
    for (Asked& one : asked) {
      if (asked.size() == 1 && full) break;
      // Of many pairs some are enough to compare by, and then nothing is proven.
      const bool some = full && one.pairs->size() > kManyLowers;
      const Question quick{nothing_.lower, {full && !some, true}, Effort::kQuick};
      one.quick = solve_(some ? Thinned(*one.pairs, kManyLowers) : *one.pairs, quick).value;
      proven = proven && !some;
      if (!some) raise(one.quick.lower);
    }
    if (!full) return;
    std::stable_sort(asked.begin(), asked.end(),
                     [](const Asked& a, const Asked& b) { return a.quick.lower > b.quick.lower; });
    bool first = true;
    for (const Asked& one : asked) {
      if (!first && (!proven || one.quick.upper <= result_.value.lower)) continue;
      first = false;
      raise(solve_(*one.pairs, {nothing_.lower, {false, true}, effort}).value.lower);
    }
  }

  // Of what can happen the worst, as far as quick answers tell, is looked at closely.
  void RaiseLower() {
    std::string unused;
    const auto lower_of = [&](const Slots& slots, Effort effort) {
      double lower = nothing_.lower;
      if (slots.empty()) return lower;
      for (const DirectionBounds& direction : DirectionsOf(slots, pairs_of_, unused)) {
        if (direction.attained().empty()) continue;
        const Question question{result_.value.lower, {false, true}, effort};
        lower = std::max(lower, solve_(direction.attained(), question).value.lower);
      }
      result_.value.lower = std::max(result_.value.lower, lower);
      return lower;
    };
    const Slots* worst = nullptr;
    double most = -kInfinity;
    for (const Slots& slots : alternatives_.lower) {
      const double lower = lower_of(slots, Effort::kQuick);
      if (worst != nullptr && lower <= most) continue;
      worst = &slots;
      most = lower;
    }
    if (worst != nullptr && effort_ == Effort::kFull) lower_of(*worst, effort_);
  }

  // Both ends of the best adaptive choice, where the steps are few.
  void GoThroughChoices() {
    const Interval& known = result_.value;
    if (known.upper - known.lower <= kNarrowChoice * std::abs(known.upper)) return;
    for (const Bound bound : {Bound::kUpper, Bound::kLower}) {
      const bool upper = bound == Bound::kUpper;
      double worst = nothing_.lower;
      std::size_t directions = 1;
      for (std::size_t d = 0; d < directions; ++d) {
        const auto composition = CompositionOf(alternatives_, bound, d, pairs_of_, directions);
        worst = std::max(worst, composition ? choose_(*composition, bound, result_.value, effort_)
                                            : (upper ? nothing_.upper : nothing_.lower));
        if (upper && worst >= result_.value.upper) break;
      }
      if (!upper) {
        result_.value.lower = std::max(result_.value.lower, worst);
      } else if (worst < result_.value.upper) {
        result_.value.upper = worst;
        result_.engine = "choice";
      }
    }
  }

  static constexpr std::size_t kManyLowers = 200;
  // An interval that is narrower needs no closer look.
  static constexpr double kNarrowChoice = 5e-4;

  AlternativeSlots alternatives_;
  bool single_;  // the alternatives are the same for both ends
  Effort effort_;
  Interval nothing_;
  Solve solve_;
  Choose choose_;
  PairsOfSlots pairs_of_;
  Certified result_;
};

// A parallel event that stands alone costs its worst part; a part with choices of its own is a
// question by itself.
bool HasPartsWithChoices(const Event& event) {
  if (!event.IsParallel()) return false;
  return std::any_of(event.children().begin(), event.children().end(), [](const auto& part) {
    const auto& inner = part.first.children();
    return part.first.IsParallel() ? HasPartsWithChoices(part.first)
                                   : std::any_of(inner.begin(), inner.end(), [](const auto& one) {
                                       return one.first.IsParallel();
                                     });
  });
}

// The largest over the parts, each answered by `answer`.
template <typename Answer>
Certified WorstPart(const Event& event, Answer answer) {
  Certified worst{{-kInfinity, -kInfinity}, "closed form", ""};
  for (const auto& [part, once] : event.children()) {
    const Certified one = answer(part);
    worst.value.lower = std::max(worst.value.lower, one.value.lower);
    if (one.value.upper < worst.value.upper) continue;
    worst.value.upper = one.value.upper;
    worst.engine = one.engine;
    worst.reason = one.reason;
  }
  return worst;
}

// A quick answer that is narrower is enough for a composition that takes long.
constexpr double kNarrowQuick = 5e-4;

std::string NoUpperEnd(const Event& event, bool pure) {
  if (pure) return "delta is 0, and the loss of this mechanism is not bounded";
  if (const std::string_view reason = ReasonOfUse(event); !reason.empty()) {
    return std::string(reason);
  }
  return "delta is below the chance that the mechanism gives the record away, or the composition "
         "is beyond the engines";
}

}  // namespace

Certified CertifiedEpsilon(const Event& event, double log_delta, Effort effort) {
  if (log_delta >= 0) return {{0, 0}, "closed form", ""};
  // Pairs that depend on their use take long, and coarse ones are better for some questions.
  std::optional<Certified> quick;
  if (effort == Effort::kFull && log_delta > -kInfinity && !ReasonOfUse(event).empty()) {
    quick = CertifiedEpsilon(event, log_delta, Effort::kQuick);
    const Interval& value = quick->value;
    const bool narrow = value.upper - value.lower <= kNarrowQuick * value.upper;
    if (std::isinf(value.lower) || (narrow && event.Flatten().size() > 1)) return *quick;
  }
  if (HasPartsWithChoices(event)) {
    return WorstPart(event,
                     [&](const Event& part) { return CertifiedEpsilon(part, log_delta, effort); });
  }
  const auto solve = [&](const std::vector<CountedPair>& pairs, const Question& question) {
    return ComposedEpsilon(pairs, log_delta, question);
  };
  const auto choose = [&](const AdaptiveComposition& composition, Bound bound, Interval known,
                          Effort at_effort) {
    return AdaptiveEpsilon(composition, log_delta, known, bound, at_effort);
  };
  const auto worst = [&](const Event& one) {
    return WorstCase(one, log_delta, effort, {0, kInfinity}, 0, solve, choose);
  };
  const bool pure = log_delta == -kInfinity;
  const auto coarse = pure ? std::nullopt : CoarseSchedule::Of(event);
  Certified result = worst(coarse ? coarse->less_private : event).Find();
  if (coarse) result.value.lower = worst(coarse->more_private).Find().value.lower;
  if (quick) {
    result.value.lower = std::max(result.value.lower, quick->value.lower);
    result.value.upper = std::min(result.value.upper, quick->value.upper);
  }
  result.value.lower = std::max(0.0, result.value.lower);
  result.value.upper = std::max(0.0, result.value.upper);
  result.value.lower = ConsistentLower(
      result.value, {"the lower end of pld", "the upper end of pld"}, event.ToString());
  if (std::isinf(result.value.upper) && result.reason.empty()) {
    result.reason = NoUpperEnd(event, pure);
  }
  return result;
}

Certified CertifiedLogDelta(const Event& event, double epsilon, Effort effort) {
  if (HasPartsWithChoices(event)) {
    return WorstPart(event,
                     [&](const Event& part) { return CertifiedLogDelta(part, epsilon, effort); });
  }
  const auto solve = [&](const std::vector<CountedPair>& pairs, const Question& question) {
    return ComposedLogDelta(pairs, epsilon, question);
  };
  const auto choose = [&](const AdaptiveComposition& composition, Bound bound, Interval known,
                          Effort at_effort) {
    const double guess = known.upper < 0 ? known.upper : known.lower;
    return AdaptiveLogDelta(composition, epsilon, guess, bound, at_effort);
  };
  const auto worst = [&](const Event& one, double guess, Effort at_effort) {
    return WorstCase(one, guess, at_effort, {-kInfinity, 0}, -kInfinity, solve, choose);
  };
  const auto coarse = CoarseSchedule::Of(event);
  const auto at = [&](double guess, Effort at_effort) {
    Certified found = worst(coarse ? coarse->less_private : event, guess, at_effort).Find();
    if (coarse)
      found.value.lower = worst(coarse->more_private, guess, at_effort).Find().value.lower;
    return found;
  };
  double guess = PairUse().log_delta;
  // Pairs that were made for the guess deserve wider ranges where the answer is much smaller. Quick
  // answers say whether it is.
  constexpr int kMaxGuesses = 3;
  double last = guess;
  const bool depends = !ReasonOfUse(event).empty();
  bool known = !depends;
  for (int round = 0; round < kMaxGuesses && depends; ++round) {
    const double upper = at(guess, Effort::kQuick).value.upper;
    if (known && !(upper < 0)) {
      // Ranges that are too wide say nothing.
      guess = last;
      break;
    }
    known = known || upper < 0;
    if (!(upper < guess + 1)) break;
    last = guess;
    guess = std::max(upper - 4, -650.0);
  }
  Certified result = at(guess, effort);
  if (!known && result.value.upper < guess + 1) {
    const Certified next = at(std::max(result.value.upper - 4, -650.0), effort);
    result.value.upper = std::min(next.value.upper, result.value.upper);
    result.value.lower = std::max(next.value.lower, result.value.lower);
  }
  result.value.upper = std::min(0.0, result.value.upper);
  result.value.lower = ConsistentLogLower(
      result.value, {"the lower end of pld", "the upper end of pld"}, event.ToString());
  return result;
}

}  // namespace sordino
