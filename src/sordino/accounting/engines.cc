// Which engine answers a composition.
#include "sordino/accounting/engines.h"

#include <algorithm>
#include <cmath>

#include "sordino/accounting/contradiction.h"
#include "sordino/accounting/exact_release.h"
#include "sordino/accounting/gaussian.h"
#include "sordino/accounting/grid.h"

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

}  // namespace

Answer ComposedEpsilon(const std::vector<CountedPair>& pairs, double log_delta,
                       const Question& question) {
  const auto [want_upper, want_lower] = question.wanted;
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
  if (question.known_lower > 0) {
    const double quick =
        std::min(shape.largest_loss * (1 + kClosedFormError), ChernoffEpsilon(pairs, log_delta));
    if (quick <= question.known_lower) return {{0, quick}, "quick"};
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
  if (wide()) use(SmoothedEpsilon(pairs, log_delta, question.wanted, question.effort), "smoothed");
  const double gap = answer.value.upper - answer.value.lower;
  const bool loose = std::isinf(gap) || gap > kShortNarrow * answer.value.upper;
  const bool open = want_upper && want_lower && pairs.size() <= kMostGridPairs && wide();
  if (lattice || open || (IsShort(pairs) && (wide() || loose))) {
    if (want_upper) use({0, GridEpsilon(pairs, log_delta, Bound::kUpper, question.effort)}, "grid");
    if (want_lower) use({GridEpsilon(pairs, log_delta, Bound::kLower, question.effort), kInfinity}, "grid");
    if (want_lower && lattice && HasLongLattice(pairs)) {
      use({GridEpsilon(pairs, log_delta, Bound::kSpread, question.effort), kInfinity}, "grid");
    }
  }
  // Some releases alone lose no more than all of them.
  if (want_lower && answer.value.lower < 0.5 * answer.value.upper) {
    if (shape.mu2 > 0) {
      const double gaussian = GaussianEpsilon(std::sqrt(shape.mu2), log_delta);
      answer.value.lower = std::max(answer.value.lower, gaussian * (1 - kClosedFormError));
    }
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

Answer ComposedLogDelta(const std::vector<CountedPair>& pairs, double epsilon,
                        const Question& question) {
  const auto [want_upper, want_lower] = question.wanted;
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
  if (question.known_lower > -kInfinity) {
    const double quick = ChernoffLogDelta(pairs, epsilon);
    if (quick <= question.known_lower) return {{-kInfinity, quick}, "quick"};
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
  if (wide()) use(SmoothedLogDelta(pairs, epsilon, question.wanted, question.effort), "smoothed");
  const bool loose = answer.value.upper - answer.value.lower > kShortNarrow;
  if (lattice || (IsShort(pairs) && (wide() || loose))) {
    if (want_upper) use({-kInfinity, GridLogDelta(pairs, epsilon, Bound::kUpper, question.effort)}, "grid");
    if (want_lower) use({GridLogDelta(pairs, epsilon, Bound::kLower, question.effort), 0}, "grid");
    if (want_lower && lattice && HasLongLattice(pairs)) {
      use({GridLogDelta(pairs, epsilon, Bound::kSpread, question.effort), 0}, "grid");
    }
  }
  if (want_lower && !(answer.value.upper - answer.value.lower < 0.5)) {
    const auto at_least = [&](double log_delta) {
      answer.value.lower = std::max(answer.value.lower, log_delta);
    };
    if (shape.mu2 > 0) {
      const double mu = std::sqrt(shape.mu2);
      at_least(GaussianLogDelta(mu, epsilon) - GaussianLogDeltaError(mu, epsilon) -
               kClosedFormError);
    }
    for (std::size_t i = 0; i < std::min<std::size_t>(pairs.size(), 8); ++i) {
      if (pairs[i].pair.gaussian_mu > 0) continue;
      at_least(ExactLogDelta(pairs[i].pair, epsilon) - kExactReleaseError);
    }
  }
  return answer;
}

}  // namespace sordino
