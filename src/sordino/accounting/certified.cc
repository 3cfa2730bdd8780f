// CertifiedEpsilon and CertifiedLogDelta: the worst over what a record can meet, in every direction
// of the adjacency.
#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sordino/accounting/accountant.h"
#include "sordino/accounting/alternatives.h"
#include "sordino/accounting/contradiction.h"
#include "sordino/accounting/dominating_pair.h"
#include "sordino/accounting/engines.h"
#include "sordino/accounting/envelope.h"
#include "sordino/accounting/renyi.h"

namespace sordino {
namespace {

// One direction of the adjacency of one alternative.
struct Direction {
  std::vector<CountedPair> upper;
  std::vector<CountedPair> lower;
  bool same = true;       // upper and lower are the same pairs
  bool has_upper = true;  // every release has a dominating pair
};

// The pairs of slots: those of the release, or the envelope of what the slot may hold. Alternatives
// share most of their slots, so that pairs are kept.
class PairsOfSlots {
 public:
  // With `shared`, pairs for nearly the same count count as the same: it decides their ranges only.
  PairsOfSlots(double log_delta, Effort effort, bool shared)
      : log_delta_(log_delta), effort_(effort), shared_(shared) {}

  const DominatingPairs& operator()(const Slot& slot) {
    const std::uint64_t count =
        shared_ && slot.count <= kMostShared ? std::bit_ceil(slot.count) : slot.count;
    std::string key = std::to_string(count);
    for (const Event& option : slot.options) key += option.ToString();
    const auto [found, is_new] = known_.try_emplace(std::move(key));
    if (is_new) found->second = Make(slot.options, {log_delta_, count, effort_});
    return found->second;
  }

 private:
  static constexpr std::uint64_t kMostShared = std::uint64_t{1} << 62;

  static DominatingPairs Make(const std::vector<Event>& options, const PairUse& use) {
    if (options.size() == 1) return DominatingPairsOf(options.front(), use);
    std::vector<DominatingPairs> all;
    std::size_t most = 1;
    for (const Event& option : options) {
      all.push_back(DominatingPairsOf(option, use));
      if (all.back().upper.empty()) return {{}, {}, all.back().reason, false};
      most = std::max(most, all.back().upper.size());
    }
    DominatingPairs envelopes;
    for (std::size_t d = 0; d < most; ++d) {
      std::vector<LossPair> direction;
      for (const DominatingPairs& one : all) direction.push_back(one.upper[d % one.upper.size()]);
      envelopes.upper.push_back(EnvelopeOf(direction));
    }
    return envelopes;
  }

  double log_delta_;
  Effort effort_;
  bool shared_;
  std::unordered_map<std::string, DominatingPairs> known_;
};

std::vector<Direction> DirectionsOf(const Slots& slots, PairsOfSlots& pairs_of,
                                    std::string& reason) {
  std::vector<const DominatingPairs*> all;
  std::size_t most = 1;
  for (const Slot& slot : slots) {
    all.push_back(&pairs_of(slot));
    if (all.back()->upper.empty()) reason = all.back()->reason;
    most = std::max({most, all.back()->upper.size(), all.back()->lower.size()});
  }
  std::vector<Direction> directions(most);
  for (std::size_t d = 0; d < most; ++d) {
    Direction& direction = directions[d];
    for (std::size_t i = 0; i < all.size(); ++i) {
      const DominatingPairs& pairs = *all[i];
      const std::uint64_t count = slots[i].count;
      if (pairs.upper.empty()) {
        direction.has_upper = false;
      } else {
        direction.upper.push_back({pairs.upper[d % pairs.upper.size()], count});
      }
      if (!pairs.lower.empty()) {
        direction.lower.push_back({pairs.lower[d % pairs.lower.size()], count});
      }
      direction.same = direction.same && pairs.exact;
    }
  }
  return directions;
}

// The worst over alternatives and directions; `solve` is ComposedEpsilon or ComposedLogDelta. Its
// answers are checked one by one: a lower end above its upper end is a contradiction.
template <typename Solve>
Certified Worst(const Event& event, double log_delta, Effort effort, Interval nothing, double none,
                Solve solve) {
  Certified result{{none, none}, "", ""};
  const AlternativeSlots alternatives = AlternativesOf(event);
  PairsOfSlots pairs_of(log_delta, effort, alternatives.upper.size() > 1);
  bool single = true;  // the alternatives are the same for both ends
  for (const Slots& slots : alternatives.upper) {
    for (const Slot& slot : slots) single = single && slot.options.size() == 1;
  }
  for (const Slots& slots : alternatives.upper) {
    if (slots.empty()) continue;
    for (const Direction& direction : DirectionsOf(slots, pairs_of, result.reason)) {
      Interval value = nothing;
      if (direction.has_upper) {
        const bool same = direction.same && single;
        const Answer answer = solve(direction.upper, {result.value.lower, {true, same}, effort});
        value.upper = answer.value.upper;
        if (same) value.lower = answer.value.lower;
        if (result.engine.empty() || answer.value.upper > result.value.upper) {
          result.engine = answer.engine;
        }
      }
      if (single && (!direction.same || !direction.has_upper) && !direction.lower.empty()) {
        value.lower =
            solve(direction.lower, {result.value.lower, {false, true}, effort}).value.lower;
      }
      result.value.lower = std::max(result.value.lower, value.lower);
      result.value.upper = std::max(result.value.upper, value.upper);
    }
  }
  if (!single) {
    std::string unused;
    for (const Slots& slots : alternatives.lower) {
      if (slots.empty()) continue;
      for (const Direction& direction : DirectionsOf(slots, pairs_of, unused)) {
        if (direction.lower.empty()) continue;
        const Answer answer = solve(direction.lower, {result.value.lower, {false, true}, effort});
        result.value.lower = std::max(result.value.lower, answer.value.lower);
      }
    }
  }
  if (result.engine.empty()) result.engine = "closed form";
  return result;
}

// A long schedule of sparsely sampled Gaussians, rounded to fewer different steps from both sides.
struct CoarseSchedule {
  Event less_private;
  Event more_private;

  // nullopt for a schedule that is short, or dense enough for the contour, as most are.
  static std::optional<CoarseSchedule> Of(const Event& event) {
    constexpr std::size_t kMostLines = 300;
    constexpr double kFewHits = 40;
    if (event.children().size() <= kMostLines) return std::nullopt;
    double hits = 0;
    for (const auto& [step, count] : event.children()) {
      const bool sampled = step.kind() == Event::Kind::kPoisson &&
                           step.children()[0].first.kind() == Event::Kind::kGaussian;
      if (!sampled) return std::nullopt;
      hits += static_cast<double>(count) * step.numbers()[0];
    }
    if (hits >= kFewHits) return std::nullopt;
    double per_e = 4096;
    Event coarse = CoarsenNoise(event, per_e, Coarsening::kLessPrivate);
    while (coarse.children().size() > kMostLines && per_e > 1) {
      per_e *= 0.7;
      coarse = CoarsenNoise(event, per_e, Coarsening::kLessPrivate);
    }
    if (coarse.children().size() > kMostLines) return std::nullopt;
    return CoarseSchedule{coarse, CoarsenNoise(event, per_e, Coarsening::kMorePrivate)};
  }
};

}  // namespace

Certified CertifiedEpsilon(const Event& event, double log_delta, Effort effort) {
  if (log_delta >= 0) return {{0, 0}, "closed form", ""};
  if (const std::optional<CoarseSchedule> coarse = CoarseSchedule::Of(event)) {
    Certified upper = CertifiedEpsilon(coarse->less_private, log_delta, effort);
    upper.value.lower = CertifiedEpsilon(coarse->more_private, log_delta, effort).value.lower;
    return upper;
  }
  Certified result = Worst(event, log_delta, effort, {0, kInfinity}, 0,
                           [&](const std::vector<CountedPair>& pairs, const Question& question) {
                             return ComposedEpsilon(pairs, log_delta, question);
                           });
  result.value.lower = std::max(0.0, result.value.lower);
  result.value.upper = std::max(0.0, result.value.upper);
  result.value.lower = ConsistentLower(
      result.value, {"the lower end of pld", "the upper end of pld"}, event.ToString());
  if (std::isinf(result.value.upper) && result.reason.empty()) {
    result.reason = log_delta == -kInfinity
                        ? "delta is 0, and the loss of this mechanism is not bounded"
                        : "delta is below the chance that the mechanism gives the record away, or "
                          "the composition is beyond the engines";
  }
  return result;
}

Certified CertifiedLogDelta(const Event& event, double epsilon, Effort effort) {
  if (const std::optional<CoarseSchedule> coarse = CoarseSchedule::Of(event)) {
    Certified upper = CertifiedLogDelta(coarse->less_private, epsilon, effort);
    upper.value.lower = CertifiedLogDelta(coarse->more_private, epsilon, effort).value.lower;
    return upper;
  }
  const auto at = [&](double guess) {
    return Worst(event, guess, effort, {-kInfinity, 0}, -kInfinity,
                 [&](const std::vector<CountedPair>& pairs, const Question& question) {
                   return ComposedLogDelta(pairs, epsilon, question);
                 });
  };
  double guess = PairUse().log_delta;
  Certified result = at(guess);
  // Pairs that were made for the guess deserve wider ranges where the answer is much smaller.
  for (int round = 0; round < 2 && DependsOnUse(event) && result.value.upper < guess + 1; ++round) {
    guess = std::max(result.value.upper - 4, -650.0);
    Certified next = at(guess);
    next.value.upper = std::min(next.value.upper, result.value.upper);
    next.value.lower = std::max(next.value.lower, result.value.lower);
    result = next;
  }
  result.value.upper = std::min(0.0, result.value.upper);
  result.value.lower = ConsistentLogLower(
      result.value, {"the lower end of pld", "the upper end of pld"}, event.ToString());
  return result;
}

}  // namespace sordino
