#include "sordino/accounting/internal/renyi/renyi_bounds.h"

#include <algorithm>
#include <boost/math/tools/minima.hpp>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "sordino/accounting/internal/renyi/renyi_moments.h"
#include "sordino/base/quantity.h"

namespace sordino {
namespace {

// The integer-order sums are quadratic in the largest order when scanned.
constexpr int kMaxIntegerOrder = 2048;

double LogBinomial(int n, int k) {
  return std::lgamma(n + 1.0) - std::lgamma(k + 1.0) - std::lgamma(n - k + 1.0);
}

// Sum of positive terms given by their logarithms.
class LogSum {
 public:
  void Add(double log_term) {
    if (log_term == -kInfinity) return;
    if (log_term > top_) {
      sum_ = sum_ * std::exp(top_ - log_term) + 1;
      top_ = log_term;
    } else {
      sum_ += std::exp(log_term - top_);
    }
  }
  // log(1 + sum)
  double Log1p() const {
    if (sum_ == 0) return 0;
    return top_ > 600 ? top_ + std::log(sum_) : std::log1p(std::exp(top_) * sum_);
  }

 private:
  double top_ = -kInfinity;
  double sum_ = 0;
};

double LogExpm1(double x) { return x > 40 ? x : std::log(std::expm1(x)); }

// Remembers inner(2), inner(3), ...
class IntegerCache {
 public:
  explicit IntegerCache(RenyiFunction inner) : inner_(std::move(inner)) {}
  double operator()(int order) {
    while (static_cast<int>(values_.size()) + 2 <= order) {
      values_.push_back(inner_(static_cast<double>(values_.size()) + 2));
    }
    return values_[static_cast<std::size_t>(order - 2)];
  }

 private:
  RenyiFunction inner_;
  std::vector<double> values_;
};

// Rounding of the log-gamma differences, relative to the sum.
constexpr double kMomentMargin = 1e-11;

}  // namespace

RenyiFunction InterpolatedRenyi(std::function<double(int)> at_integer, int largest,
                                RenyiFunction beyond) {
  auto known = std::make_shared<std::vector<double>>();
  return [known, largest, at_integer = std::move(at_integer),
          beyond = std::move(beyond)](double order) {
    if (order > largest) return beyond(order);
    const auto cumulant = [&](int n) {
      if (n == 1) return 0.0;
      while (static_cast<int>(known->size()) + 2 <= n) known->push_back(-1);
      double& value = (*known)[static_cast<std::size_t>(n - 2)];
      if (value < 0) value = at_integer(n) * (n - 1);
      return value;
    };
    // At order 1 the limit is the slope towards order 2.
    if (order <= 2) return std::min(beyond(order), cumulant(2));
    const int low = static_cast<int>(std::floor(order));
    const double weight = order - low;
    double value = cumulant(low);
    if (weight > 0) value += weight * (cumulant(low + 1) - value);
    return std::min(beyond(order), value / (order - 1));
  };
}

RenyiFunction PoissonRenyiBound(double q, RenyiFunction inner) {
  auto cache = std::make_shared<IntegerCache>(inner);
  const auto at_integer = [q, cache](int order) {
    LogSum sum;
    const double log_q = std::log(q);
    const double log_rest = std::log1p(-q);
    for (int l = 2; l <= order; ++l) {
      const double binomial = LogBinomial(order, l) + (order - l) * log_rest + l * log_q;
      const double moment = (l - 1) * (*cache)(l);
      // The binomial probabilities sum to 1, so 1 is taken off every term instead of the total.
      sum.Add(binomial + (l == 2 ? LogExpm1(moment) : LogExpm1(moment + std::log(3.0))));
    }
    return sum.Log1p() * (1 + kMomentMargin) / (order - 1);
  };
  if (q >= 1) return inner;
  return InterpolatedRenyi(at_integer, kMaxIntegerOrder, std::move(inner));
}

RenyiFunction FixedRenyiBound(double q, RenyiFunction inner) {
  auto cache = std::make_shared<IntegerCache>(inner);
  const auto at_integer = [q, cache](int order) {
    LogSum sum;
    const double log_q = std::log(q);
    const double second = (*cache)(2);
    sum.Add(2 * log_q + LogBinomial(order, 2) +
            std::min(std::log(4.0) + LogExpm1(second), std::log(2.0) + second));
    for (int j = 3; j <= order; ++j) {
      sum.Add(j * log_q + LogBinomial(order, j) + std::log(2.0) + (j - 1) * (*cache)(j));
    }
    return sum.Log1p() * (1 + kMomentMargin) / (order - 1);
  };
  if (q >= 1) return inner;
  return InterpolatedRenyi(at_integer, kMaxIntegerOrder, std::move(inner));
}

double BoundedRangeRenyi(double epsilon, double order) {
  if (epsilon == 0) return 0;
  if (std::isinf(epsilon)) return kInfinity;
  const double a = order - 1;
  // The stationary point t of the moment, log of a expm1(alpha e) / (alpha expm1(a e)), as the gap
  // e - t: at large orders it is far smaller than the rounding of t.
  const double gap =
      a * epsilon > 40 ? -std::log1p(-1 / order)
      : a == 0
          ? epsilon - (LogExpm1(epsilon) - std::log(epsilon))
          : epsilon - (std::log1p(-1 / order) + LogExpm1(order * epsilon) - LogExpm1(a * epsilon));
  const double below = std::clamp(gap, 0.0, epsilon);
  // Mass x of the loss epsilon - below and 1 - x of the loss -below under Q.
  const double log_x = below <= 0 ? -kInfinity : LogExpm1(below) - LogExpm1(epsilon);
  const double log_rest =
      below >= epsilon ? -kInfinity : below + LogExpm1(epsilon - below) - LogExpm1(epsilon);
  std::vector<LossNode> nodes;
  if (log_x > -kInfinity) nodes.push_back(MakeLossNode(log_x, epsilon - below));
  if (log_rest > -kInfinity) nodes.push_back(MakeLossNode(log_rest, -below));
  return RenyiFromNodes(nodes, order);
}

double BestOfNegativeBinomialRenyi(const RenyiFunction& inner, const RunCount& runs, double order) {
  const double factor = 1 + runs.eta();
  const double log_inverse_gamma = -std::log(runs.gamma());
  const auto extra = [&](double t) {
    const double other = 1 + std::exp(t);
    return factor * ((1 - 1 / other) * inner(other) + log_inverse_gamma / other);
  };
  double best = kInfinity;
  double best_t = 0;
  for (double t = -10; t <= 32; t += 0.5) {
    const double value = extra(t);
    if (value < best) {
      best = value;
      best_t = t;
    }
  }
  std::uintmax_t most = 60;
  best = std::min(
      best,
      boost::math::tools::brent_find_minima(extra, best_t - 0.5, best_t + 0.5, 24, most).second);
  return inner(order) + best + std::log(runs.Mean()) / (order - 1);
}

// With f'(1 - u) = mean e^{-mean u} the moment E_Q'[(Q/Q')^order] is e^-mean for the empty result,
// and of the rest the integral of q^order q'^(1 - order) mean e^x, x = mean ((order - 1) u' - order
// u) <= mean (order - 1) delta, with delta that of the mechanism at e^epsilon = 1 + 1 / (order -
// 1).
double BestOfPoissonRenyi(const RenyiFunction& inner,
                          const std::function<double(double)>& log_delta, double mean,
                          double order) {
  if (order == 1) return kInfinity;
  const double a = order - 1;
  const double delta = std::exp(log_delta(std::log1p(1 / a)));
  const double rest = std::log(mean) + a * (inner(order) + mean * delta);
  const double more = std::max(rest, -mean);
  return (more + std::log1p(std::exp(std::min(rest, -mean) - more))) / a;
}

}  // namespace sordino
