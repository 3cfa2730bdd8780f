#include "sordino/accounting/smoothed_contour.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <numbers>
#include <optional>
#include <utility>
#include <vector>

#include "sordino/accounting/atom_list.h"
#include "sordino/accounting/atom_transform.h"
#include "sordino/accounting/rounding.h"
#include "sordino/accounting/tilt_search.h"

namespace sordino {
namespace {

// Tails, aliases and the cut of the integral are each pushed below e^-kSmoothedMargin of delta.
constexpr double kSmoothedMargin = 13;
struct SmoothedResolution {
  // Relative width (of epsilon) or width (of log delta) at which refining ends, and what it aims at
  // while that is cheap.
  double narrow;
  double goal;
  int attempts;
  double most_work;    // multiplications of one inversion
  double first_atoms;  // of all pairs together, in the first attempt
  double first_cells;  // of a pair, at most
};
constexpr SmoothedResolution kFullSmoothed = {4e-4, 1e-5, 7, 3e8, 4e4, 400};
constexpr SmoothedResolution kQuickSmoothed = {0.02, 0.02, 1, 2e6, 3e3, 64};

const SmoothedResolution& ResolutionOf(Effort effort) {
  return effort == Effort::kQuick ? kQuickSmoothed : kFullSmoothed;
}

// Multiplications that take some milliseconds.
constexpr double kCheapWork = 3e6;
constexpr double kMostNodes = 1 << 18;
constexpr double kLargestSmoothing = 0.5;

// A composition of atom lists, all from above or all from below.
class SmoothedComposition {
 public:
  SmoothedComposition(std::span<const CountedPair> pairs, double log_lost, std::size_t cells,
                      Bound bound)
      : bound_(bound) {
    for (const CountedPair& counted : pairs) {
      const auto count = static_cast<double>(counted.count);
      const double mu = counted.pair.gaussian_mu;
      if (mu > 0) mu2_ += count * mu * mu;
      if (counted.pair.atoms.empty() && counted.pair.pieces.empty()) {
        if (counted.pair.infinite_mass > 0) {
          log_survival_ += count * std::log1p(-counted.pair.infinite_mass);
          log_moment_ += count * std::log1p(-counted.pair.infinite_mass);
        }
        continue;
      }
      AddList(ListAtoms(counted.pair, log_lost, cells, bound), count);
    }
  }

  double atoms() const { return atoms_; }
  double mu2() const { return mu2_; }
  Bound bound() const { return bound_; }
  const std::vector<AtomTransform>& lists() const { return lists_; }
  double log_constant() const { return log_moment_; }
  // P-mass at an infinite loss.
  double Infinite() const { return -std::expm1(log_survival_); }

  // log E[e^{cL}] of the finite part.
  double LogMoment(double c) const {
    double sum = log_moment_ + 0.5 * mu2_ * c * (c + 1);
    for (const AtomTransform& list : lists_) sum += list.count() * std::log1p(list.Excess(c));
    return sum;
  }
  // The same from every stride-th list, where only the choice of a tilt hangs on it.
  double RoughLogMoment(double c) const {
    const std::size_t stride = std::max<std::size_t>(1, lists_.size() / 24);
    double sum = 0;
    double seen = 0;
    double all = 0;
    for (std::size_t i = 0; i < lists_.size(); ++i) {
      all += lists_[i].count();
      if (i % stride != 0) continue;
      sum += lists_[i].count() * std::log1p(lists_[i].Excess(c));
      seen += lists_[i].count();
    }
    return log_moment_ + 0.5 * mu2_ * c * (c + 1) + (seen > 0 ? sum * (all / seen) : 0);
  }
  double LogMomentError(double c) const {
    double error = 0;
    for (const AtomTransform& list : lists_) {
      const double excess = list.Excess(c);
      error += list.count() * (list.ExcessError(c) / (1 + excess) +
                               2 * kUnitRoundoff * std::abs(std::log1p(excess)));
    }
    return error + 8 * kUnitRoundoff * (0.5 * mu2_ * c * (c + 1) + std::abs(log_moment_));
  }
  AtomTransform::Moments Tilted(double c) const {
    AtomTransform::Moments m{mu2_ * (c + 0.5), mu2_};
    for (const AtomTransform& list : lists_) {
      const AtomTransform::Moments one = list.Tilted(c);
      m.mean += list.count() * one.mean;
      m.variance += list.count() * one.variance;
    }
    return m;
  }

 private:
  void AddList(AtomList list, double count) {
    log_survival_ += count * std::log1p(-list.infinite);
    atoms_ += static_cast<double>(list.loss.size());
    lists_.emplace_back(std::move(list), count);
  }

  Bound bound_;
  std::vector<AtomTransform> lists_;
  double mu2_ = 0;
  double log_survival_ = 0;
  double log_moment_ = 0;  // of what has no list
  double atoms_ = 0;
};

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

// The inversion of one composition at one tilt and smoothing.
class SmoothedInversion {
 public:
  // For a delta of about e^log_delta at about epsilon. False where the work would be too much.
  bool Make(const SmoothedComposition& composition, double c, double h, double log_delta,
            double epsilon, double most_work) {
    c_ = c;
    h_ = h;
    lower_ = composition.bound() == Bound::kLower;
    log_moment_ = composition.LogMoment(c) + 0.5 * h * h * c * (c + 1);
    if (!std::isfinite(log_moment_)) return false;
    log_moment_error_ = composition.LogMomentError(c) + 4 * kUnitRoundoff * std::abs(log_moment_);
    const AtomTransform::Moments tilted = composition.Tilted(c);
    if (!ChoosePeriod(composition, tilted, log_delta, epsilon)) return false;
    // The cut is relative to the integrand at y = 0, which may be far above delta.
    const double above = std::max(0.0, log_moment_ - c * epsilon - log_delta);
    const double last = std::sqrt(2 * (kSmoothedMargin + above)) / h;
    const double nodes = std::ceil(last / step_) + 1;
    if (!(nodes < kMostNodes) || !(nodes * composition.atoms() < most_work)) return false;
    Evaluate(composition, static_cast<std::size_t>(nodes));
    return true;
  }

  // Multiplications, where a node costs as much as two hundred atoms.
  double Work(const SmoothedComposition& composition) const {
    return static_cast<double>(value_.size()) * (composition.atoms() + 200);
  }
  // log of the bound on delta of the finite part: from above, or from below.
  double LogDelta(double epsilon) const {
    double sum = 0;  // of the real part of value e^{-iy epsilon}
    for (std::size_t k = 0; k < value_.size(); ++k) {
      const double angle = step_ * static_cast<double>(k) * epsilon;
      sum += value_[k].real() * std::cos(angle) + value_[k].imag() * std::sin(angle);
    }
    const double log_front = log_moment_ - c_ * epsilon;
    const double front_error =
        log_moment_error_ + 8 * kUnitRoundoff * (std::abs(log_moment_) + std::abs(c_ * epsilon));
    double error = error_ + angle_error_ * std::abs(epsilon) + tail_;
    if (!lower_) return log_front + front_error + std::log(std::max(0.0, sum) + error);
    const double period = 2 * std::numbers::pi / step_;
    error += std::exp(-c_ * period - log_front) / -std::expm1(-c_ * period);
    const double gap = (larger_c_ - c_) * period;
    error += std::exp(larger_log_moment_ - larger_c_ * epsilon + LogChernoffConstant(larger_c_) -
                      gap - log_front) /
             -std::expm1(-gap);
    const double rest = sum - error * (1 + 1e-6);
    return rest > 0 ? log_front - front_error + std::log(rest) : -kInfinity;
  }

 private:
  // Both families of aliases below e^-kSmoothedMargin of delta.
  bool ChoosePeriod(const SmoothedComposition& composition, const AtomTransform::Moments& tilted,
                    double log_delta, double epsilon) {
    const double sd = std::sqrt(tilted.variance + h_ * h_);
    double best = kInfinity;
    for (const double deviations : {3.0, 7.0, 1.0, 0.3, 0.1}) {
      const double c2 = c_ + deviations / sd;
      const double moment = composition.LogMoment(c2) + 0.5 * h_ * h_ * c2 * (c2 + 1);
      if (!std::isfinite(moment)) continue;
      const double bound = moment + composition.LogMomentError(c2) + 1e-12 * std::abs(moment);
      const double wanted = (bound - c2 * epsilon - log_delta + kSmoothedMargin) / (c2 - c_);
      if (wanted < best) {
        best = wanted;
        larger_c_ = c2;
        larger_log_moment_ = bound;
      }
    }
    if (!std::isfinite(best)) return false;
    const double period = std::max({(kSmoothedMargin - log_delta) / c_, best, 8 * sd, 16 * h_});
    step_ = 2 * std::numbers::pi / period;
    return std::isfinite(step_) && step_ > 0;
  }

  void Evaluate(const SmoothedComposition& composition, std::size_t nodes) {
    std::vector<double> log_modulus(nodes, composition.log_constant() - log_moment_);
    std::vector<double> log_largest(log_modulus);
    std::vector<double> phase(nodes, 0.0);
    std::vector<std::complex<double>> excess(nodes);
    std::vector<double> error(nodes);
    for (const AtomTransform& list : composition.lists()) {
      list.Line(c_, step_, excess, error);
      for (std::size_t k = 0; k < nodes; ++k) {
        const double x = excess[k].real();
        const double square = x * (2 + x) + excess[k].imag() * excess[k].imag();
        // log |M|, where M may vanish.
        const double log_one =
            square > -0.5 ? 0.5 * std::log1p(square)
                          : std::max(std::log(std::hypot(1 + x, excess[k].imag())), -690.0);
        const double one = std::exp(log_one);
        log_modulus[k] += list.count() * log_one;
        log_largest[k] += list.count() * (log_one + std::log1p(error[k] / one));
        phase[k] += std::remainder(list.count() * std::atan2(excess[k].imag(), 1 + x),
                                   2 * std::numbers::pi);
        // The remainder of a large multiple keeps the rounding of the multiple.
        log_largest[k] += 4 * kUnitRoundoff * list.count() *
                          (std::abs(log_one) + std::abs(excess[k].imag()) / one);
      }
    }
    const double scale = step_ / (2 * std::numbers::pi);
    const double correction = lower_ ? h_ * h_ * (1 + h_) : 0;
    value_.resize(nodes);
    error_ = 0;
    angle_error_ = 0;
    const double mu2 = composition.mu2() + h_ * h_;
    for (std::size_t k = 0; k < nodes; ++k) {
      const double y = step_ * static_cast<double>(k);
      const std::complex<double> s(c_, y);
      const std::complex<double> kernel = 1.0 / (s * (s + 1.0)) - correction;
      const double gauss = 0.5 * mu2 * (c_ * (c_ + 1) - y * y);
      const double turn = mu2 * (c_ + 0.5) * y;
      const double modulus = std::exp(log_modulus[k] + gauss);
      const double largest = std::exp(log_largest[k] + gauss);
      const double weight = (k == 0 ? 1 : 2) * scale;
      value_[k] = weight * std::polar(modulus, phase[k] + turn) * kernel;
      const double rounding = kUnitRoundoff * (32 + 4 * std::abs(log_modulus[k]) +
                                               4 * std::abs(gauss) + 4 * std::abs(turn) +
                                               4 * static_cast<double>(composition.lists().size()));
      const double size = weight * std::abs(kernel);
      error_ += size * (largest - modulus + largest * rounding);
      angle_error_ += size * modulus * kUnitRoundoff * 3 * y;
    }
    error_ += static_cast<double>(nodes) * kUnitRoundoff * error_ + 1e-300;
    const double last = step_ * static_cast<double>(nodes - 1);
    // |kernel| <= 1/y^2 + correction, and every modulus is at most that of the Gaussians.
    const double log_end = composition.LogMoment(c_) - 0.5 * composition.mu2() * c_ * (c_ + 1) -
                           log_moment_ + 0.5 * mu2 * (c_ * (c_ + 1) - last * last);
    tail_ = std::exp(log_end) * (1 + 2 * (1 + h_)) / (std::numbers::pi * last);
  }

  double c_ = 0;
  double h_ = 0;
  bool lower_ = false;
  double log_moment_ = 0;
  double log_moment_error_ = 0;
  double larger_c_ = 0;
  double larger_log_moment_ = 0;
  double step_ = 0;
  double error_ = 0;
  double angle_error_ = 0;
  double tail_ = 0;
  std::vector<std::complex<double>> value_;
};

double TotalCount(std::span<const CountedPair> pairs) {
  double total = 0;
  for (const CountedPair& counted : pairs) total += static_cast<double>(counted.count);
  return total;
}

std::size_t FirstCells(std::size_t pairs, const SmoothedResolution& resolution) {
  const double each = resolution.first_atoms / static_cast<double>(std::max<std::size_t>(pairs, 1));
  return static_cast<std::size_t>(std::clamp(each, 40.0, resolution.first_cells));
}

// The tilt that minimises the objective; where the loss is bounded the best one is infinite, so it
// stops where the deviation of the loss has shrunk to a tenth.
template <typename Objective>
double ChooseTilt(const SmoothedComposition& composition, double log_delta, Objective objective) {
  const double d = 1e-3;
  double variance = 2 * composition.RoughLogMoment(d) / (d * (1 + d));
  // Where mass is missing the moment may be below one.
  if (!(variance > 0)) variance = std::max(composition.Tilted(0).variance, 1e-300);
  const double sd = std::sqrt(variance);
  double c = MinimiseOverTilt(objective, std::sqrt(std::max(1.0, -2 * log_delta)) / sd);
  const double least = 0.1 * std::sqrt(composition.Tilted(0).variance);
  while (c > 1e-9 && std::sqrt(composition.Tilted(c).variance) < least) c *= 0.7;
  return c;
}

// How fine an attempt is: cells of a pair, and the smoothing h.
struct Refinement {
  const SmoothedResolution& resolution;
  std::size_t cells = 0;
  double smoothing = 0;
  double last_width = kInfinity;

  // Finer ones after an interval of this width; false where that is narrow enough or no use.
  bool Next(double width, double work) {
    // Both errors fall with the square, so the next work is known.
    const double finer = std::clamp(std::sqrt(resolution.goal / width), 0.1, 0.5);
    const double next = work / (finer * finer);
    const bool enough =
        width <= resolution.goal || (width <= resolution.narrow && next > kCheapWork);
    if (enough || width > 0.8 * last_width) return false;
    last_width = width;
    cells = static_cast<std::size_t>(static_cast<double>(cells) / std::max(finer, 0.4));
    smoothing *= width > 8 * resolution.narrow ? 0.2 : std::max(finer, 0.25);
    return true;
  }
};

// The smallest epsilon whose bound from above is within the target.
double UpperEpsilon(const SmoothedInversion& inversion, const Target& target, double guess) {
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
double LowerEpsilon(const SmoothedInversion& inversion, const Target& target, double upper) {
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
                      WantedEnds wanted, Effort effort) {
  const SmoothedResolution& resolution = ResolutionOf(effort);
  Interval result{0, kInfinity};
  const double log_lost = log_delta - kSmoothedMargin - std::log(TotalCount(pairs));
  Refinement fine{resolution, FirstCells(pairs.size(), resolution)};
  double c = 0;
  double guess = 0;
  for (int attempt = 0; attempt < resolution.attempts; ++attempt) {
    const SmoothedComposition above(pairs, log_lost, fine.cells, Bound::kUpper);
    const double target = FiniteTarget(log_delta, above.Infinite());
    if (target == -kInfinity) return result;
    if (attempt == 0) {
      const auto objective = [&](double tilt) {
        return (above.RoughLogMoment(tilt) - target + LogChernoffConstant(tilt)) / tilt;
      };
      c = ChooseTilt(above, log_delta, objective);
      guess = objective(c);
      if (!std::isfinite(guess) || !(c > 0)) return result;
      guess = std::max(guess, 1e-12 / c);
      fine.smoothing =
          std::min(kLargestSmoothing, std::sqrt(0.5 * resolution.narrow * guess / (c + 1)));
    }
    SmoothedInversion inversion;
    while (!inversion.Make(above, c, fine.smoothing, target, guess, resolution.most_work)) {
      // Too much work: a coarser answer first, where there is none yet.
      fine.smoothing *= 4;
      if (attempt > 0 || fine.smoothing > std::min(kLargestSmoothing, 0.3 * guess)) return result;
    }
    if (wanted.upper) {
      const Target at{log_delta, above.Infinite(), split, Bound::kUpper};
      result.upper = std::min(result.upper, UpperEpsilon(inversion, at, guess));
      if (result.upper == 0) return {0, 0};
      if (!std::isfinite(result.upper)) return result;
      guess = result.upper;
    }
    if (!wanted.lower) {
      // Nothing tells how far the upper end is from the truth; the second attempt is good enough.
      if (attempt > 0) return result;
      fine.cells *= 2;
      fine.smoothing *= 0.5;
      continue;
    }
    const SmoothedComposition below(pairs, log_lost, fine.cells, Bound::kLower);
    const Target lower_target{log_delta, below.Infinite(), split, Bound::kLower};
    SmoothedInversion from_below;
    if (!from_below.Make(below, c, fine.smoothing, target, guess, resolution.most_work))
      return result;
    const double top =
        std::min(std::isfinite(result.upper) ? result.upper : guess, lower_target.reach());
    result.lower = std::max(result.lower, LowerEpsilon(from_below, lower_target, top));
    const double width = (top - result.lower) / top;
    if (!fine.Next(width, inversion.Work(above))) return result;
  }
  return result;
}

}  // namespace

Interval SmoothedEpsilon(std::span<const CountedPair> pairs, double log_delta, WantedEnds wanted,
                         Effort effort) {
  return SolveEpsilon(pairs, nullptr, log_delta, wanted, effort);
}

Interval SmoothedEpsilon(const TailSplit& split, double log_delta, WantedEnds wanted,
                         Effort effort) {
  return SolveEpsilon(split.body(), &split, log_delta, wanted, effort);
}

double ChernoffEpsilon(std::span<const CountedPair> pairs, double log_delta) {
  constexpr std::size_t kCells = 64;
  const double log_lost = log_delta - 5 - std::log(TotalCount(pairs));
  const SmoothedComposition above(pairs, log_lost, kCells, Bound::kUpper);
  const double target = FiniteTarget(log_delta, above.Infinite());
  if (target == -kInfinity) return kInfinity;
  const double c = ChooseTilt(above, log_delta, [&](double tilt) {
    return (above.RoughLogMoment(tilt) - target + LogChernoffConstant(tilt)) / tilt;
  });
  const double moment = above.LogMoment(c) + above.LogMomentError(c);
  return std::max(0.0, (moment - target + LogChernoffConstant(c)) / c) * (1 + 1e-12);
}

double ChernoffLogDelta(std::span<const CountedPair> pairs, double epsilon) {
  constexpr std::size_t kCells = 64;
  constexpr double kLogGuess = -40;
  const double log_lost = kLogGuess - std::log(TotalCount(pairs));
  const SmoothedComposition above(pairs, log_lost, kCells, Bound::kUpper);
  const double c = ChooseTilt(above, kLogGuess, [&](double tilt) {
    return above.RoughLogMoment(tilt) - tilt * epsilon + LogChernoffConstant(tilt);
  });
  const double finite =
      above.LogMoment(c) + above.LogMomentError(c) - c * epsilon + LogChernoffConstant(c) + 1e-12;
  return std::min(0.0, std::log(std::exp(finite) + above.Infinite() * (1 + 1e-12)) + 1e-12);
}

Interval SmoothedLogDelta(std::span<const CountedPair> pairs, double epsilon, WantedEnds wanted,
                          Effort effort) {
  const SmoothedResolution& resolution = ResolutionOf(effort);
  Interval result{-kInfinity, 0};
  double guess = -10;
  Refinement fine{resolution, FirstCells(pairs.size(), resolution)};
  double c = 0;
  for (int attempt = 0; attempt < resolution.attempts + 2; ++attempt) {
    const double log_lost = guess - kSmoothedMargin - std::log(TotalCount(pairs));
    const SmoothedComposition above(pairs, log_lost, fine.cells, Bound::kUpper);
    const auto objective = [&](double tilt) {
      return above.RoughLogMoment(tilt) - tilt * epsilon + LogChernoffConstant(tilt);
    };
    const bool choose = c == 0;
    if (choose) {
      c = ChooseTilt(above, guess, objective);
      const double chernoff = objective(c);
      if (!std::isfinite(chernoff)) return result;
      // The tails were left out for the guess; a much smaller answer deserves longer ones.
      if (chernoff < guess - 8 && attempt < 3) {
        guess = chernoff - 4;
        c = 0;
        continue;
      }
      guess = std::min(guess, chernoff);
      fine.smoothing =
          std::min(kLargestSmoothing, std::sqrt(0.5 * resolution.narrow / (c * (c + 1))));
    }
    SmoothedInversion inversion;
    while (!inversion.Make(above, c, fine.smoothing, guess, epsilon, resolution.most_work)) {
      fine.smoothing *= 4;
      if (!choose || fine.smoothing > kLargestSmoothing) return result;
    }
    if (wanted.upper) {
      const double finite = inversion.LogDelta(epsilon);
      const double infinite = above.Infinite() * (1 + 1e-12);
      const double sum = infinite > 0 ? std::log(std::exp(finite) + infinite) : finite;
      result.upper = std::min(result.upper, sum);
    }
    if (!wanted.lower) {
      if (!choose) return result;
      fine.cells *= 2;
      fine.smoothing *= 0.5;
      continue;
    }
    const SmoothedComposition below(pairs, log_lost, fine.cells, Bound::kLower);
    SmoothedInversion from_below;
    if (!from_below.Make(below, c, fine.smoothing, guess, epsilon, resolution.most_work))
      return result;
    const double finite = from_below.LogDelta(epsilon);
    const double infinite = below.Infinite() * (1 - 1e-12);
    const double sum = infinite > 0 ? std::log(std::exp(finite) + infinite) : finite;
    result.lower = std::max(result.lower, sum);
    const double top = wanted.upper ? result.upper : inversion.LogDelta(epsilon);
    const double width = top - result.lower;
    if (!fine.Next(width, inversion.Work(above))) return result;
  }
  return result;
}

}  // namespace sordino
