// Which engine answers a composition: epsilon.
#include "sordino/accounting/internal/engines/engines.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "sordino/accounting/gaussian.h"
#include "sordino/accounting/internal/atoms/atom_composition.h"
#include "sordino/accounting/internal/engines/contradiction.h"
#include "sordino/accounting/internal/engines/engine_choice.h"
#include "sordino/accounting/internal/engines/enumerated.h"
#include "sordino/accounting/internal/engines/exact_release.h"
#include "sordino/accounting/internal/grid/grid.h"
#include "sordino/accounting/internal/grid/tail_split.h"

namespace sordino {
namespace {

// A quick upper end is narrowed, by splits around it, while it falls by this factor.
constexpr double kFalls = 0.9;
// For which epsilons a split is made, over what is known of epsilon: the lower, the smaller the
// losses that are left to resolve.
constexpr double kSplitAhead = 1.2;
constexpr std::size_t kMaxThinned = 400;
// An interval with less than this ratio of its ends is asked about again without a split.
constexpr double kOpen = 0.97;
// How often the split of rare large losses is moved.
constexpr int kMaxSplits = 4;
constexpr double kLogTinySplitDelta = -45;

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

// The engines asked one after the other for an epsilon, until the interval is narrow.
class EpsilonSearch {
 public:
  EpsilonSearch(const std::vector<CountedPair>& pairs, double log_delta, const Question& question)
      : pairs_(pairs), log_delta_(log_delta), question_(question) {}

  Answer Run() {
    if (FitsContour(pairs_)) {
      answer_.value = ContourEpsilon(pairs_, log_delta_).value_or(Interval{0, kInfinity});
    }
    if (SharesLists(pairs_)) return Wide() ? RunMany() : answer_;
    const bool lattice = Wide() && HasLattice(pairs_);
    // The grid does short questions best, and splits do sparse ones; both want to know where.
    const bool is_short = IsShort(pairs_) && !lattice && HasDensity(pairs_);
    const bool first_guess = is_short || (Few() && TailSplit::At(pairs_, 1));
    if (Wide()) AskSmoothed(first_guess ? Effort::kQuick : effort());
    if (lattice) {
      AskGrid();
      if (wanted().lower && HasLongLattice(pairs_)) UseGrid(Bound::kSpread);
    } else if (Wide() || (is_short && Loose())) {
      if (NothingToTellAtZero()) return {{0, 0}, "smoothed"};
      const bool open = wanted().upper && wanted().lower && Few();
      if (!AskSplits() && (open || is_short)) AskGrid();
      if (first_guess && Wide()) AskSmoothed(effort());
    }
    return answer_;
  }

 private:
  const WantedEnds& wanted() const { return question_.wanted; }
  Effort effort() const { return question_.effort; }
  bool Few() const { return pairs_.size() <= kMaxGridPairs; }

  bool Wide() const {
    const Interval& value = answer_.value;
    // The contour bounds both ends at once; the other engines tell nothing of the end that is not
    // wanted.
    const bool both = answer_.engine == "contour";
    if (!wanted().lower && !both) return std::isinf(value.upper) || !at_effort_;
    if (!wanted().upper && !both) return value.lower == 0 || !at_effort_;
    return std::isinf(value.upper) || value.upper - value.lower > kNarrow * value.upper;
  }
  bool Loose() const {
    const Interval& value = answer_.value;
    return std::isinf(value.upper) || value.upper - value.lower > kShortNarrow * value.upper;
  }

  void Use(Interval found, const char* engine) {
    Intersect(answer_.value, answer_.engine, found, engine, ConsistentLower);
  }

  void AskSmoothed(Effort effort) {
    Use(SmoothedEpsilon(pairs_, log_delta_, wanted(), effort), "smoothed");
    at_effort_ = at_effort_ || effort == question_.effort;
  }
  void UseGrid(Bound bound) {
    const double found = GridEpsilon(pairs_, log_delta_, bound, effort());
    Use(bound == Bound::kUpper ? Interval{0, found} : Interval{found, kInfinity}, "grid");
  }
  void AskGrid() {
    if (wanted().upper) UseGrid(Bound::kUpper);
    if (wanted().lower) UseGrid(Bound::kLower);
  }

  // Many pairs: quick upper ends of some of them, each counted for its neighbours, say about where
  // epsilon is, and so where to split and how fine the losses have to be resolved. What is found
  // with all pairs holds whatever that says.
  Answer RunMany() {
    const double near = NearEpsilon();
    if (const std::optional<TailSplit> split = TailSplit::At(pairs_, kSplitAhead * near);
        split && near > 0) {
      Use(SmoothedEpsilon(*split, log_delta_, wanted(), effort(), near), "split");
    }
    const Interval& value = answer_.value;
    const double top = wanted().upper ? value.upper : near;
    const bool found = wanted().upper ? std::isfinite(top) : value.lower > 0;
    if (!found || (wanted().lower && value.lower < kOpen * top)) {
      Use(SmoothedEpsilon(pairs_, log_delta_, wanted(), effort(), near), "smoothed");
    }
    return answer_;
  }

  // 0 where nothing was found.
  double NearEpsilon() const {
    const std::vector<CountedPair> some = Thinned(pairs_, kMaxThinned);
    const WantedEnds upper_end{true, false};
    double upper = SmoothedEpsilon(some, log_delta_, upper_end, Effort::kQuick).upper;
    for (int round = 0; round < kMaxSplits && std::isfinite(upper); ++round) {
      const std::optional<TailSplit> split = TailSplit::At(some, kSplitAhead * upper);
      if (!split) break;
      const double before = upper;
      upper = std::min(
          upper, SmoothedEpsilon(*split, log_delta_, upper_end, Effort::kQuick, before).upper);
      if (!(upper < kFalls * before)) break;
    }
    return std::isfinite(upper) ? upper : 0;
  }

  // Where nothing is known from below, delta(0) may already be within delta.
  bool NothingToTellAtZero() const {
    if (answer_.value.lower > 0 || !wanted().upper) return false;
    return SmoothedLogDelta(pairs_, 0, {true, false}, effort()).upper <= log_delta_;
  }

  // Quick upper ends of splits around the upper end that is known, while it falls.
  void LowerBySplits() {
    for (int round = 0; round < kMaxSplits && std::isfinite(answer_.value.upper); ++round) {
      const double before = answer_.value.upper;
      const std::optional<TailSplit> split = TailSplit::At(pairs_, kSplitAhead * before);
      if (!split) return;
      Use(SmoothedEpsilon(*split, log_delta_, {true, false}, Effort::kQuick, before), "split");
      if (!(answer_.value.upper < kFalls * before)) return;
    }
  }

  // Rare large losses set apart, around what is known of epsilon; a narrower interval lets the
  // split be lower, and the lists and grids finer. False where the losses cannot be split.
  bool AskSplits() {
    if (!Few()) return false;
    LowerBySplits();
    for (int round = 0; round < kMaxSplits; ++round) {
      const double before = answer_.value.upper - answer_.value.lower;
      if (!std::isfinite(before)) return round > 0;
      const std::optional<TailSplit> split =
          TailSplit::At(pairs_, kSplitAhead * answer_.value.upper);
      if (!split) return round > 0;
      if (!IsShort(pairs_)) {
        const Interval known = answer_.value;
        // At tiny deltas the tilt that takes the fewest frequencies leaves too few digits.
        const double near = log_delta_ > kLogTinySplitDelta ? known.upper : 0;
        Use(SmoothedEpsilon(*split, log_delta_, wanted(), effort(), near), "split");
        at_effort_ = true;
        // Nothing tells how far a single end is from the truth; a lower split may move it further.
        const bool one_end = !wanted().lower || !wanted().upper;
        if (one_end && answer_.value.upper < kFalls * known.upper) continue;
        if (!Wide()) return true;
      }
      if (wanted().upper) {
        Use({0, GridEpsilon(*split, log_delta_, Bound::kUpper, effort())}, "split");
      }
      if (wanted().lower) {
        Use({GridEpsilon(*split, log_delta_, Bound::kLower, effort()), kInfinity}, "split");
      }
      const double after = answer_.value.upper - answer_.value.lower;
      if (after > 0.5 * before || !(Wide() || (IsShort(pairs_) && Loose()))) return true;
    }
    return true;
  }

  const std::vector<CountedPair>& pairs_;
  double log_delta_;
  const Question& question_;
  Answer answer_{{0, kInfinity}, "contour"};
  bool at_effort_ = false;  // an engine has answered at the effort that was asked for
};

// Some releases alone lose no more than all of them.
double LowerFromParts(const std::vector<CountedPair>& pairs, double mu2, double log_delta) {
  double lower = mu2 > 0 ? GaussianEpsilon(std::sqrt(mu2), log_delta) * (1 - kClosedFormError) : 0;
  for (std::size_t i = 0; i < std::min(pairs.size(), kMaxParts); ++i) {
    const double one = ExactEpsilon(pairs[i].pair, log_delta + kExactReleaseError);
    lower = std::max(lower, Outward(one).lower);
  }
  return lower;
}

}  // namespace

std::vector<CountedPair> Thinned(const std::vector<CountedPair>& pairs, std::size_t most) {
  const std::size_t stride = (pairs.size() + most - 1) / most;
  std::vector<CountedPair> some;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    if (i % stride == 0) {
      some.push_back(pairs[i]);
    } else {
      some.back().count += pairs[i].count;
    }
  }
  return some;
}

Answer ComposedEpsilon(const std::vector<CountedPair>& pairs, double log_delta,
                       const Question& question) {
  const PairShape shape = ShapeOf(pairs);
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
  // Everything is told with a chance above delta.
  if (-std::expm1(shape.log_survival) * (1 - kClosedFormError) > std::exp(log_delta)) {
    return {{kInfinity, kInfinity}, "exact"};
  }
  if (NothingToTell(pairs, log_delta)) return {{0, 0}, "exact"};
  if (const auto few = Enumerated::Of(pairs)) return {few->Epsilon(log_delta), "exact"};
  if (question.known_lower > 0) {
    const double quick =
        std::min(shape.largest_loss * (1 + kClosedFormError), ChernoffEpsilon(pairs, log_delta));
    if (quick <= question.known_lower) return {{0, quick}, "quick"};
    const Question rough{0, {true, false}, Effort::kQuick};
    const double upper = EpsilonSearch(pairs, log_delta, rough).Run().value.upper;
    if (upper <= question.known_lower) return {{0, upper}, "quick"};
  }
  Answer answer = EpsilonSearch(pairs, log_delta, question).Run();
  if (question.wanted.lower && answer.value.lower < 0.5 * answer.value.upper) {
    answer.value.lower = std::max(answer.value.lower, LowerFromParts(pairs, shape.mu2, log_delta));
  }
  // Rounding of the largest loss itself is covered by the factor.
  answer.value.upper = std::min(answer.value.upper, shape.largest_loss * (1 + kClosedFormError));
  return answer;
}

}  // namespace sordino
