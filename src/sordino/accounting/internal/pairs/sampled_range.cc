#include "sordino/accounting/internal/pairs/sampled_range.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "sordino/base/quantity.h"

namespace sordino {
namespace {

constexpr double kSampledRangeWork = 1.5e7;
constexpr double kQuickSampledRangeWork = 5e5;
constexpr double kMostSampledCells = 400;
constexpr double kLeastSampledCells = 8;
// e^loss stays in the range of a double; larger losses count as infinite.
constexpr double kMostSampledLoss = 600;
// A step's values are sums of small terms, and the best t is good to at least half the digits.
constexpr double kSampledStepRaise = 1e-11;

// F_n less (1 - u)_+ at u = e^{ih}, i from -reach to reach.
class SampledProfile {
 public:
  SampledProfile(double range, double q, double step, std::int64_t reach)
      : q_(q), step_(step), high_(std::exp(range)), reach_(reach) {
    const auto count = static_cast<std::size_t>(2 * reach + 1);
    values_.assign(count, 0.0);
    for (std::int64_t i = -reach; i <= reach; ++i)
      u_.push_back(std::exp(step * static_cast<double>(i)));
    for (std::int64_t i = -2 * reach; i <= 2 * reach; ++i) {
      rise_.push_back(std::expm1(step * static_cast<double>(i)));
    }
    MakeSegments();
  }

  void AddStep() {
    MakeLines();
    std::vector<double> next(values_.size(), 0.0);
    for (const Segment& segment : segments_) RaiseBy(segment, next);
    for (double& value : next) value *= 1 + kSampledStepRaise;
    values_ = std::move(next);
  }

  TwoPairs ToPairs() const {
    LossPair pair;
    LossPair reversed;
    pair.on_lattice = true;
    pair.infinite_mass = values_.back();
    pair.absent_q = values_.front() / u_.front();
    reversed.on_lattice = true;
    reversed.infinite_mass = pair.absent_q;
    reversed.absent_q = pair.infinite_mass;
    double p_total = pair.infinite_mass;
    double q_total = pair.absent_q;
    const auto last = static_cast<std::int64_t>(values_.size()) - 1;
    for (std::int64_t k = 0; k <= last; ++k) {
      const auto at = static_cast<std::size_t>(k);
      const double below = k > 0 ? Slope(at - 1) : pair.absent_q;
      const double above = k < last ? Slope(at) : 0;
      // At u = 1 the slope of (1 - u)_+ changes by one.
      const double mass = above - below + (k == reach_ ? 1 : 0);
      if (!(mass > 0)) continue;
      const double loss = step_ * static_cast<double>(k - reach_);
      pair.atoms.push_back({loss, mass * u_[at]});
      reversed.atoms.push_back({-loss, mass});
      p_total += pair.atoms.back().mass;
      q_total += mass;
    }
    // What rounding leaves.
    pair.missing_p = 1 - p_total;
    pair.absent_q += 1 - q_total;
    reversed.missing_p = 1 - q_total;
    reversed.absent_q += 1 - p_total;
    return {std::move(pair), std::move(reversed)};
  }

 private:
  // z = e^t from z0 to z1, where u / R lies between the points i + near and i + near + 1 for the
  // high ratio, and from i + far on for the low one.
  struct Segment {
    double z0;
    double z1;
    std::int64_t near;
    std::int64_t far;
  };
  // A line by its value at point i, e^{ih} = u, its slope and its value at zero.
  struct Line {
    double value;
    double slope;
    double at_zero;
    double u;
    std::int64_t i;
  };

  double Slope(std::size_t k) const { return (values_[k + 1] - values_[k]) / (u_[k] * Rise(1)); }

  void MakeSegments() {
    // z at which u / R is a point, for the high and for the low ratio.
    std::vector<double> cuts = {1, high_};
    for (std::int64_t l = 1;; ++l) {
      const double z = 1 + std::expm1(step_ * static_cast<double>(l)) / q_;
      if (z >= high_) break;
      cuts.push_back(z);
    }
    for (std::int64_t l = 0;; ++l) {
      const double z = high_ * (1 + std::expm1(-step_ * static_cast<double>(l)) / q_);
      if (z <= 1) break;
      cuts.push_back(z);
    }
    std::sort(cuts.begin(), cuts.end());
    for (std::size_t k = 0; k + 1 < cuts.size(); ++k) {
      if (!(cuts[k + 1] > cuts[k])) continue;
      const double z = 0.5 * (cuts[k] + cuts[k + 1]);
      const double up = std::log1p(q_ * (z - 1)) / step_;
      const double down = -std::log1p(q_ * (z / high_ - 1)) / step_;
      segments_.push_back({cuts[k], cuts[k + 1], static_cast<std::int64_t>(std::floor(-up)),
                           static_cast<std::int64_t>(std::floor(down))});
    }
  }

  // Line k joins the points k - 1 and k; the first and the last are those beyond.
  void MakeLines() {
    lines_.clear();
    lines_.push_back({values_.front(), values_.front() / u_.front(), 0, u_.front(), -reach_});
    for (std::size_t k = 0; k + 1 < values_.size(); ++k) {
      const double slope = Slope(k);
      lines_.push_back({values_[k], slope, values_[k] - slope * u_[k], u_[k],
                        static_cast<std::int64_t>(k) - reach_});
    }
    lines_.push_back({values_.back(), 0, values_.back(), u_.back(), reach_});
  }
  const Line& LineFrom(std::int64_t i) const {
    const std::int64_t last = std::ssize(lines_) - 1;
    return lines_[static_cast<std::size_t>(std::clamp<std::int64_t>(i + reach_ + 1, 0, last))];
  }

  // e^{ih} - 1.
  double Rise(std::int64_t i) const { return rise_[static_cast<std::size_t>(i + 2 * reach_)]; }
  // The line times R, at R = 1 - q.
  double WithoutRecord(const Line& line, std::int64_t i) const {
    return line.value * (1 - q_) + line.slope * line.u * (Rise(i - line.i) + q_);
  }

  void RaiseBy(const Segment& segment, std::vector<double>& next) const {
    const double span = high_ - 1;
    for (std::int64_t i = -reach_; i <= reach_; ++i) {
      const auto at = static_cast<std::size_t>(i + reach_);
      const Line& near = LineFrom(i + segment.near);
      const Line& far = LineFrom(i + segment.far);
      // What (1 - u)_+ adds: R - u of the high ratio for u >= 1, u - R of the low one for u < 1.
      const double high_adds = i >= 0 && i + segment.near < 0 ? 1 : 0;
      const double low_adds = i < 0 && i + segment.far >= 0 ? 1 : 0;
      // R F(u / R) as a line in z = e^t, at z = 0 for the high ratio; the low one has z / e^range.
      const double left = Rise(i) + q_;  // u - (1 - q)
      const double near_zero = WithoutRecord(near, i) - high_adds * left;
      const double far_zero = WithoutRecord(far, i) + low_adds * left;
      const double near_rise = (near.at_zero + high_adds) * q_;
      const double far_rise = (far.at_zero - low_adds) * q_;
      const double c1 = (near_zero - far_zero) * high_;
      const double c2 = far_rise - near_rise;
      double z = segment.z0;
      if (c1 < 0) z = c2 < 0 ? std::sqrt(c1 / c2) : segment.z1;
      z = std::clamp(z, segment.z0, segment.z1);
      const double value = ((high_ / z - 1) * (near_zero + near_rise * z) +
                            (high_ - high_ / z) * (far_zero + far_rise * z / high_)) /
                           span;
      next[at] = std::max(next[at], value);
    }
  }

  double q_;
  double step_;
  double high_;  // e^range
  std::int64_t reach_;
  std::vector<double> u_;
  std::vector<double> rise_;
  std::vector<double> values_;
  std::vector<Line> lines_;
  std::vector<Segment> segments_;
};

}  // namespace

TwoPairs SampledRangeUpper(double range, double q, std::uint64_t steps, double log_lost,
                           Effort effort) {
  const double width = std::log1p(q * std::expm1(range)) - std::log1p(q * std::expm1(-range));
  const auto n = static_cast<double>(steps);
  // Losses beyond these, in units of the width, are as rare as asked for (Hoeffding).
  const double rare =
      1 + n * 0.5 * std::tanh(0.25 * width) + std::sqrt(0.5 * n * std::max(1.0, -log_lost));
  const double reach = std::min({n, rare, kMostSampledLoss / width});
  const double work = effort == Effort::kFull ? kSampledRangeWork : kQuickSampledRangeWork;
  const double cells = std::floor(
      std::clamp(std::sqrt(work / (2 * n * reach)), kLeastSampledCells, kMostSampledCells));
  SampledProfile profile(range, q, width / cells,
                         static_cast<std::int64_t>(std::ceil(reach * cells)) + 1);
  for (std::uint64_t i = 0; i < steps; ++i) profile.AddStep();
  return profile.ToPairs();
}

}  // namespace sordino
