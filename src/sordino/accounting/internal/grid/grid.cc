#include "sordino/accounting/internal/grid/grid.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "sordino/accounting/internal/contour/tilt_search.h"

namespace sordino {
namespace {

// The bound on epsilon that a composed grid gives: exceeds(x) says that delta(x) is above its
// target as far as the bound can tell, and no x above `most` is asked.
template <typename Exceeds>
double SolveOnGrid(const ComposedGrid& grid, Bound bound, double most, Exceeds exceeds) {
  const double nothing = bound == Bound::kUpper ? kInfinity : 0;
  double low = 0;
  double high = std::min(most, std::max(grid.last_loss(), grid.spacing()));
  if (bound == Bound::kUpper) {
    if (!exceeds(0.0)) return 0;
    if (exceeds(high)) return nothing;
  } else {
    // Far below the tilted mean nothing can be certified, so a first point is searched from above.
    double stride = std::min(grid.window(), high) / 256;
    low = high - stride;
    while (low > 0 && !exceeds(low)) {
      high = low;
      stride *= 1.02;
      low -= stride;
    }
    // Between the last point and zero the search goes on by halves.
    if (low <= 0) {
      low = 0.5 * high;
      while (low > 1e-12 * high && !exceeds(low)) low *= 0.5;
      if (!exceeds(low)) return nothing;
    }
  }
  // Bisection far below a cell, then the side that is safe.
  for (int i = 0; i < 100 && high - low > 1e-6 * grid.spacing() + 1e-15 * high; ++i) {
    const double middle = 0.5 * (low + high);
    (exceeds(middle) ? low : high) = middle;
  }
  return bound == Bound::kUpper ? high : low;
}

// The ranges of a grid are cut for a guess of log delta: the first one, how far below it they still
// serve, and how far below an answer the next guess is.
constexpr double kFirstGuess = -20;
constexpr double kBelowGuess = 8;
constexpr double kBelowAnswer = 4;

// A grid that resolves delta at an epsilon; a much smaller answer than the guess deserves wider
// ranges.
TiltedGrid TiltedTo(std::span<const CountedPair> pairs, double epsilon, Bound bound, Effort effort,
                    double guess) {
  TiltedGrid made{epsilon, guess, bound == Bound::kUpper ? 0 : -kInfinity, std::nullopt};
  for (int round = 0; round < 4; ++round) {
    ComposedGrid grid(pairs, bound, effort);
    if (grid.TooMany()) break;
    if (grid.empty()) {
      made.log_delta = std::log(-std::expm1(grid.log_survival()));
      break;
    }
    const bool composed = grid.Compose(guess, [&](double moment, double c) {
      return moment - c * epsilon + LogChernoffConstant(c);
    });
    if (!composed) break;
    made = {epsilon, guess, grid.LogDelta(epsilon), std::move(grid)};
    if (made.log_delta > guess - kBelowGuess || !std::isfinite(made.log_delta)) break;
    guess = made.log_delta - kBelowAnswer;
  }
  return made;
}

}  // namespace

double GridEpsilon(std::span<const CountedPair> pairs, double log_delta, Bound bound,
                   Effort effort) {
  const double nothing = bound == Bound::kUpper ? kInfinity : 0;
  ComposedGrid grid(pairs, bound, effort);
  if (grid.TooMany()) return nothing;
  if (grid.empty()) {
    return std::log(-std::expm1(grid.log_survival())) <= log_delta ? 0 : kInfinity;
  }
  const double infinite = [&] {
    double log_survival = 0;
    for (const CountedPair& p : pairs) {
      log_survival += static_cast<double>(p.count) * std::log1p(-p.pair.infinite_mass);
    }
    return -std::expm1(log_survival);
  }();
  const double share = infinite * std::exp(-log_delta);
  if (share >= 1) return kInfinity;
  const double target = log_delta + std::log1p(-share);
  const bool composed = grid.Compose(target, [&](double moment, double c) {
    return (moment - target + LogChernoffConstant(c)) / c;
  });
  if (!composed) return nothing;
  return SolveOnGrid(grid, bound, kInfinity,
                     [&](double epsilon) { return grid.LogDelta(epsilon) > log_delta; });
}

double GridEpsilon(const TailSplit& split, double log_delta, Bound bound, Effort effort) {
  ComposedGrid grid(split.body(), bound, effort);
  const bool composed = grid.Compose(log_delta, [&](double moment, double c) {
    return (moment - log_delta + LogChernoffConstant(c)) / c;
  });
  if (!composed) return bound == Bound::kUpper ? kInfinity : 0;
  return SolveOnGrid(grid, bound, split.reach(), [&](double epsilon) {
    const Interval tails = split.Added(epsilon);
    const double share =
        (bound == Bound::kUpper ? tails.upper : tails.lower) * std::exp(-log_delta);
    // What the tails leave of delta; they alone may exceed it.
    return share >= 1 || grid.LogDelta(epsilon) > log_delta + std::log1p(-share);
  });
}

double GridLogDelta(std::span<const CountedPair> pairs, double epsilon, Bound bound,
                    Effort effort) {
  return TiltedTo(pairs, epsilon, bound, effort, kFirstGuess).log_delta;
}

GridProfile::GridProfile(std::vector<CountedPair> pairs, Bound bound, Effort effort)
    : pairs_(std::move(pairs)), bound_(bound), effort_(effort) {}

double GridProfile::LogDelta(double epsilon) {
  // So large a share of delta may be the errors of a grid that was tilted for another epsilon.
  constexpr double kErrorShare = 1e-6;
  constexpr std::size_t kMaxGrids = 32;
  double guess = kFirstGuess;
  if (const TiltedGrid* nearest = Nearest(epsilon)) {
    const ComposedGrid::Reading read = nearest->grid->Read(epsilon);
    const bool resolved = read.log_delta > nearest->guess - kBelowGuess &&
                          (read.error_share <= kErrorShare || nearest->epsilon == epsilon);
    if (resolved || grids_.size() == kMaxGrids) return read.log_delta;
    guess = std::min(guess, read.log_delta - kBelowAnswer);
  }
  TiltedGrid made = TiltedTo(pairs_, epsilon, bound_, effort_, guess);
  const double log_delta = made.log_delta;
  if (made.grid) grids_.push_back(std::move(made));
  return log_delta;
}

const TiltedGrid* GridProfile::Nearest(double epsilon) const {
  const auto nearest = std::min_element(
      grids_.begin(), grids_.end(), [epsilon](const TiltedGrid& a, const TiltedGrid& b) {
        return std::abs(a.epsilon - epsilon) < std::abs(b.epsilon - epsilon);
      });
  return nearest == grids_.end() ? nullptr : &*nearest;
}

}  // namespace sordino
