// CertifiedEpsilon and CertifiedLogDelta: which engine answers which composition.
#include <algorithm>
#include <cmath>
#include <span>

#include "sordino/accounting/accountant.h"
#include "sordino/accounting/contour.h"
#include "sordino/accounting/dominating_pair.h"
#include "sordino/accounting/exact_release.h"
#include "sordino/accounting/gaussian.h"
#include "sordino/accounting/grid.h"

namespace sordino {
namespace {

// A record lives in one part of a parallel event, so each part is an alternative composition; more
// combinations than this are not enumerated.
constexpr std::size_t kMaxAlternatives = 64;
// A contour interval that is narrower than this (relative) is not tried again on the grid.
constexpr double kNarrow = 1e-3;
// Closed forms are exact to about 1e-13.
constexpr double kClosedFormError = 1e-12;

using Releases = std::vector<std::pair<Event, std::uint64_t>>;

// One direction of the adjacency of one alternative.
struct Direction {
  std::vector<CountedPair> upper;
  std::vector<CountedPair> lower;
  bool same = true;       // upper and lower are the same pairs
  bool has_upper = true;  // every release has a dominating pair
};

std::vector<Releases> Alternatives(const Event& event, std::string& reason) {
  std::vector<Releases> alternatives = {{}};
  for (const auto& [release, count] : event.Flatten()) {
    if (release.kind() != Event::Kind::kParallel) {
      for (Releases& releases : alternatives) releases.emplace_back(release, count);
      continue;
    }
    std::vector<Releases> grown;
    for (const auto& [part, once] : release.children()) {
      std::string inner_reason;
      for (const Releases& inner : Alternatives(part, inner_reason)) {
        for (Releases releases : alternatives) {
          for (const auto& [inner_release, inner_count] : inner) {
            releases.emplace_back(inner_release, inner_count * count);
          }
          grown.push_back(std::move(releases));
        }
      }
      if (!inner_reason.empty()) reason = inner_reason;
    }
    if (grown.size() > kMaxAlternatives) {
      reason = "the parallel parts combine in too many ways";
      return {};
    }
    alternatives = std::move(grown);
  }
  return alternatives;
}

std::vector<Direction> DirectionsOf(const Releases& releases, double log_delta,
                                    std::string& reason) {
  std::vector<DominatingPairs> all;
  std::size_t most = 1;
  for (const auto& [release, count] : releases) {
    all.push_back(DominatingPairsOf(release, {log_delta, count}));
    if (all.back().upper.empty()) reason = all.back().reason;
    most = std::max({most, all.back().upper.size(), all.back().lower.size()});
  }
  std::vector<Direction> directions(most);
  for (std::size_t d = 0; d < most; ++d) {
    Direction& direction = directions[d];
    for (std::size_t i = 0; i < all.size(); ++i) {
      const DominatingPairs& pairs = all[i];
      const std::uint64_t count = releases[i].second;
      if (pairs.upper.empty()) {
        direction.has_upper = false;
      } else {
        direction.upper.push_back({pairs.upper[std::min(d, pairs.upper.size() - 1)], count});
      }
      if (!pairs.lower.empty()) {
        direction.lower.push_back({pairs.lower[std::min(d, pairs.lower.size() - 1)], count});
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

// More than two atoms (two can be put on grid points), many times: unless they lie on a lattice,
// merging rounds them down a little each time.
bool HasIsolatedAtoms(const std::vector<CountedPair>& pairs) {
  return std::any_of(pairs.begin(), pairs.end(),
                     [](const CountedPair& p) { return p.pair.atoms.size() > 2 && p.count > 30; });
}

struct Answer {
  Interval value;
  std::string engine;
};

// `known_lower` is what another direction has already proven: a direction that stays below it needs
// no more than a quick bound.
Answer EpsilonOf(const std::vector<CountedPair>& pairs, double log_delta, double known_lower,
                 bool want_upper, bool want_lower) {
  const Shape shape = ShapeOf(pairs);
  if (log_delta == -kInfinity) {
    return {{shape.largest_loss, shape.largest_loss}, "exact"};
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
    return {{ExactEpsilon(pairs[0].pair, log_delta + kExactReleaseError),
             ExactEpsilon(pairs[0].pair, log_delta - kExactReleaseError)},
            "exact"};
  }
  if (known_lower > 0) {
    const double quick =
        std::min(shape.largest_loss * (1 + kClosedFormError), ChernoffEpsilon(pairs, log_delta));
    if (quick <= known_lower) return {{0, quick}, "quick"};
  }
  Answer answer{{0, kInfinity}, "contour"};
  const std::optional<Interval> contour = ContourEpsilon(pairs, log_delta);
  if (contour) answer.value = *contour;
  const double width = answer.value.upper - answer.value.lower;
  if (!contour || width > kNarrow * answer.value.upper) {
    answer.engine = contour ? "contour and grid" : "grid";
    if (want_upper) {
      answer.value.upper =
          std::min(answer.value.upper, GridEpsilon(pairs, log_delta, Bound::kUpper));
    }
    if (want_lower) {
      answer.value.lower =
          std::max(answer.value.lower, GridEpsilon(pairs, log_delta, Bound::kLower));
      const double gap = answer.value.upper - answer.value.lower;
      if (HasIsolatedAtoms(pairs) && !(gap <= kNarrow * answer.value.upper)) {
        answer.value.lower =
            std::max(answer.value.lower, GridEpsilon(pairs, log_delta, Bound::kSpread));
      }
    }
  }
  // Some release alone loses no more than all of them.
  if (want_lower && answer.value.lower < 0.5 * answer.value.upper) {
    for (std::size_t i = 0; i < std::min<std::size_t>(pairs.size(), 8); ++i) {
      answer.value.lower =
          std::max(answer.value.lower, ExactEpsilon(pairs[i].pair, log_delta + kExactReleaseError));
    }
  }
  // Rounding of the largest loss itself is covered by the factor.
  answer.value.upper = std::min(answer.value.upper, shape.largest_loss * (1 + kClosedFormError));
  return answer;
}

Answer LogDeltaOf(const std::vector<CountedPair>& pairs, double epsilon, bool want_upper,
                  bool want_lower) {
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
  Answer answer{{-kInfinity, 0}, "contour"};
  const std::optional<Interval> contour = ContourLogDelta(pairs, epsilon);
  if (contour) answer.value = *contour;
  if (!contour || answer.value.upper - answer.value.lower > kNarrow) {
    answer.engine = contour ? "contour and grid" : "grid";
    if (want_upper) {
      answer.value.upper =
          std::min(answer.value.upper, GridLogDelta(pairs, epsilon, Bound::kUpper));
    }
    if (want_lower) {
      answer.value.lower =
          std::max(answer.value.lower, GridLogDelta(pairs, epsilon, Bound::kLower));
      if (HasIsolatedAtoms(pairs) && !(answer.value.upper - answer.value.lower <= kNarrow)) {
        answer.value.lower =
            std::max(answer.value.lower, GridLogDelta(pairs, epsilon, Bound::kSpread));
      }
    }
  }
  return answer;
}

// The worst over alternatives and directions; `solve` is EpsilonOf or LogDeltaOf.
template <typename Solve>
Certified Worst(const Event& event, double log_delta, Interval nothing, double none, Solve solve) {
  Certified result{{none, none}, "", ""};
  const std::vector<Releases> alternatives = Alternatives(event, result.reason);
  if (alternatives.empty()) return {nothing, "none", result.reason};
  for (const Releases& releases : alternatives) {
    if (releases.empty()) continue;
    for (const Direction& direction : DirectionsOf(releases, log_delta, result.reason)) {
      Interval value = nothing;
      if (direction.has_upper) {
        const Answer answer = solve(direction.upper, result.value.lower, true, direction.same);
        value.upper = answer.value.upper;
        if (direction.same) value.lower = answer.value.lower;
        if (result.engine.empty() || answer.value.upper > result.value.upper) {
          result.engine = answer.engine;
        }
      }
      if (!direction.same || !direction.has_upper) {
        if (!direction.lower.empty()) {
          value.lower = solve(direction.lower, result.value.lower, false, true).value.lower;
        }
      }
      result.value.lower = std::max(result.value.lower, value.lower);
      result.value.upper = std::max(result.value.upper, value.upper);
    }
  }
  if (result.engine.empty()) result.engine = "closed form";
  result.value.lower = std::min(result.value.lower, result.value.upper);
  return result;
}

}  // namespace

Certified CertifiedEpsilon(const Event& event, double log_delta) {
  if (log_delta >= 0) return {{0, 0}, "closed form", ""};
  Certified result =
      Worst(event, log_delta, {0, kInfinity}, 0,
            [&](const std::vector<CountedPair>& pairs, double known, bool upper, bool lower) {
              return EpsilonOf(pairs, log_delta, known, upper, lower);
            });
  result.value.lower = std::max(0.0, result.value.lower);
  result.value.upper = std::max(0.0, result.value.upper);
  if (std::isinf(result.value.upper) && result.reason.empty()) {
    result.reason = log_delta == -kInfinity
                        ? "delta is 0, and the loss of this mechanism is not bounded"
                        : "delta is below the chance that the mechanism gives the record away, or "
                          "the composition is beyond the engines";
  }
  return result;
}

Certified CertifiedLogDelta(const Event& event, double epsilon) {
  const auto at = [&](double guess) {
    return Worst(event, guess, {-kInfinity, 0}, -kInfinity,
                 [&](const std::vector<CountedPair>& pairs, double /*known*/, bool upper,
                     bool lower) { return LogDeltaOf(pairs, epsilon, upper, lower); });
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
  return result;
}

}  // namespace sordino
