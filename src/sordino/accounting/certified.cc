// CertifiedEpsilon and CertifiedLogDelta: which engine answers which composition.
#include <algorithm>
#include <cmath>
#include <optional>
#include <span>

#include "sordino/accounting/accountant.h"
#include "sordino/accounting/alternatives.h"
#include "sordino/accounting/contour.h"
#include "sordino/accounting/contradiction.h"
#include "sordino/accounting/dominating_pair.h"
#include "sordino/accounting/envelope.h"
#include "sordino/accounting/exact_release.h"
#include "sordino/accounting/gaussian.h"
#include "sordino/accounting/grid.h"
#include "sordino/accounting/renyi.h"
#include "sordino/accounting/smoothed_contour.h"

namespace sordino {
namespace {

// A contour interval that is narrower than this (relative) is not tried again on the grid.
constexpr double kNarrow = 1e-3;
// The grid is very exact for short questions, and slow for long ones: there it is asked only about
// what is left open, an epsilon far below the losses of a single step.
constexpr std::size_t kMostGridPairs = 2;
constexpr double kMostGridSteps = 64;
constexpr double kShortNarrow = 1e-5;
// Closed forms are exact to about 1e-13.
constexpr double kClosedFormError = 1e-12;

// One direction of the adjacency of one alternative.
struct Direction {
  std::vector<CountedPair> upper;
  std::vector<CountedPair> lower;
  bool same = true;       // upper and lower are the same pairs
  bool has_upper = true;  // every release has a dominating pair
};

// The pairs of a slot: those of its release, or the envelope of what it may hold.
DominatingPairs PairsOf(const Slot& slot, double log_delta) {
  const PairUse use{log_delta, slot.count};
  if (slot.options.size() == 1) return DominatingPairsOf(slot.options.front(), use);
  std::vector<DominatingPairs> all;
  std::size_t most = 1;
  for (const Event& option : slot.options) {
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

std::vector<Direction> DirectionsOf(const Slots& slots, double log_delta, std::string& reason) {
  std::vector<DominatingPairs> all;
  std::size_t most = 1;
  for (const Slot& slot : slots) {
    all.push_back(PairsOf(slot, log_delta));
    if (all.back().upper.empty()) reason = all.back().reason;
    most = std::max({most, all.back().upper.size(), all.back().lower.size()});
  }
  std::vector<Direction> directions(most);
  for (std::size_t d = 0; d < most; ++d) {
    Direction& direction = directions[d];
    for (std::size_t i = 0; i < all.size(); ++i) {
      const DominatingPairs& pairs = all[i];
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

struct Shape {
  bool only_gaussian = true;  // apart from mass at infinity
  bool single = false;        // one release, once
  double mu2 = 0;
  double log_survival = 0;
  double largest_loss = 0;  // of the composition
};

Shape ShapeOf(const std::vector<CountedPair>& pairs) {
  Shape shape;
  for (const CountedPair& p : pairs) {
    const auto count = static_cast<double>(p.count);
    if (!p.pair.atoms.empty() || !p.pair.pieces.empty()) shape.only_gaussian = false;
    shape.mu2 += count * p.pair.gaussian_mu * p.pair.gaussian_mu;
    shape.log_survival += count * std::log1p(-p.pair.infinite_mass);
    shape.largest_loss += count * LargestLoss(p.pair);
  }
  shape.single = pairs.size() == 1 && pairs[0].count == 1 && shape.mu2 == 0;
  return shape;
}

// What is left of delta for the finite part of the loss.
double FinitePart(double log_delta, double log_survival) {
  if (log_survival == 0) return log_delta;
  const double share = -std::expm1(log_survival) * std::exp(-log_delta);
  return share < 1 ? log_delta + std::log1p(-share) : -kInfinity;
}

bool IsShort(const std::vector<CountedPair>& pairs) {
  double steps = 0;
  for (const CountedPair& p : pairs) steps += static_cast<double>(p.count);
  return pairs.size() <= kMostGridPairs && steps <= kMostGridSteps;
}

bool HasLattice(const std::vector<CountedPair>& pairs) {
  return std::any_of(pairs.begin(), pairs.end(),
                     [](const CountedPair& p) { return p.pair.on_lattice; });
}

// Whether a lattice that the grid cannot keep would be rounded down often.
bool HasLongLattice(const std::vector<CountedPair>& pairs) {
  constexpr std::uint64_t kOften = 30;
  return std::any_of(pairs.begin(), pairs.end(),
                     [](const CountedPair& p) { return p.pair.on_lattice && p.count > kOften; });
}

// The expected number of steps that a record takes part in, where all are sampled densities;
// infinity where that says nothing.
double ExpectedHits(const std::vector<CountedPair>& pairs) {
  double hits = 0;
  for (const CountedPair& p : pairs) {
    if (p.pair.pieces.size() != 1) return kInfinity;
    const auto* mixture =
        dynamic_cast<const GaussianMixtureDensity*>(p.pair.pieces.front().density.get());
    if (mixture == nullptr) return kInfinity;
    hits += static_cast<double>(p.count) * mixture->HitProbability();
  }
  return hits;
}

// The contour wants many steps that count: sparse schedules would only cost it time.
bool FitsContour(const std::vector<CountedPair>& pairs) {
  constexpr std::size_t kManyPairs = 16;
  constexpr double kFewHits = 40;
  return pairs.size() <= kManyPairs || ExpectedHits(pairs) >= kFewHits;
}

struct Answer {
  Interval value;
  std::string engine;
};

// A loss, or an epsilon found by bisection between losses, is the rounded value of a formula of a
// few operations. Zero is exact.
Interval Outward(double epsilon) {
  constexpr double kFormulaRounding = 0x1p-49;
  return {epsilon * (1 - kFormulaRounding), epsilon * (1 + kFormulaRounding)};
}

// delta(0) of a composition is at most the sum of those of its releases: where that is within
// delta, epsilon is 0 and nothing needs to be resolved.
bool NothingToTell(const std::vector<CountedPair>& pairs, double log_delta) {
  constexpr std::size_t kFew = 16;
  if (pairs.size() > kFew) return false;
  double total = 0;
  for (const CountedPair& p : pairs) {
    const double one = std::exp(ExactLogDelta(p.pair, 0) + kExactReleaseError - log_delta);
    total += static_cast<double>(p.count) * one;
    if (total > 1) return false;
  }
  return true;
}

// `known_lower` is what another direction has already proven: a direction that stays below it needs
// no more than a quick bound.
Answer EpsilonOf(const std::vector<CountedPair>& pairs, double log_delta, double known_lower,
                 bool want_upper, bool want_lower) {
  const Shape shape = ShapeOf(pairs);
  if (log_delta == -kInfinity) {
    // A pure guarantee is the number that was given; any other loss was computed.
    const bool given = pairs.size() == 1 && pairs[0].count == 1 && pairs[0].pair.given_losses;
    if (given) return {{shape.largest_loss, shape.largest_loss}, "exact"};
    return {Outward(shape.largest_loss), "exact"};
  }
  if (shape.only_gaussian) {
    // delta = infinite + survival * (the Gaussian's delta).
    const double target = FinitePart(log_delta, shape.log_survival) - shape.log_survival;
    if (target == -kInfinity) return {{kInfinity, kInfinity}, "closed form"};
    if (shape.mu2 == 0) return {{0, 0}, "closed form"};
    const double epsilon = GaussianEpsilon(std::sqrt(shape.mu2), target);
    return {{epsilon * (1 - kClosedFormError), epsilon * (1 + kClosedFormError)}, "closed form"};
  }
  if (shape.single) {
    return {{Outward(ExactEpsilon(pairs[0].pair, log_delta + kExactReleaseError)).lower,
             Outward(ExactEpsilon(pairs[0].pair, log_delta - kExactReleaseError)).upper},
            "exact"};
  }
  if (NothingToTell(pairs, log_delta)) return {{0, 0}, "exact"};
  if (known_lower > 0) {
    const double quick =
        std::min(shape.largest_loss * (1 + kClosedFormError), ChernoffEpsilon(pairs, log_delta));
    if (quick <= known_lower) return {{0, quick}, "quick"};
  }
  Answer answer{{0, kInfinity}, "contour"};
  const auto wide = [&] {
    // The contour bounds both ends at once; the other engines tell nothing of the end that is not
    // wanted.
    const bool both = answer.engine == "contour";
    if (!want_lower && !both) return std::isinf(answer.value.upper);
    if (!want_upper && !both) return answer.value.lower == 0;
    return std::isinf(answer.value.upper) ||
           answer.value.upper - answer.value.lower > kNarrow * answer.value.upper;
  };
  const auto use = [&](Interval found, const char* engine) {
    // Two engines bound the same number.
    ConsistentLower({found.lower, answer.value.upper}, {engine, answer.engine}, "a composition");
    ConsistentLower({answer.value.lower, found.upper}, {answer.engine, engine}, "a composition");
    if (found.upper < answer.value.upper || found.lower > answer.value.lower) {
      answer.engine = engine;
    }
    answer.value.upper = std::min(answer.value.upper, found.upper);
    answer.value.lower = std::max(answer.value.lower, found.lower);
  };
  if (FitsContour(pairs)) {
    answer.value = ContourEpsilon(pairs, log_delta).value_or(Interval{0, kInfinity});
  }
  const bool lattice = wide() && HasLattice(pairs);
  if (wide()) use(SmoothedEpsilon(pairs, log_delta, {want_upper, want_lower}), "smoothed");
  const double gap = answer.value.upper - answer.value.lower;
  const bool loose = std::isinf(gap) || gap > kShortNarrow * answer.value.upper;
  const bool open = want_upper && want_lower && pairs.size() <= kMostGridPairs && wide();
  if (lattice || open || (IsShort(pairs) && (wide() || loose))) {
    if (want_upper) use({0, GridEpsilon(pairs, log_delta, Bound::kUpper)}, "grid");
    if (want_lower) use({GridEpsilon(pairs, log_delta, Bound::kLower), kInfinity}, "grid");
    if (want_lower && lattice && HasLongLattice(pairs)) {
      use({GridEpsilon(pairs, log_delta, Bound::kSpread), kInfinity}, "grid");
    }
  }
  // Some release alone loses no more than all of them.
  if (want_lower && answer.value.lower < 0.5 * answer.value.upper) {
    for (std::size_t i = 0; i < std::min<std::size_t>(pairs.size(), 8); ++i) {
      answer.value.lower =
          std::max(answer.value.lower,
                   Outward(ExactEpsilon(pairs[i].pair, log_delta + kExactReleaseError)).lower);
    }
  }
  // Rounding of the largest loss itself is covered by the factor.
  answer.value.upper = std::min(answer.value.upper, shape.largest_loss * (1 + kClosedFormError));
  return answer;
}

Answer LogDeltaOf(const std::vector<CountedPair>& pairs, double epsilon, double known_lower,
                  bool want_upper, bool want_lower) {
  const Shape shape = ShapeOf(pairs);
  const double infinite = -std::expm1(shape.log_survival);
  if (shape.only_gaussian) {
    const double finite =
        shape.mu2 > 0 ? GaussianLogDelta(std::sqrt(shape.mu2), epsilon) : -kInfinity;
    const double error = kClosedFormError +
                         (shape.mu2 > 0 ? GaussianLogDeltaError(std::sqrt(shape.mu2), epsilon) : 0);
    if (infinite == 0) return {{finite - error, finite + error}, "closed form"};
    const double sum = infinite + (1 - infinite) * std::exp(finite);
    return {{std::log(sum) - error, std::log(sum) + error}, "closed form"};
  }
  if (shape.single) {
    const double log_delta = ExactLogDelta(pairs[0].pair, epsilon);
    return {{log_delta - kExactReleaseError, log_delta + kExactReleaseError}, "exact"};
  }
  if (epsilon >= shape.largest_loss * (1 + kClosedFormError)) {
    return {{-kInfinity, -kInfinity}, "exact"};
  }
  if (known_lower > -kInfinity) {
    const double quick = ChernoffLogDelta(pairs, epsilon);
    if (quick <= known_lower) return {{-kInfinity, quick}, "quick"};
  }
  Answer answer{{-kInfinity, 0}, "contour"};
  const auto wide = [&] {
    if (!want_lower) return answer.value.upper == 0;
    if (!want_upper) return std::isinf(answer.value.lower);
    return !(answer.value.upper - answer.value.lower <= kNarrow);
  };
  const auto use = [&](Interval found, const char* engine) {
    ConsistentLogLower({found.lower, answer.value.upper}, {engine, answer.engine}, "a composition");
    ConsistentLogLower({answer.value.lower, found.upper}, {answer.engine, engine}, "a composition");
    if (found.upper < answer.value.upper || found.lower > answer.value.lower) {
      answer.engine = engine;
    }
    answer.value.upper = std::min(answer.value.upper, found.upper);
    answer.value.lower = std::max(answer.value.lower, found.lower);
  };
  if (FitsContour(pairs)) {
    answer.value = ContourLogDelta(pairs, epsilon).value_or(Interval{-kInfinity, 0});
  }
  const bool lattice = wide() && HasLattice(pairs);
  if (wide()) use(SmoothedLogDelta(pairs, epsilon, {want_upper, want_lower}), "smoothed");
  const bool loose = answer.value.upper - answer.value.lower > kShortNarrow;
  if (lattice || (IsShort(pairs) && (wide() || loose))) {
    if (want_upper) use({-kInfinity, GridLogDelta(pairs, epsilon, Bound::kUpper)}, "grid");
    if (want_lower) use({GridLogDelta(pairs, epsilon, Bound::kLower), 0}, "grid");
    if (want_lower && lattice && HasLongLattice(pairs)) {
      use({GridLogDelta(pairs, epsilon, Bound::kSpread), 0}, "grid");
    }
  }
  return answer;
}

// The worst over alternatives and directions; `solve` is EpsilonOf or LogDeltaOf. Its answers are
// checked one by one: a lower end above its upper end is a contradiction.
template <typename Solve>
Certified Worst(const Event& event, double log_delta, Interval nothing, double none, Solve solve) {
  Certified result{{none, none}, "", ""};
  const AlternativeSlots alternatives = AlternativesOf(event);
  bool single = true;  // the alternatives are the same for both ends
  for (const Slots& slots : alternatives.upper) {
    for (const Slot& slot : slots) single = single && slot.options.size() == 1;
  }
  for (const Slots& slots : alternatives.upper) {
    if (slots.empty()) continue;
    for (const Direction& direction : DirectionsOf(slots, log_delta, result.reason)) {
      Interval value = nothing;
      if (direction.has_upper) {
        const bool same = direction.same && single;
        const Answer answer = solve(direction.upper, result.value.lower, true, same);
        value.upper = answer.value.upper;
        if (same) value.lower = answer.value.lower;
        if (result.engine.empty() || answer.value.upper > result.value.upper) {
          result.engine = answer.engine;
        }
      }
      if (single && (!direction.same || !direction.has_upper) && !direction.lower.empty()) {
        value.lower = solve(direction.lower, result.value.lower, false, true).value.lower;
      }
      result.value.lower = std::max(result.value.lower, value.lower);
      result.value.upper = std::max(result.value.upper, value.upper);
    }
  }
  if (!single) {
    std::string unused;
    for (const Slots& slots : alternatives.lower) {
      if (slots.empty()) continue;
      for (const Direction& direction : DirectionsOf(slots, log_delta, unused)) {
        if (direction.lower.empty()) continue;
        const Answer answer = solve(direction.lower, result.value.lower, false, true);
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

Certified CertifiedEpsilon(const Event& event, double log_delta) {
  if (log_delta >= 0) return {{0, 0}, "closed form", ""};
  if (const std::optional<CoarseSchedule> coarse = CoarseSchedule::Of(event)) {
    Certified upper = CertifiedEpsilon(coarse->less_private, log_delta);
    upper.value.lower = CertifiedEpsilon(coarse->more_private, log_delta).value.lower;
    return upper;
  }
  Certified result =
      Worst(event, log_delta, {0, kInfinity}, 0,
            [&](const std::vector<CountedPair>& pairs, double known, bool upper, bool lower) {
              return EpsilonOf(pairs, log_delta, known, upper, lower);
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

Certified CertifiedLogDelta(const Event& event, double epsilon) {
  if (const std::optional<CoarseSchedule> coarse = CoarseSchedule::Of(event)) {
    Certified upper = CertifiedLogDelta(coarse->less_private, epsilon);
    upper.value.lower = CertifiedLogDelta(coarse->more_private, epsilon).value.lower;
    return upper;
  }
  const auto at = [&](double guess) {
    return Worst(event, guess, {-kInfinity, 0}, -kInfinity,
                 [&](const std::vector<CountedPair>& pairs, double known, bool upper, bool lower) {
                   return LogDeltaOf(pairs, epsilon, known, upper, lower);
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
