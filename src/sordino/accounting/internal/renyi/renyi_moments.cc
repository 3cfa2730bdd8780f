#include "sordino/accounting/internal/renyi/renyi_moments.h"

#include <algorithm>
#include <boost/math/quadrature/gauss.hpp>
#include <cmath>
#include <limits>
#include <numbers>

#include "sordino/base/quantity.h"

namespace sordino {
namespace {

constexpr double kRelativeMargin = 1e-12;
// Below this exponent E is summed as it is; exp(600) squared by nothing cannot overflow.
constexpr double kDirectLimit = 600;

// e^x - 1 - x without cancellation.
double Phi(double x) {
  if (std::abs(x) > 0.5) return std::expm1(x) - x;
  double s = 1;
  for (int k = 16; k >= 3; --k) s = 1 + s * x / k;
  return 0.5 * x * x * s;
}

}  // namespace

LossNode MakeLossNode(double log_weight, double loss) {
  LossNode node{log_weight, loss, std::exp(log_weight + loss), 0};
  node.base =
      loss < -1 ? std::exp(log_weight) - node.tilted * (1 - loss) : node.tilted * Phi(-loss);
  return node;
}

MomentSum::MomentSum(double order, double log_scale)
    : order_(order), excess_(order - 1), scaled_(log_scale > kDirectLimit) {
  if (scaled_) shift_ = log_scale;
}

double MomentSum::Add(const LossNode& node) {
  const double exponent = node.log_weight + order_ * node.loss;
  double term;
  if (scaled_) {
    term = std::exp(exponent - shift_);
  } else {
    const double x = excess_ * node.loss;
    double bent = 0;  // tilted * phi(x) / a
    if (excess_ == 0) {
      bent = 0;
    } else if (x > 1) {
      bent = (std::exp(exponent) - node.tilted * (1 + x)) / excess_;
    } else {
      bent = node.tilted * (Phi(x) / excess_);
    }
    term = node.base + bent;
  }
  sum_ += term;
  error_ += term * (std::abs(node.log_weight) + order_ * std::abs(node.loss));
  return term;
}

void MomentSum::AddClosedForm(double log_moment) {
  const double term = scaled_ ? std::exp(log_moment - shift_) : std::exp(log_moment) / excess_;
  sum_ += term;
  error_ += term * std::abs(log_moment);
}

double MomentSum::Divergence() const {
  if (sum_ == 0) return 0;
  constexpr double kUlp = std::numeric_limits<double>::epsilon();
  const double sum = sum_ + 2 * kUlp * error_;
  double divergence;
  if (excess_ == 0) {
    divergence = sum;
  } else if (scaled_) {
    divergence = (shift_ + std::log(sum)) / excess_;
  } else {
    divergence = std::log1p(excess_ * sum) / excess_;
  }
  return divergence * (1 + kRelativeMargin);
}

double RenyiFromNodes(std::span<const LossNode> nodes, double order) {
  double log_scale = -kInfinity;
  for (const LossNode& node : nodes) {
    log_scale = std::max(log_scale, node.log_weight + order * node.loss);
  }
  MomentSum sum(order, log_scale);
  for (const LossNode& node : nodes) sum.Add(node);
  const double divergence = sum.Divergence();
  // A loss beyond the range of a double leaves no number behind.
  return divergence >= 0 ? divergence : kInfinity;
}

LossAtoms PureAtoms(double epsilon) {
  const double log_low = -epsilon - std::log1p(std::exp(-epsilon));  // log 1 / (1 + e^eps)
  return {{log_low, epsilon}, {-std::log1p(std::exp(-epsilon)), -epsilon}};
}

LossAtoms LaplaceAtoms(double lambda) {
  LossAtoms atoms;
  atoms.emplace_back(-std::numbers::ln2, -lambda);
  atoms.emplace_back(-std::numbers::ln2 - lambda, lambda);
  // Panels halve towards both ends, where e^(alpha y) is steep for large orders, and are no wider
  // than a fraction of 1 / lambda, the scale on which the sampled density ratio bends.
  std::vector<double> edges = {0};
  for (int k = 44; k >= 1; --k) {
    const double edge = std::ldexp(1.0, -k);
    const double last = edges.back();
    const int pieces = std::max(1, static_cast<int>(std::ceil((edge - last) * lambda)));
    for (int i = 1; i <= pieces; ++i) edges.push_back(last + (edge - last) * i / pieces);
  }
  using Rule = boost::math::quadrature::gauss<double, 16>;
  for (std::size_t i = 0; i + 1 < edges.size(); ++i) {
    const double half = 0.5 * (edges[i + 1] - edges[i]);
    const double mid = 0.5 * (edges[i + 1] + edges[i]);
    for (std::size_t n = 0; n < Rule::abscissa().size(); ++n) {
      for (const double sign : {-1.0, 1.0}) {
        const double x = mid + sign * half * Rule::abscissa()[n];
        const double log_panel = std::log(Rule::weights()[n] * half * lambda / 2);
        // x from the left end and its mirror image from the right end of [0, 1]; the loss is
        // formed from the distance to the end, so that it is exact there.
        atoms.emplace_back(log_panel - lambda * x, -lambda * (1 - 2 * x));
        atoms.emplace_back(log_panel - lambda * (1 - x), lambda * (1 - 2 * x));
      }
    }
  }
  return atoms;
}

LossAtoms DiscreteLaplaceAtoms(double scale, std::uint64_t sensitivity) {
  const double s = static_cast<double>(sensitivity);
  // pmf(x) = tanh(1/(2 scale)) e^(-|x|/scale); the tail from x >= 0 on sums to 1/(1+e^(-1/scale)).
  const double log_zero = std::log(std::tanh(0.5 / scale));
  const double log_tail = -std::log1p(std::exp(-1 / scale));
  LossAtoms atoms;
  atoms.emplace_back(log_tail, -s / scale);
  atoms.emplace_back(log_tail - s / scale, s / scale);
  for (std::uint64_t i = 1; i < sensitivity; ++i) {
    const double x = static_cast<double>(i);
    atoms.emplace_back(log_zero - x / scale, (2 * x - s) / scale);
  }
  return atoms;
}

std::vector<LossNode> PlainNodes(const LossAtoms& atoms) {
  std::vector<LossNode> nodes;
  nodes.reserve(atoms.size());
  for (const auto& [log_weight, loss] : atoms) nodes.push_back(MakeLossNode(log_weight, loss));
  return nodes;
}

double SampledLoss(double q, double loss) {
  if (q == 1) return loss;
  if (loss > 40) return loss + std::log(q + (1 - q) * std::exp(-loss));
  return std::log1p(q * std::expm1(loss));
}

std::vector<LossNode> PoissonNodes(const LossAtoms& atoms, double q, bool reverse) {
  std::vector<LossNode> nodes;
  nodes.reserve(atoms.size());
  for (const auto& [log_weight, loss] : atoms) {
    const double y = SampledLoss(q, loss);
    nodes.push_back(reverse ? MakeLossNode(log_weight + y, -y) : MakeLossNode(log_weight, y));
  }
  return nodes;
}

std::vector<LossNode> HalfProfileNodes(const LossAtoms& atoms, double q) {
  std::vector<LossNode> nodes;
  nodes.reserve(atoms.size());
  for (const auto& [log_weight, loss] : atoms) {
    if (loss <= 0) continue;
    const double y = SampledLoss(q, loss);
    nodes.push_back(MakeLossNode(log_weight, y));
    nodes.push_back(MakeLossNode(log_weight + y, -y));
  }
  return nodes;
}

std::vector<LossNode> ReplacedLaplaceNodes(double lambda, double q) {
  // Right of 0 the second law is Lap(0) times e^k; left of 0 lies the mirror image.
  const double k = SampledLoss(q, -lambda);
  std::vector<LossNode> nodes;
  const LossAtoms atoms = LaplaceAtoms(lambda);
  nodes.reserve(2 * atoms.size());
  for (std::size_t i = 1; i < atoms.size(); ++i) {  // the first atom is what lies left of 0
    const auto& [log_weight, loss] = atoms[i];
    const double up = SampledLoss(q, loss);
    nodes.push_back(MakeLossNode(log_weight + k, up - k));
    nodes.push_back(MakeLossNode(log_weight + up, k - up));
  }
  return nodes;
}

}  // namespace sordino
