#include "sordino/accounting/internal/pairs/bounded_range.h"

#include <algorithm>
#include <boost/math/special_functions/beta.hpp>
#include <cmath>
#include <vector>

#include "sordino/base/quantity.h"

namespace sordino {
namespace {

constexpr std::uint64_t kRangeBlock = 256;
constexpr std::uint64_t kQuickBlock = 32;
// The range is cut into m intervals, as many as this work (pieces looked at) allows; what the
// straight lines add to the variance of a step is about 1 / m^2 of it.
constexpr double kRangeWork = 1e7;
constexpr double kQuickRangeWork = 2e5;
constexpr double kMaxRangeCells = 1000;
constexpr double kMinRangeCells = 8;
constexpr std::size_t kSampledRangeCells = 64;
// The same for a strategy from below, whose chances below e^-250 are dropped.
constexpr double kStrategyWork = 6e6;
constexpr double kMaxStrategyCells = 200;
constexpr double kStrategyDrop = 1e-250;
// A step's values are sums of positive terms, and the best t is good to at least half the digits.
constexpr double kStepRaise = 1e-11;

// F_n at u = e^{ih}, i >= 0.
class RangeProfile {
 public:
  RangeProfile(double range, std::size_t cells, std::size_t top)
      : cells_(cells), step_(range / static_cast<double>(cells)), high_(std::expm1(range) + 1) {
    values_.assign(top + 1, 0.0);
    span_ = std::expm1(range);
    for (std::size_t l = 0; l <= cells; ++l) {
      fall_.push_back(std::exp(-step_ * static_cast<double>(l)));
    }
  }

  void AddStep() {
    // F from -cells - 1 to top + cells + 1.
    const std::size_t pad = cells_ + 1;
    const std::size_t top = values_.size() - 1;
    std::vector<double> padded(top + 2 * pad + 1, values_.back());
    std::copy(values_.begin(), values_.end(), padded.begin() + static_cast<std::ptrdiff_t>(pad));
    for (std::size_t i = 1; i <= pad; ++i) {
      const double fall = -std::expm1(-step_ * static_cast<double>(i));
      const double mirror = values_[std::min(i, top)];
      padded[pad - i] = fall + (1 - fall) * mirror;
    }
    std::vector<double> next(values_.size(), 0.0);
    for (std::size_t l = 0; l < cells_; ++l) RaiseBy(padded, l, next);
    for (double& value : next) value = std::min(1.0, value * (1 + kStepRaise));
    values_ = std::move(next);
  }

  double step() const { return step_; }
  const std::vector<double>& values() const { return values_; }

 private:
  // The largest over t in [l, l + 1] steps: y = e^-t from fall_[l + 1] to fall_[l].
  void RaiseBy(const std::vector<double>& padded, std::size_t l, std::vector<double>& next) const {
    const double y0 = fall_[l + 1];
    const double y1 = fall_[l];
    const double per_y = 1 / (y1 - y0);
    // F(u y) is first + (second - first) w, and F(u y e^e) lies `cells` points further.
    const double* first = padded.data() + (cells_ + 1) - (l + 1);
    const double* far = first + cells_;
    const auto count = next.size();
    for (std::size_t i = 0; i < count; ++i) {
      const double a_slope = (first[i + 1] - first[i]) * per_y;
      const double b_slope = (far[i + 1] - far[i]) * per_y;
      const double bend = std::max(b_slope - high_ * a_slope, 0.0);
      const double rise = (first[i] - a_slope * y0) - (far[i] - b_slope * y0);
      const double best = std::sqrt(std::max(rise, 0.0) / std::max(bend, 1e-300));
      const double y = std::clamp(best, y0, y1);
      const double w = (y - y0) * per_y;
      const double p = std::clamp((high_ - 1 / y) / span_, 0.0, 1.0);
      const double near_value = first[i] + (first[i + 1] - first[i]) * w;
      const double far_value = far[i] + (far[i + 1] - far[i]) * w;
      next[i] = std::max(next[i], p * near_value + (1 - p) * far_value);
    }
  }

  std::size_t cells_;
  double step_;
  double high_;  // e^range
  double span_;  // e^range - 1
  std::vector<double> fall_;
  std::vector<double> values_;
};

// The best t among the points, for what is left of epsilon and of the steps.
class StrategySearch {
 public:
  StrategySearch(double range, std::int64_t cells, std::int64_t top) : cells_(cells), top_(top) {
    for (std::int64_t l = 0; l <= cells; ++l) {
      // e^range - e^t over e^range - 1.
      const double rest = range * static_cast<double>(cells - l) / static_cast<double>(cells);
      high_.push_back(std::expm1(-rest) / std::expm1(-range));
    }
    for (std::int64_t i = 0; i <= top + cells; ++i) {
      rise_.push_back(-std::expm1(-range * static_cast<double>(i) / static_cast<double>(cells)));
    }
    values_.assign(static_cast<std::size_t>(top) + 1, 0.0);
  }

  void AddStep() {
    std::vector<double> best(values_.size(), -1.0);
    std::vector<std::uint16_t> choice(values_.size(), 0);
    for (std::int64_t l = 0; l <= cells_; ++l) {
      const double p = HighChance(l);
      for (std::int64_t i = 0; i <= top_; ++i) {
        const double value = p * At(i - l) + (1 - p) * At(i - l + cells_);
        const auto at = static_cast<std::size_t>(i);
        if (!(value > best[at])) continue;
        best[at] = value;
        choice[at] = static_cast<std::uint16_t>(l);
      }
    }
    values_ = std::move(best);
    choices_.push_back(std::move(choice));
  }

  // With `left` steps to go. Below zero P and Q have changed places.
  std::int64_t Choice(std::size_t left, std::int64_t i) const {
    const auto at = static_cast<std::size_t>(std::min(std::abs(i), top_));
    const std::int64_t l = choices_[left - 1][at];
    return i < 0 ? cells_ - l : l;
  }
  double HighChance(std::int64_t l) const { return high_[static_cast<std::size_t>(l)]; }

 private:
  double At(std::int64_t i) const {
    if (i > top_) return 0;
    if (i >= 0) return values_[static_cast<std::size_t>(i)];
    const double rise = rise_[static_cast<std::size_t>(-i)];
    return rise + (1 - rise) * (-i <= top_ ? values_[static_cast<std::size_t>(-i)] : 0);
  }

  std::int64_t cells_;
  std::int64_t top_;
  std::vector<double> high_;
  std::vector<double> rise_;
  std::vector<double> values_;
  std::vector<std::vector<std::uint16_t>> choices_;
};

// How far up losses are kept, in units of the range: all of them, or beyond what Hoeffding's
// inequality leaves to e^log_lost.
double ReachOf(double range, std::uint64_t steps, double log_lost) {
  const auto n = static_cast<double>(steps);
  const double mean = n * 0.5 * std::tanh(0.25 * range);
  return std::min(n, mean + std::sqrt(0.5 * n * std::max(1.0, -log_lost)));
}

LossPair UpperOnCells(double range, std::uint64_t steps, double reach, std::size_t cells) {
  RangeProfile profile(range, cells,
                       static_cast<std::size_t>(std::ceil(reach * static_cast<double>(cells))));
  for (std::uint64_t i = 0; i < steps; ++i) profile.AddStep();
  const std::vector<double>& f = profile.values();
  const double h = profile.step();
  const std::size_t top = f.size() - 1;
  LossPair pair;
  pair.infinite_mass = f[top];
  pair.on_lattice = true;
  double total = 0;
  // The fall of the slope at u is its mass under Q; that of 1/u is the mirror image.
  for (std::size_t i = 0; i <= top; ++i) {
    const double below =
        i > 0 ? f[i - 1] : -std::expm1(-h) + std::exp(-h) * f[std::min<std::size_t>(1, top)];
    const double above = i < top ? f[i + 1] : f[i];
    const double mass = (below - f[i]) / -std::expm1(-h) - (f[i] - above) / std::expm1(h);
    if (!(mass > 0)) continue;
    const double loss = h * static_cast<double>(i);
    pair.atoms.push_back({loss, mass});
    total += mass;
    if (i == 0) continue;
    pair.atoms.push_back({-loss, mass * std::exp(-loss)});
    total += pair.atoms.back().mass;
  }
  // What rounding leaves of the masses' sum; by symmetry it is the same under Q.
  pair.missing_p = 1 - total - pair.infinite_mass;
  pair.absent_q = 1 - total;
  return pair;
}

// log delta(epsilon) of `count` copies of the two losses t and t - range: the first i copies of the
// low one, by binomial tails.
double LogDeltaOfCopies(double range, double t, double count, double epsilon) {
  const double p = std::clamp((std::exp(range) - std::exp(t)) / std::expm1(range), 0.0, 1.0);
  const double q = p * std::exp(-t);
  const double most = std::floor((count * t - epsilon) / range);
  if (!(most >= 0) || p == 0) return -kInfinity;
  if (most >= count) return std::log(-std::expm1(epsilon));
  // Pr[Bin(count, 1 - p) <= most].
  const double with = boost::math::ibeta(count - most, most + 1, p);
  const double without = boost::math::ibeta(count - most, most + 1, q);
  return with > 0 ? std::log(std::max(with - std::exp(epsilon + std::log(without)), 1e-300))
                  : -kInfinity;
}

double EpsilonOfCopies(double range, double t, double count, double log_delta) {
  double low = 0;
  double high = count * t;
  for (int i = 0; i < 40 && high - low > 1e-4 * high; ++i) {
    const double middle = 0.5 * (low + high);
    (LogDeltaOfCopies(range, t, count, middle) > log_delta ? low : high) = middle;
  }
  return low;
}

}  // namespace

std::uint64_t BoundedRangeBlock(std::uint64_t count, Effort effort) {
  const std::uint64_t most = effort == Effort::kFull ? kRangeBlock : kQuickBlock;
  const std::uint64_t blocks = count / most + (count % most > 0 ? 1 : 0);
  return blocks == 0 ? 1 : count / blocks + (count % blocks > 0 ? 1 : 0);
}

LossPair BoundedRangeUpper(double range, std::uint64_t steps, double log_lost, Effort effort) {
  const double reach = ReachOf(range, steps, log_lost);
  const double work = effort == Effort::kFull ? kRangeWork : kQuickRangeWork;
  const double cells = std::sqrt(work / (static_cast<double>(steps) * reach));
  return UpperOnCells(range, steps, reach,
                      static_cast<std::size_t>(std::clamp(cells, kMinRangeCells, kMaxRangeCells)));
}

Outcomes BoundedRangeOutcomes(double range) {
  Outcomes outcomes;
  for (const LossAtom& atom : UpperOnCells(range, 1, 1, kSampledRangeCells).atoms) {
    const double log_p = std::log(atom.mass);
    outcomes.push_back({log_p, log_p - atom.loss, atom.loss});
  }
  return outcomes;
}

double WorstLoss(double range, std::uint64_t count, double log_delta) {
  if (log_delta == -kInfinity) return range * (1 - 0x1p-40);
  const auto n = static_cast<double>(count);
  double best = 0.5 * range;
  double epsilon = 0;
  // The best t at the epsilon of the t before; few steps take some rounds.
  constexpr int kRounds = 40;
  for (int round = 0; round < kRounds; ++round) {
    const double last = epsilon;
    epsilon = EpsilonOfCopies(range, best, n, log_delta);
    if (!(epsilon > last * (1 + 1e-4))) break;
    std::vector<double> candidates;
    constexpr int kScan = 32;
    for (int i = 1; i < kScan; ++i) candidates.push_back(range * i / kScan);
    constexpr std::uint64_t kFewCopies = 64;
    // The best t of those that make l low losses just count (1909.13830, theorem 3.1).
    for (std::uint64_t l = 0; count <= kFewCopies && l <= count; ++l) {
      candidates.push_back((epsilon + (static_cast<double>(l) + 1) * range) / (n + 1));
    }
    double most = LogDeltaOfCopies(range, best, n, epsilon);
    const auto look_at = [&](double t) {
      if (!(t > 0 && t < range)) return;
      const double log_found = LogDeltaOfCopies(range, t, n, epsilon);
      if (log_found > most) most = log_found, best = t;
    };
    for (const double t : candidates) look_at(t);
    for (double width = range / kScan; width > 1e-4 * range; width *= 0.5) {
      look_at(best - 0.5 * width);
      look_at(best + 0.5 * width);
    }
  }
  return best;
}

LossPair BoundedRangeStrategy(double range, std::uint64_t steps, double log_delta) {
  const double reach = ReachOf(range, steps, log_delta - 12);
  const double cells = std::sqrt(kStrategyWork / (static_cast<double>(steps) * reach));
  const auto m = static_cast<std::int64_t>(std::clamp(cells, kMinRangeCells, kMaxStrategyCells));
  const double h = range / static_cast<double>(m);
  const double t = WorstLoss(range, steps, log_delta);
  const double epsilon = EpsilonOfCopies(range, t, static_cast<double>(steps), log_delta);
  StrategySearch search(range, m, static_cast<std::int64_t>(reach * static_cast<double>(m)) + 1);
  for (std::uint64_t i = 0; i < steps; ++i) search.AddStep();
  const auto start = static_cast<std::int64_t>(std::llround(epsilon / h));
  const std::int64_t farthest = static_cast<std::int64_t>(steps) * m;
  // Masses of what is left of epsilon, in points from start - farthest on.
  std::vector<double> mass(static_cast<std::size_t>(2 * farthest + 1), 0.0);
  mass[static_cast<std::size_t>(farthest)] = 1;
  for (std::size_t left = steps; left > 0; --left) {
    std::vector<double> next(mass.size(), 0.0);
    for (std::size_t k = 0; k < mass.size(); ++k) {
      if (!(mass[k] > kStrategyDrop)) continue;
      const std::int64_t l = search.Choice(left, static_cast<std::int64_t>(k) - farthest + start);
      const double p = search.HighChance(l);
      const auto down = static_cast<std::size_t>(static_cast<std::int64_t>(k) - l);
      if (p > 0) next[down] += mass[k] * p;
      if (p < 1) next[down + static_cast<std::size_t>(m)] += mass[k] * (1 - p);
    }
    mass = std::move(next);
  }
  LossPair pair;
  pair.on_lattice = true;
  double p_total = 0;
  double q_total = 0;
  for (std::size_t k = 0; k < mass.size(); ++k) {
    if (!(mass[k] > 0)) continue;
    const double loss = h * static_cast<double>(farthest - static_cast<std::int64_t>(k));
    pair.atoms.push_back({loss, mass[k] * (1 - 1e-12)});
    p_total += pair.atoms.back().mass;
    q_total += pair.atoms.back().mass * std::exp(-loss);
  }
  // What was dropped may be anything.
  pair.missing_p = 1 - p_total;
  pair.absent_q = 1 - q_total;
  pair.q_rounding = 0x1p-50;
  return pair;
}

Outcomes TwoLossOutcomes(double range, double t) {
  const double q_high = -std::expm1(t - range) / (std::exp(t) * -std::expm1(-range));
  const double log_high = std::log(q_high);
  const double log_low = std::log1p(-q_high);
  return {{log_high + t, log_high, t}, {log_low + t - range, log_low, t - range}};
}

}  // namespace sordino
