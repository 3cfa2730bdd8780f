#include "sordino/accounting/internal/renyi/renyi_gaussian.h"

#include <algorithm>
#include <boost/math/quadrature/gauss.hpp>
#include <cmath>
#include <limits>
#include <numbers>
#include <span>

#include "sordino/base/quantity.h"

namespace sordino {
namespace {

// log of 1 / (sum over a lattice of exp(-u^2 / 2)), u in steps.
double LogLatticeUnit(double step) {
  double mass = 1;
  for (int j = 1; j * step < 40; ++j) mass += 2 * std::exp(-0.5 * j * step * j * step);
  return -std::log(mass);
}

double LogTrapezoidUnit(double step) {
  return std::log(step) - 0.5 * std::log(2 * std::numbers::pi);
}

// The divergence by panels, and a part of the moment that is known (-infinity: none). A panel whose
// middle is e^-drop of what was summed does not count.
template <typename NodesOf>
double DivergenceOf(std::span<const NodePanel> panels, double order, double log_known, double drop,
                    NodesOf nodes_of) {
  double log_scale = log_known;
  for (const NodePanel& panel : panels) {
    log_scale = std::max(log_scale, panel.log_weight + order * panel.loss);
  }
  MomentSum sum(order, log_scale);
  if (log_known > -kInfinity) sum.AddClosedForm(log_known);
  const double floor = sum.scaled() ? 1 : 0;
  const double offset = std::log(order + 1) - (sum.scaled() ? log_scale : 0);
  for (std::size_t i = 0; i < panels.size(); ++i) {
    const double log_term = panels[i].log_weight + std::max(0.0, order * panels[i].loss) + offset;
    if (log_term < -drop + std::log(std::max(sum.sum(), floor))) continue;
    for (const LossNode& node : nodes_of(i)) sum.Add(node);
  }
  return sum.Divergence();
}

}  // namespace

SampledGaussian::SampledGaussian(double q, double sigma, double grid_step)
    : q_(q), sigma_(sigma), step_(0.5 * std::min(sigma, 1.0)) {
  transition_ = sigma * (std::log1p(-q) - std::log(q)) + 0.5 / sigma;
  log_unit_ = LogTrapezoidUnit(step_);
  if (grid_step > step_) {
    // A lattice finer than the trapezoid's own step gives the integral to the last digit; only a
    // coarser one differs from it.
    step_ = grid_step;
    log_unit_ = LogLatticeUnit(step_);
  }
  const auto reach = static_cast<std::int64_t>(std::ceil(9 / step_));
  first_ = -reach;
  for (std::int64_t j = -reach; j <= reach; ++j) cache_.push_back(NodeAt(j));
}

double SampledGaussian::LossAt(double u) const {
  return SampledLoss(q_, u / sigma_ - 0.5 / (sigma_ * sigma_));
}

LossNode SampledGaussian::NodeAt(std::int64_t j) const {
  const double u = static_cast<double>(j) * step_;
  return MakeLossNode(log_unit_ - 0.5 * u * u, LossAt(u));
}

const LossNode& SampledGaussian::Cached(std::int64_t j) {
  constexpr std::int64_t kMaxMomentNodes = 20000;
  constexpr std::int64_t kWidestGap = 2000;
  const std::int64_t end = first_ + static_cast<std::int64_t>(cache_.size());
  if (j >= first_ && j < end) return cache_[static_cast<std::size_t>(j - first_)];
  if (j >= end && j - end < kWidestGap && j - first_ < kMaxMomentNodes) {
    for (std::int64_t i = end; i <= j; ++i) cache_.push_back(NodeAt(i));
    return cache_.back();
  }
  scratch_ = NodeAt(j);
  return scratch_;
}

// Derivative of log(weight * ratio^order) in u.
double SampledGaussian::Slope(double u, double order) const {
  const double share = 1 / (1 + std::exp((transition_ - u) / sigma_));
  return order / sigma_ * share - u;
}

// Local maxima of log(weight * ratio^order). The slope falls, rises between two turning points
// around the transition (where share (1 - share) exceeds sigma^2 / order) and falls again, so
// there are at most two, one in each falling stretch.
void SampledGaussian::AppendPeaks(double order, std::vector<double>* peaks) const {
  const double end = order / sigma_;
  const auto bisect = [&](double low, double high) {
    if (!(Slope(low, order) > 0 && Slope(high, order) <= 0)) return;
    for (int i = 0; i < 200 && high - low > 0.25 * std::min(1.0, sigma_); ++i) {
      const double mid = 0.5 * (low + high);
      (Slope(mid, order) > 0 ? low : high) = mid;
    }
    peaks->push_back(0.5 * (low + high));
  };
  const double bend = 1 - 4 * sigma_ * sigma_ / order;
  if (bend <= 0) {
    bisect(0, end);
    return;
  }
  const double root = std::sqrt(bend);
  const double reach = sigma_ * std::log((1 + root) / (1 - root));
  const double left = std::clamp(transition_ - reach, 0.0, end);
  const double right = std::clamp(transition_ + reach, 0.0, end);
  bisect(0, left);
  bisect(right, end);
  if (left == 0 && right == end) peaks->push_back(0);
}

double SampledGaussian::Renyi(double order) {
  std::vector<double> peaks = {0};
  const double top = std::max(2.0, order) / sigma_;
  // Far beyond the transition the ratio is q e^z to the last digit, and the bump around
  // order / sigma integrates to q^alpha exp(alpha (alpha - 1) / (2 sigma^2)).
  const double clear = transition_ + sigma_ * (42 + std::log(order));
  const bool closed_bump = order > 4 && step_ <= 0.5 * std::min(sigma_, 1.0) &&
                           order / sigma_ - 14 > std::max(clear, 2 / sigma_ + 14);
  const double log_bump = order * (order - 1) / (2 * sigma_ * sigma_) + order * std::log(q_);
  AppendPeaks(order, &peaks);
  for (const double place : {2 / sigma_, transition_, transition_ - sigma_ * std::log(order)}) {
    peaks.push_back(std::clamp(place, 0.0, top));
  }
  if (closed_bump) {
    std::erase_if(peaks, [&](double peak) { return peak > order / sigma_ - 14; });
  } else {
    peaks.push_back(order / sigma_);
  }

  double log_scale = closed_bump ? log_bump : -kInfinity;
  std::vector<std::pair<std::int64_t, std::int64_t>> windows;
  for (const double peak : peaks) {
    log_scale = std::max(log_scale, log_unit_ - 0.5 * peak * peak + order * LossAt(peak));
    windows.emplace_back(static_cast<std::int64_t>(std::floor((peak - 5) / step_)),
                         static_cast<std::int64_t>(std::ceil((peak + 5) / step_)));
  }
  std::sort(windows.begin(), windows.end());
  std::size_t kept = 0;
  for (std::size_t i = 1; i < windows.size(); ++i) {
    if (windows[i].first <= windows[kept].second + 1) {
      windows[kept].second = std::max(windows[kept].second, windows[i].second);
    } else {
      windows[++kept] = windows[i];
    }
  }
  windows.resize(kept + 1);

  MomentSum sum(order, log_scale);
  if (closed_bump) sum.AddClosedForm(log_bump);
  for (const auto& [low, high] : windows) {
    for (std::int64_t j = low; j <= high; ++j) sum.Add(Cached(j));
  }
  // Outside the windows the integrand only falls: walk on until it no longer counts.
  constexpr double kNegligible = 1e-18;
  for (std::size_t i = 0; i < windows.size(); ++i) {
    const std::int64_t floor =
        i == 0 ? std::numeric_limits<std::int64_t>::min() : windows[i - 1].second + 1;
    for (std::int64_t j = windows[i].first - 1; j >= floor; --j) {
      if (sum.Add(Cached(j)) <= kNegligible * sum.sum()) break;
      windows[i].first = j;
    }
    const std::int64_t ceiling = i + 1 == windows.size() ? std::numeric_limits<std::int64_t>::max()
                                                         : windows[i + 1].first - 1;
    for (std::int64_t j = windows[i].second + 1; j <= ceiling; ++j) {
      windows[i].second = j;
      if (sum.Add(Cached(j)) <= kNegligible * sum.sum()) break;
    }
  }
  return sum.Divergence();
}

ReplacedGaussian::ReplacedGaussian(double q, double sigma, double grid_step)
    : q_(q), sigma_(sigma), step_(0.2 * std::min(sigma, 1.0)), log_unit_(LogTrapezoidUnit(step_)) {
  if (grid_step > step_) {
    // As above. Far apart, each point is a panel of its own.
    step_ = grid_step;
    log_unit_ = LogLatticeUnit(step_);
    nodes_in_panel_ = 1;
  }
}

LossNode ReplacedGaussian::NodeAt(double j) const {
  const double u = step_ * j;
  const double drift = 0.5 / (sigma_ * sigma_);
  const double up = SampledLoss(q_, u / sigma_ - drift);
  const double down = SampledLoss(q_, -u / sigma_ - drift);
  return MakeLossNode(log_unit_ - 0.5 * u * u + down, up - down);
}

// Left panels hold the nodes -1 ... -16, -17 ...; right panels 0 ... 15, 16 ....
double ReplacedGaussian::FirstNode(std::size_t index) const {
  const std::size_t panel = index / 2;  // left and right panels take turns
  const double first = nodes_in_panel_ * static_cast<double>(panel);
  return index % 2 == 0 ? first : -first - nodes_in_panel_;
}

const std::vector<LossNode>& ReplacedGaussian::NodesOf(std::size_t index) {
  std::vector<LossNode>& nodes = panels_[index].nodes;
  for (double i = static_cast<double>(nodes.size()); i < nodes_in_panel_; ++i) {
    nodes.push_back(NodeAt(FirstNode(index) + i));
  }
  return nodes;
}

double ReplacedGaussian::Renyi(double order) {
  constexpr double kMaxPanels = 200000;
  const double count = std::ceil(((2 * order + 2) / sigma_ + 12) / step_ / nodes_in_panel_);
  // Quasi-convexity: the pair is no further apart than N(1) and N(-1).
  const double unsampled = 2 * order / (sigma_ * sigma_);
  if (!(2 * count < kMaxPanels)) return unsampled;
  const auto used = 2 * static_cast<std::size_t>(count);
  for (std::size_t i = panels_.size(); i < used; ++i) {
    const LossNode middle = NodeAt(FirstNode(i) + 0.5 * (nodes_in_panel_ - 1));
    panels_.push_back({middle.log_weight, middle.loss, {}});
  }
  // The logarithm of the integrand bends down at most about 7 times as fast as a Gaussian's, so
  // where it counts (45 below its peak) its slope is below 25, and the middle of a panel of width
  // 3.2 is at most 40 lower.
  return std::min(unsampled, DivergenceOf(std::span(panels_).first(used), order, -kInfinity, 100,
                                          [this](std::size_t i) { return std::span(NodesOf(i)); }));
}

HalfProfileGaussian::HalfProfileGaussian(double q, double sigma)
    : q_(q), sigma_(sigma), width_(std::min(sigma, 1.0)) {
  transition_ = sigma * (std::log1p(-q) - std::log(q)) + 0.5 / sigma;
}

void HalfProfileGaussian::Extend(std::size_t count) {
  const double log_normal = std::log(width_) - 0.5 * std::log(2 * std::numbers::pi);
  for (std::size_t i = panels_.size(); i < count; ++i) {
    // The loss of the unsampled pair is u / sigma - 1 / (2 sigma^2) = offset / sigma.
    const double offset = width_ * (static_cast<double>(i) + 0.5);
    const double u = 0.5 / sigma_ + offset;
    panels_.push_back({log_normal - 0.5 * u * u, SampledLoss(q_, offset / sigma_), {}});
  }
}

const std::vector<LossNode>& HalfProfileGaussian::NodesOf(std::size_t index) {
  using Rule = boost::math::quadrature::gauss<double, 16>;
  std::vector<LossNode>& nodes = panels_[index].nodes;
  if (!nodes.empty()) return nodes;
  const double log_normal = -0.5 * std::log(2 * std::numbers::pi);
  const double start = width_ * static_cast<double>(index);
  for (std::size_t n = 0; n < Rule::abscissa().size(); ++n) {
    for (const double sign : {-1.0, 1.0}) {
      const double offset = start + 0.5 * width_ * (1 + sign * Rule::abscissa()[n]);
      const double u = 0.5 / sigma_ + offset;
      const double log_weight =
          std::log(0.5 * width_ * Rule::weights()[n]) + log_normal - 0.5 * u * u;
      const double y = SampledLoss(q_, offset / sigma_);
      nodes.push_back(MakeLossNode(log_weight, y));
      nodes.push_back(MakeLossNode(log_weight + y, -y));
    }
  }
  return nodes;
}

double HalfProfileGaussian::Renyi(double order) {
  const double unsampled = order / (2 * sigma_ * sigma_);
  const double clear = transition_ + sigma_ * (42 + std::log(order));
  const bool closed_bump = order > 4 && order / sigma_ - 14 > std::max(clear, 2 / sigma_ + 14);
  const double log_bump = order * (order - 1) / (2 * sigma_ * sigma_) + order * std::log(q_);
  const double end =
      closed_bump ? std::max(clear, 2 / sigma_ + 14) : std::max(2.0, order) / sigma_ + 14;
  constexpr double kMaxPanels = 200000;
  const double count = std::max(1.0, std::ceil((end - 0.5 / sigma_) / width_));
  if (!(count <= kMaxPanels)) return unsampled;
  const auto used = static_cast<std::size_t>(count);
  Extend(used);
  // The logarithm of the integrand bends down no faster than a Gaussian's, so where it counts (45
  // below its peak) its slope is at most 10, and the middle of a panel is at most 5 lower.
  return std::min(unsampled, DivergenceOf(std::span(panels_).first(used), order,
                                          closed_bump ? log_bump : -kInfinity, 60,
                                          [this](std::size_t i) { return std::span(NodesOf(i)); }));
}

MixtureGaussianMoments::MixtureGaussianMoments(double sigma,
                                               std::vector<std::pair<double, double>> parts)
    : sigma_(sigma), parts_(std::move(parts)) {
  std::erase_if(parts_, [](const auto& part) { return part.second == 0; });
  for (const auto& [shift, probability] : parts_) largest_ = std::max(largest_, shift);
  step_ = 0.1 * (largest_ > sigma_ ? sigma_ / largest_ : 1.0);
}

void MixtureGaussianMoments::Extend(std::size_t count) {
  const double log_unit = std::log(step_) - 0.5 * std::log(2 * std::numbers::pi);
  for (std::size_t i = forward_.size(); i < count; ++i) {
    const double side = i % 2 == 0 ? -0.5 : 0.5;
    const double u = step_ * std::round(side * static_cast<double>(i + i % 2));
    double highest = -kInfinity;
    double excess = 0;
    for (const auto& [shift, probability] : parts_) {
      const double loss = shift / sigma_ * (u - 0.5 * shift / sigma_);
      highest = std::max(highest, loss);
      excess += probability * std::expm1(std::min(loss, 30.0));
    }
    double y = std::log1p(std::max(excess, -0.5));
    if (highest >= 30 || excess < -0.5) {
      double scaled = 0;
      for (const auto& [shift, probability] : parts_) {
        scaled += probability * std::exp(shift / sigma_ * (u - 0.5 * shift / sigma_) - highest);
      }
      y = highest + std::log(scaled);
    }
    const double log_weight = log_unit - 0.5 * u * u;
    forward_.push_back(MakeLossNode(log_weight, y));
    reverse_.push_back(MakeLossNode(log_weight + y, -y));
  }
}

double MixtureGaussianMoments::Renyi(double order) {
  if (largest_ == 0) return 0;
  // Quasi-convexity: no further apart than the largest shift alone.
  const double whole = order * largest_ * largest_ / (2 * sigma_ * sigma_);
  const double top = std::max(2.0, order) * largest_ / sigma_ + 12;
  constexpr double kMaxMomentNodes = 40000;
  if (!(2 * top / step_ < kMaxMomentNodes)) return whole;
  const std::size_t count = 2 * static_cast<std::size_t>(std::ceil(top / step_)) + 1;
  Extend(count);
  const double forward = RenyiFromNodes(std::span(forward_).first(count), order);
  const double reverse = RenyiFromNodes(std::span(reverse_).first(count), order);
  return std::min(whole, std::max(forward, reverse));
}

}  // namespace sordino
