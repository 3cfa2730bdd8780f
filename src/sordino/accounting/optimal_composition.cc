// The Kairouz-Oh-Viswanath composition: k releases that are (eps, delta)-DP are dominated by k
// releases of: with probability delta the secret bit itself, else the bit flipped with
// probability 1 / (1 + e^eps). Their loss is (2J - k) eps with J binomial.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "sordino/accounting/composition.h"
#include "sordino/accounting/internal/atoms/smoothed_contour.h"
#include "sordino/accounting/internal/renyi/renyi_moments.h"
#include "sordino/accounting/renyi_conversion.h"
#include "sordino/base/check.h"

namespace sordino {
namespace {

constexpr double kOptimalMargin = 1e-12;

// (1 + t) log(1 + t) - t without cancellation, t >= -1.
double Deviance(double t) {
  if (std::abs(t) > 0.1) return t <= -1 ? 1 : (1 + t) * std::log1p(t) - t;
  // sum over n >= 2 of (-t)^n / (n (n - 1))
  double sum = 0;
  double power = t * t;
  for (int n = 2; n < 40 && std::abs(power) > 1e-20 * sum; ++n) {
    sum += power / (n * (n - 1.0));
    power *= -t;
  }
  return sum;
}

// log n! - (n log n - n + log(2 pi n) / 2)
double StirlingError(double n) {
  if (n < 16) {
    return std::lgamma(n + 1) - (n + 0.5) * std::log(n) + n - 0.5 * std::log(2 * std::numbers::pi);
  }
  const double m = 1 / (n * n);
  return (1.0 / 12 - m * (1.0 / 360 - m * (1.0 / 1260 - m * (1.0 / 1680)))) / n;
}

// The binomial distribution of k trials with success probability p = 1 / (1 + e^-eps), and of its
// mirror image with 1 - p.
class FlipCounts {
 public:
  FlipCounts(double epsilon, double trials)
      : epsilon_(epsilon), k_(trials), log_miss_(std::log1p(std::exp(-epsilon))) {}

  // log of the sum over i >= j; `tilt` +1 for success probability p, -1 for 1 - p. Loader's form
  // of the mass keeps its digits for 1e8 trials.
  double LogTail(double j, int tilt) const {
    const double p = tilt > 0 ? 1 / (1 + std::exp(-epsilon_)) : 1 / (1 + std::exp(epsilon_));
    const double mode = std::floor(k_ * p);
    // Far below the mode the sum starts where its terms begin to count.
    const double spread = 40 * std::sqrt(k_ * p * (1 - p)) + 1500;
    const double start = std::max({j, 0.0, mode - spread});
    const double first = LogMass(start, tilt);
    double term = 1;
    double sum = 1;
    for (double i = start; i < k_; ++i) {
      const double ratio = (k_ - i) / (i + 1) * std::exp(tilt * epsilon_);
      term *= ratio;
      sum += term;
      if (term > 1e250) return ScaledTail(i + 1, first, term, sum, tilt);
      if (ratio < 1 && term < 1e-18 * sum * (1 - ratio)) break;
    }
    return first + std::log(sum);
  }

 private:
  // The same sum after its terms outgrew the first one.
  double ScaledTail(double i, double first, double term, double sum, int tilt) const {
    double shift = first + std::log(term);
    sum /= term;
    term = 1;
    for (; i < k_; ++i) {
      const double ratio = (k_ - i) / (i + 1) * std::exp(tilt * epsilon_);
      term *= ratio;
      sum += term;
      if (term > 1e250) {
        shift += std::log(term);
        sum /= term;
        term = 1;
      }
      if (ratio < 1 && term < 1e-18 * sum * (1 - ratio)) break;
    }
    return shift + std::log(sum);
  }

  double LogMass(double i, int tilt) const {
    const double log_p = tilt > 0 ? -log_miss_ : -epsilon_ - log_miss_;
    const double log_q = tilt > 0 ? -epsilon_ - log_miss_ : -log_miss_;
    if (i == 0) return k_ * log_q;
    if (i == k_) return k_ * log_p;
    const double shape = 0.5 * std::log(k_ / (2 * std::numbers::pi * i * (k_ - i))) +
                         StirlingError(k_) - StirlingError(i) - StirlingError(k_ - i);
    if (epsilon_ > 30) {
      const double x = i / k_;
      return shape - i * (std::log(x) - log_p) - (k_ - i) * (std::log1p(-x) - log_q);
    }
    const double hits = k_ * std::exp(log_p);
    const double misses = k_ * std::exp(log_q);
    return shape - hits * Deviance((i - hits) / hits) -
           misses * Deviance((k_ - i - misses) / misses);
  }

  double epsilon_;
  double k_;
  double log_miss_;
};

// log H at epsilon' for k flips: terms with i >= j where (2j - k) eps is above epsilon'.
double LogHockeyStick(const FlipCounts& counts, double step, double k, double epsilon) {
  const double j = std::floor((epsilon / step + k) / 2) + 1;
  if (j > k) return -kInfinity;
  const double p = counts.LogTail(j, 1);
  const double q = epsilon + counts.LogTail(j, -1);
  return q >= p ? -kInfinity : p + std::log(-std::expm1(q - p));
}

// What is left of total delta for the flips: log of 1 - (1 - delta) / prod (1 - delta_i)^k_i.
// NaN where the steps' own deltas are already too much.
double LogTarget(std::span<const StepGuarantee> steps, double log_delta) {
  double log_keep = 0;  // log prod (1 - delta_i)^k_i
  for (const StepGuarantee& step : steps) {
    if (step.log_delta > -kInfinity) {
      log_keep += static_cast<double>(step.count) * std::log1p(-std::exp(step.log_delta));
    }
  }
  if (log_keep == 0) return log_delta;
  const double delta = std::exp(log_delta);
  const double ratio = std::log1p(-delta) - log_keep;  // negative when something is left
  const double target = -std::expm1(ratio);
  if (!(target >= 0)) return std::nan("");
  // Two nearly equal logarithms were subtracted: what is left shrinks by their rounding.
  return std::log(std::max(0.0, target - 1e-15 * (delta - log_keep)));
}

// Losses rounded up to multiples of a grid; the distribution of their sum by direct convolution.
double GridEpsilon(std::span<const StepGuarantee> steps, double log_target, double cell) {
  std::vector<double> mass = {1};  // under P; index i stands for loss (2i - size + 1) * cell
  for (const StepGuarantee& step : steps) {
    const auto n = static_cast<std::size_t>(std::ceil(step.epsilon / cell * (1 - 1e-15)));
    if (n == 0) continue;
    const double up = 1 / (1 + std::exp(-cell * static_cast<double>(n)));
    for (std::uint64_t i = 0; i < step.count; ++i) {
      std::vector<double> next(mass.size() + n, 0.0);
      for (std::size_t m = 0; m < mass.size(); ++m) {
        next[m] += mass[m] * (1 - up);
        next[m + n] += mass[m] * up;
      }
      mass = std::move(next);
    }
  }
  // From the top: H at loss value l is p - q, where p sums the mass above l and q sums
  // mass * e^(l - loss); find where it passes the target. q is kept relative to the loss at hand,
  // because e^-loss alone underflows from a loss of 709 on.
  const double target = std::exp(log_target);
  const double size = static_cast<double>(mass.size()) - 1;
  const double fall = std::exp(-2 * cell);
  double p = 0;
  double q = 0;
  for (std::size_t m = mass.size(); m-- > 0;) {
    const double loss = (2 * static_cast<double>(m) - size) * cell;
    if (loss <= 0) break;
    p += mass[m];
    q += mass[m];
    const double below = std::max(0.0, loss - 2 * cell);
    if (p - std::exp(below - loss) * q > target) {
      return std::clamp(loss + std::log((p - target) / q), below, loss) * (1 + 1e-9) + 1e-12;
    }
    q *= fall;
  }
  return 0;
}

// Beyond this many flips the sums of binomial tails, of 40 standard deviations, take too long.
constexpr double kMaxSummed = 3e8;

// The same composition by the engine for any pair; an upper bound, 1e-3 from it at most.
double ManyFlips(const StepGuarantee& steps, double log_target) {
  LossPair flip;
  const double keep = 1 / (1 + std::exp(-steps.epsilon));
  flip.atoms = {{steps.epsilon, keep}, {-steps.epsilon, keep * std::exp(-steps.epsilon)}};
  const CountedPair flips{std::move(flip), steps.count};
  return SmoothedEpsilon(std::span(&flips, 1), log_target, {true, false}).upper;
}

}  // namespace

double OptimalLogDelta(const StepGuarantee& steps, double epsilon) {
  const double k = static_cast<double>(steps.count);
  const double log_keep =
      steps.log_delta == -kInfinity ? 0 : k * std::log1p(-std::exp(steps.log_delta));
  double log_hockey = -kInfinity;
  if (std::isinf(steps.epsilon)) return std::isinf(epsilon) ? steps.log_delta : 0;
  if (steps.epsilon > 0 && steps.count > 0) {
    log_hockey = LogHockeyStick(FlipCounts(steps.epsilon, k), steps.epsilon, k, epsilon);
  }
  if (log_keep == 0) return std::min(0.0, log_hockey + kOptimalMargin);
  // 1 - keep (1 - H)
  const double delta = -std::expm1(log_keep) + std::exp(log_keep + log_hockey);
  return std::min(0.0, std::log(delta) + kOptimalMargin);
}

double OptimalEpsilon(const StepGuarantee& steps, double log_delta) {
  SORDINO_CHECK(log_delta <= 0, "log delta above 0");
  if (log_delta == 0) return 0;
  const double log_target = LogTarget(std::span(&steps, 1), log_delta);
  if (std::isnan(log_target)) return kInfinity;
  if (steps.epsilon == 0 || steps.count == 0) return 0;
  if (std::isinf(steps.epsilon)) return kInfinity;
  const double k = static_cast<double>(steps.count);
  const double basic = k * steps.epsilon;
  if (k > kMaxSummed) return std::min(basic * (1 + kOptimalMargin), ManyFlips(steps, log_target));
  const FlipCounts counts(steps.epsilon, k);
  if (LogHockeyStick(counts, steps.epsilon, k, 0) <= log_target) return 0;
  if (LogHockeyStick(counts, steps.epsilon, k, basic - 2 * steps.epsilon) > log_target &&
      log_target == -kInfinity) {
    return basic;
  }
  // The smallest j with H at loss (2j - k) eps no larger than the target.
  double low = std::floor(k / 2);  // H above the target, or loss not positive
  double high = k;
  while (high - low > 1) {
    const double mid = std::floor(0.5 * (low + high));
    const double loss = (2 * mid - k) * steps.epsilon;
    if (loss > 0 && LogHockeyStick(counts, steps.epsilon, k, loss) <= log_target) {
      high = mid;
    } else {
      low = mid;
    }
  }
  // Between two losses H = S_P - e^eps S_Q with fixed sums.
  const double p = counts.LogTail(high, 1);
  const double q = counts.LogTail(high, -1);
  if (log_target >= p) return std::max(0.0, std::min(basic, (2 * high - k) * steps.epsilon));
  const double left = -std::expm1(log_target - p);  // (S_P - target) / S_P
  const double epsilon = p + std::log(left) - q;
  const double slack = kOptimalMargin * (std::abs(p) + std::abs(q) + 1) * 1e-1 / left;
  return std::clamp(epsilon * (1 + kOptimalMargin) + slack, 0.0, basic);
}

double OptimalEpsilon(std::span<const StepGuarantee> steps, double log_delta) {
  SORDINO_CHECK(log_delta <= 0, "log delta above 0");
  if (log_delta == 0 || steps.empty()) return 0;
  if (steps.size() == 1) return OptimalEpsilon(steps[0], log_delta);
  const double log_target = LogTarget(steps, log_delta);
  if (std::isnan(log_target)) return kInfinity;
  const StepGuarantee basic = ComposeBasic(steps);
  if (basic.epsilon == 0 || std::isinf(basic.epsilon) || log_target == -kInfinity) {
    return basic.epsilon;
  }
  double count = 0;
  for (const StepGuarantee& step : steps) count += static_cast<double>(step.count);

  std::vector<std::pair<double, std::vector<LossNode>>> responses;
  for (const StepGuarantee& step : steps) {
    responses.emplace_back(static_cast<double>(step.count), PlainNodes(PureAtoms(step.epsilon)));
  }
  const auto curve = [&responses](double order) {
    double total = 0;
    for (const auto& [times, nodes] : responses) total += times * RenyiFromNodes(nodes, order);
    return total;
  };
  double best = std::min(basic.epsilon, MinimizeEpsilon(curve, log_target).epsilon);
  constexpr double kMaxSteps = 400;
  constexpr double kCells = 60000;
  if (count <= kMaxSteps && log_target > -600) {
    best = std::min(best, GridEpsilon(steps, log_target, basic.epsilon / kCells));
  }
  return best;
}

}  // namespace sordino
