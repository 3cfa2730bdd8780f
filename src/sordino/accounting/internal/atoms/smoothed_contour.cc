#include "sordino/accounting/internal/atoms/smoothed_contour.h"
#include "sordino/accounting/internal/rounding.h"

#include <algorithm>
#include <cmath>

#include "sordino/accounting/internal/atoms/atom_composition.h"
#include "sordino/accounting/internal/atoms/inversion.h"
#include "sordino/accounting/internal/atoms/refinement.h"
#include "sordino/accounting/internal/contour/tilt_search.h"

namespace sordino {
namespace {

const SmoothedResolution& ResolutionOf(Effort effort, std::span<const CountedPair> pairs) {
  if (effort == Effort::kQuick) return kQuickSmoothed;
  if (!SharesLists(pairs)) return kFullSmoothed;
  return pairs.size() > kVeryMany ? kVeryManyPairs : kManySmoothedPairs;
}

constexpr double kMaxSmoothing = 0.5;
// Of log delta over epsilon.
constexpr double kMinSlope = 0.4;
// Of the epsilon that is about known.
constexpr double kLeastGuess = 0.1;
// log of the share of delta that tails leave where it says something.
constexpr double kLogLeastLeft = -12;

// What is left of delta for the finite part of the loss.
double FiniteTarget(double log_delta, double infinite) {
  const double share = infinite * std::exp(-log_delta) * (1 + 1e-12);
  return share < 1 ? log_delta + std::log1p(-share) : -kInfinity;
}

// What is left of delta for the finite part of the loss, at each epsilon: tails that were set apart
// take a share that depends on it.
struct Target {
  double log_delta;
  double infinite;
  const TailSplit* split;  // nullptr: nothing was set apart
  Bound bound;

  double reach() const { return split == nullptr ? kInfinity : split->reach(); }
  double operator()(double epsilon) const {
    if (split == nullptr) return FiniteTarget(log_delta, infinite);
    const Interval tails = split->Added(epsilon);
    return FiniteTarget(log_delta, infinite + (bound == Bound::kUpper ? tails.upper : tails.lower));
  }
};

// The target about `near`, where that is known and the tails leave some of delta there.
double AboutTarget(const Target& target, double near) {
  const double all = FiniteTarget(target.log_delta, target.infinite);
  if (target.split == nullptr || near == 0) return all;
  const double left = target(std::min(near, target.reach()));
  return left > all + kLogLeastLeft ? left : all;
}

double TotalCount(std::span<const CountedPair> pairs) {
  double total = 0;
  for (const CountedPair& counted : pairs) total += static_cast<double>(counted.count);
  return total;
}

std::size_t FirstCells(std::span<const CountedPair> pairs, const SmoothedResolution& resolution) {
  if (SharesLists(pairs)) return resolution.shared_cells;
  const double each =
      resolution.first_atoms / static_cast<double>(std::max<std::size_t>(pairs.size(), 1));
  return static_cast<std::size_t>(std::clamp(each, 40.0, resolution.first_cells));
}

// The tilt that minimises the objective; where the loss is bounded the best one is infinite, so it
// stops where the deviation of the loss has shrunk to a tenth.
template <typename Objective>
double ChooseTilt(const AtomComposition& composition, double log_delta, Objective objective) {
  const double d = 1e-3;
  double variance = 2 * composition.RoughLogMoment(d) / (d * (1 + d));
  // Where mass is missing the moment may be below one.
  if (!(variance > 0)) variance = std::max(composition.RoughTilted(0).variance, 1e-300);
  const double sd = std::sqrt(variance);
  double c = MinimiseOverTilt(objective, std::sqrt(std::max(1.0, -2 * log_delta)) / sd);
  const double least = 0.1 * std::sqrt(composition.RoughTilted(0).variance);
  while (c > 1e-9 && std::sqrt(composition.RoughTilted(c).variance) < least) c *= 0.7;
  return c;
}

// log of Chernoff's bound on delta(epsilon) at a tilt.
double ChernoffAt(AtomComposition& above, double c, double epsilon) {
  above.Sharpen(c, c);
  const double finite =
      above.LogMoment(c) + above.LogMomentError(c) - c * epsilon + LogChernoffConstant(c) + 1e-12;
  return std::min(0.0, std::log(std::exp(finite) + above.Infinite() * (1 + 1e-12)) + 1e-12);
}

// Log delta of a finite part with a mass at infinity.
double LogWith(double infinite, double finite) {
  return infinite > 0 ? std::log(std::exp(finite) + infinite) : finite;
}

// The tilt of Chernoff's bound is close to where rare large losses take over, and there the period
// has to be long. A smaller one may need fewer frequencies.
double CheapestTilt(const AtomComposition& composition, double largest, double h, double log_delta,
                    double epsilon) {
  double best = largest;
  double least = kInfinity;
  for (double c = largest; c > 0.02 * largest; c *= 0.75) {
    const double nodes = Inversion::Nodes(composition, c, h, log_delta, epsilon);
    if (nodes < least) {
      least = nodes;
      best = c;
    }
  }
  return best;
}

// The smallest epsilon whose bound from above is within the target.
double UpperEpsilon(const Inversion& inversion, const Target& target, double guess) {
  const auto excess = [&](double epsilon) { return inversion.LogDelta(epsilon) - target(epsilon); };
  if (excess(0) <= 0) return 0;
  double high = std::min(guess, target.reach());
  for (int i = 0; !(excess(high) <= 0); ++i) {
    if (i == 40 || high == target.reach()) return kInfinity;
    high = std::min(target.reach(), high * (i < 8 ? 1.02 : 1.3));
  }
  double low = 0;
  double f_high = excess(high);
  double f_low = kInfinity;
  for (int i = 0; i < 60 && high - low > 2e-6 * high; ++i) {
    double middle = 0.5 * (low + high);
    if (std::isfinite(f_low) && i % 3 != 2) {
      // Aim a little to the safe side.
      middle = low + (high - low) * f_low / (f_low - f_high) * 1.0001;
      middle = std::clamp(middle, low + 1e-4 * (high - low), high - 1e-4 * (high - low));
    } else if (i == 0) {
      middle = 0.9 * high;
    }
    const double f = excess(middle);
    if (!(f <= 0)) {
      low = middle;
      f_low = f;
    } else {
      high = middle;
      f_high = f;
    }
  }
  return high * (1 + 4 * kUnitRoundoff);
}

// The largest epsilon below `upper` whose bound from below is above the target.
double LowerEpsilon(const Inversion& inversion, const Target& target, double upper) {
  const auto exceeds = [&](double epsilon) {
    return inversion.LogDelta(epsilon) >= target(epsilon);
  };
  double bad = upper;
  double good = -1;
  for (double share = 2e-5; share < 1; share *= 2) {
    const double epsilon = upper * (1 - share);
    if (exceeds(epsilon)) {
      good = epsilon;
      break;
    }
    bad = epsilon;
  }
  if (good < 0) return 0;
  for (int i = 0; i < 6 && bad - good > 2e-6 * upper; ++i) {
    const double middle = 0.5 * (good + bad);
    (exceeds(middle) ? good : bad) = middle;
  }
  return std::max(0.0, good * (1 - 4 * kUnitRoundoff));
}

}  // namespace

namespace {

// `split`, where there is one, is what the pairs are the bodies of.
Interval SolveEpsilon(std::span<const CountedPair> pairs, const TailSplit* split, double log_delta,
                      WantedEnds wanted, Effort effort, double near) {
  const SmoothedResolution& resolution = ResolutionOf(effort, pairs);
  Interval result{0, kInfinity};
  const double log_lost = log_delta - kInversionMargin - std::log(TotalCount(pairs));
  const bool many = SharesLists(pairs);
  Refinement fine{resolution, FirstCells(pairs, resolution)};
  // The two ends of different pairs are further apart than this moves them.
  const bool one_end = wanted.upper != wanted.lower;
  if (many && one_end && effort == Effort::kFull) fine.cells = fine.cells * 2 / 3;
  double c = 0;
  double guess = 0;
  for (int attempt = 0; attempt < resolution.attempts; ++attempt) {
    const CutPairs cut(pairs, log_lost, fine.cells, guess > 0 ? guess : near);
    AtomComposition above(cut, Bound::kUpper);
    const Target at{log_delta, above.Infinite(), split, Bound::kUpper};
    const double target = AboutTarget(at, many ? 0 : guess > 0 ? guess : near);
    if (target == -kInfinity) return result;
    if (attempt == 0) {
      const auto objective = [&](double tilt) {
        return (above.RoughLogMoment(tilt) - target + LogChernoffConstant(tilt)) / tilt;
      };
      c = ChooseTilt(above, log_delta, objective);
      guess = objective(c);
      if (!std::isfinite(guess) || !(c > 0)) return result;
      // A body may lose nothing at what its tails leave of delta.
      if (near > 0) guess = std::clamp(guess, split == nullptr ? 0 : kLeastGuess * near, near);
      guess = std::max(guess, 1e-12 / c);
      // The slope of log delta, by which the smoothing counts, is about the tilt of Chernoff's
      // bound; not where losses that do not matter for delta keep that small.
      const double slope = many && near > 0 ? std::max(c, -kMinSlope * log_delta / guess) : c;
      fine.smoothing =
          std::min(kMaxSmoothing, std::sqrt(0.5 * resolution.narrow * guess / (slope + 1)));
      fine.smoothing_unit = (slope + 1) / guess;
      if (near > 0) c = CheapestTilt(above, c, fine.smoothing, target, guess);
    }
    Inversion inversion;
    while (!inversion.Make(above, c, fine.smoothing, target, guess, resolution.max_work)) {
      // Too much work: a coarser answer first, where there is none yet; else as fine as can be.
      fine.smoothing *= attempt > 0 ? 1.4 : 4;
      const double coarsest = attempt > 0 ? 0.8 * fine.last_smoothing : 0.3 * guess;
      if (fine.smoothing > std::min(kMaxSmoothing, coarsest)) return result;
    }
    if (wanted.upper) {
      result.upper = std::min(result.upper, UpperEpsilon(inversion, at, guess));
      if (result.upper == 0) return {0, 0};
      if (!std::isfinite(result.upper)) return result;
      guess = result.upper;
    }
    // Nothing tells how far a single end is from the truth; the second attempt is good enough, and
    // the first where it takes long.
    const bool last = many || attempt > 0;
    if (!wanted.lower) {
      if (last) return result;
      fine.cells *= 2;
      fine.smoothing *= 0.5;
      continue;
    }
    AtomComposition below(cut, Bound::kLower);
    const Target lower_target{log_delta, below.Infinite(), split, Bound::kLower};
    Inversion from_below;
    if (!from_below.Make(below, c, fine.smoothing, target, guess, resolution.max_work))
      return result;
    const double top =
        std::min(std::isfinite(result.upper) ? result.upper : guess, lower_target.reach());
    result.lower = std::max(result.lower, LowerEpsilon(from_below, lower_target, top));
    const double width = (top - result.lower) / top;
    if (!wanted.upper && many) return result;
    if (!fine.Next(width, inversion.Work(above))) return result;
  }
  return result;
}

}  // namespace

Interval SmoothedEpsilon(std::span<const CountedPair> pairs, double log_delta, WantedEnds wanted,
                         Effort effort, double near) {
  return SolveEpsilon(pairs, nullptr, log_delta, wanted, effort, near);
}

Interval SmoothedEpsilon(const TailSplit& split, double log_delta, WantedEnds wanted, Effort effort,
                         double near) {
  return SolveEpsilon(split.body(), &split, log_delta, wanted, effort, near);
}

double ChernoffEpsilon(std::span<const CountedPair> pairs, double log_delta) {
  constexpr std::size_t kCells = 64;
  const double log_lost = log_delta - 5 - std::log(TotalCount(pairs));
  const CutPairs cut(pairs, log_lost, kCells);
  AtomComposition above(cut, Bound::kUpper);
  const double target = FiniteTarget(log_delta, above.Infinite());
  if (target == -kInfinity) return kInfinity;
  const double c = ChooseTilt(above, log_delta, [&](double tilt) {
    return (above.RoughLogMoment(tilt) - target + LogChernoffConstant(tilt)) / tilt;
  });
  above.Sharpen(c, c);
  const double moment = above.LogMoment(c) + above.LogMomentError(c);
  if (!std::isfinite(moment)) return kInfinity;
  return std::max(0.0, (moment - target + LogChernoffConstant(c)) / c) * (1 + 1e-12);
}

double ChernoffLogDelta(std::span<const CountedPair> pairs, double epsilon) {
  constexpr std::size_t kCells = 64;
  constexpr double kLogGuess = -40;
  const double log_lost = kLogGuess - std::log(TotalCount(pairs));
  const CutPairs cut(pairs, log_lost, kCells);
  AtomComposition above(cut, Bound::kUpper);
  const double c = ChooseTilt(above, kLogGuess, [&](double tilt) {
    return above.RoughLogMoment(tilt) - tilt * epsilon + LogChernoffConstant(tilt);
  });
  return ChernoffAt(above, c, epsilon);
}

namespace {

// What is at most e^log_floor need not be resolved.
Interval SolveLogDelta(std::span<const CountedPair> pairs, double epsilon, WantedEnds wanted,
                       Effort effort, double log_floor) {
  const SmoothedResolution& resolution = ResolutionOf(effort, pairs);
  Interval result{-kInfinity, 0};
  double guess = -10;
  Refinement fine{resolution, FirstCells(pairs, resolution)};
  double c = 0;
  const bool many = SharesLists(pairs);
  // A log delta moves several times as far as epsilon does, relative.
  const double unit = many ? 5 : 1;
  int answered = 0;
  for (int attempt = 0; attempt < resolution.attempts + 2 && answered < resolution.attempts;
       ++attempt) {
    const double log_lost = guess - kInversionMargin - std::log(TotalCount(pairs));
    const CutPairs cut(pairs, log_lost, fine.cells, epsilon);
    AtomComposition above(cut, Bound::kUpper);
    const auto objective = [&](double tilt) {
      return above.RoughLogMoment(tilt) - tilt * epsilon + LogChernoffConstant(tilt);
    };
    const bool choose = c == 0;
    if (choose) {
      c = ChooseTilt(above, guess, objective);
      const double chernoff = objective(c);
      if (!std::isfinite(chernoff)) return result;
      if (chernoff < log_floor) return {-kInfinity, ChernoffAt(above, c, epsilon)};
      // The tails were left out for the guess; a much smaller answer deserves longer ones.
      if (chernoff < guess - 8 && attempt < 3) {
        guess = chernoff - 4;
        c = 0;
        continue;
      }
      guess = std::min(guess, chernoff);
      const double slope = many ? std::max(c, -kMinSlope * guess / epsilon) : c;
      fine.smoothing = std::min(kMaxSmoothing,
                                std::sqrt(0.5 * unit * resolution.narrow / (slope * (slope + 1))));
      fine.smoothing_unit = slope * (slope + 1) / unit;
      if (many) c = CheapestTilt(above, c, fine.smoothing, guess, epsilon);
    }
    ++answered;
    Inversion inversion;
    while (!inversion.Make(above, c, fine.smoothing, guess, epsilon, resolution.max_work)) {
      fine.smoothing *= 4;
      if (!choose || fine.smoothing > kMaxSmoothing) return result;
    }
    if (wanted.upper) {
      result.upper = std::min(result.upper,
                              LogWith(above.Infinite() * (1 + 1e-12), inversion.LogDelta(epsilon)));
    }
    if (!wanted.lower) {
      if (!choose) return result;
      fine.cells *= 2;
      fine.smoothing *= 0.5;
      continue;
    }
    AtomComposition below(cut, Bound::kLower);
    Inversion from_below;
    if (!from_below.Make(below, c, fine.smoothing, guess, epsilon, resolution.max_work))
      return result;
    result.lower = std::max(result.lower,
                            LogWith(below.Infinite() * (1 - 1e-12), from_below.LogDelta(epsilon)));
    const double top = wanted.upper ? result.upper : inversion.LogDelta(epsilon);
    const double width = (top - result.lower) / unit;
    if (!fine.Next(width, inversion.Work(above))) return result;
  }
  return result;
}

}  // namespace

Interval SmoothedLogDelta(std::span<const CountedPair> pairs, double epsilon, WantedEnds wanted,
                          Effort effort) {
  return SolveLogDelta(pairs, epsilon, wanted, effort, -kInfinity);
}

Interval SmoothedLogDelta(const TailSplit& split, double epsilon, WantedEnds wanted,
                          Effort effort) {
  constexpr double kNegligible = -14;
  const Interval tails = split.Added(epsilon);
  const double log_floor = std::log(tails.upper) + kNegligible;
  const Interval body = SolveLogDelta(split.body(), epsilon, wanted, effort, log_floor);
  return {std::log(std::exp(body.lower) + tails.lower) - 1e-12,
          std::min(0.0, std::log(std::exp(body.upper) + tails.upper) + 1e-12)};
}

}  // namespace sordino
