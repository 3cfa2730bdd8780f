#include "sordino/accounting/renyi_conversion.h"

#include <algorithm>
#include <boost/math/tools/minima.hpp>
#include <cmath>

#include "sordino/base/check.h"

namespace sordino {
namespace {

constexpr double kConversionMargin = 1e-12;
const double kLowest = std::log(1e-10);  // of t = log(order - 1)
const double kHighest = std::log(1e9);
constexpr double kStride = 1.5;
// Stands for infinity inside the parabolic steps of the search.
constexpr double kHuge = 1e300;

// a log a - alpha log alpha, which lies in [-(1 + log alpha), 0].
double Entropy(double order) {
  const double a = order - 1;
  return a * std::log1p(-1 / order) - std::log(order);
}

double OrderAt(double t) { return 1 + std::exp(t); }

// The objective without rounding up or clamping; may be negative.
double RawEpsilon(double rdp, double order, double log_delta, RenyiConversion conversion) {
  const double gain = conversion == RenyiConversion::kTight ? Entropy(order) : 0;
  return rdp + (gain - log_delta) / (order - 1);
}

// Minimum of a function of t with one minimum, from a scan with bounds: `evaluate` returns the
// objective, `hopeless_below` and `hopeless_above` say that nothing smaller or larger in t can
// beat the best so far.
template <typename Evaluate, typename Below, typename Above>
double Minimize(const Evaluate& evaluate, const Below& hopeless_below,
                const Above& hopeless_above) {
  double best_t = 0;
  double best = evaluate(0.0);
  const auto consider = [&](double t) {
    const double value = evaluate(t);
    if (value < best) {
      best = value;
      best_t = t;
    }
  };
  for (double t = kStride; t < kHighest + kStride; t += kStride) {
    if (hopeless_above(t - kStride, best)) break;
    consider(std::min(t, kHighest));
  }
  for (double t = -kStride; t > kLowest - kStride; t -= kStride) {
    if (hopeless_below(t, best)) break;
    consider(std::max(t, kLowest));
  }
  std::uintmax_t most = 60;
  const auto clamped = [&](double t) { return std::min(evaluate(t), kHuge); };
  const auto [t, value] = boost::math::tools::brent_find_minima(
      clamped, std::max(best_t - kStride, kLowest), std::min(best_t + kStride, kHighest), 30, most);
  return value < best ? t : best_t;
}

}  // namespace

double EpsilonFromRenyi(double rdp, double order, double log_delta, RenyiConversion conversion) {
  SORDINO_CHECK(rdp >= 0 && order > 1 && log_delta <= 0, "a Renyi bound out of range");
  if (log_delta == 0) return 0;
  if (std::isinf(log_delta) || std::isinf(rdp)) return kInfinity;
  const double epsilon = RawEpsilon(rdp, order, log_delta, conversion);
  return std::max(0.0, epsilon * (1 + kConversionMargin));
}

double LogDeltaFromRenyi(double rdp, double order, double epsilon) {
  SORDINO_CHECK(rdp >= 0 && order > 1 && epsilon >= 0, "a Renyi bound out of range");
  if (std::isinf(rdp)) return 0;
  if (std::isinf(epsilon)) return -kInfinity;
  const double a = order - 1;
  const double log_delta = a * (rdp - epsilon) + Entropy(order);
  return std::min(0.0, log_delta + kConversionMargin * (a * (rdp + epsilon) + 1));
}

RenyiEpsilonResult MinimizeEpsilon(const std::function<double(double)>& curve, double log_delta,
                                   RenyiConversion conversion) {
  SORDINO_CHECK(log_delta <= 0, "log delta above 0");
  if (log_delta == 0) return {0, 2};
  if (std::isinf(log_delta)) return {};
  double last_rdp = 0;
  const auto evaluate = [&](double t) {
    const double order = OrderAt(t);
    last_rdp = curve(order);
    if (!(last_rdp < kInfinity)) return kInfinity;
    return RawEpsilon(last_rdp, order, log_delta, conversion);
  };
  // R does not fall with the order, and the rest is at least -(1 + log alpha) / a.
  const auto above = [&](double t, double best) {
    const double order = OrderAt(t);
    return last_rdp - (1 + std::log(order)) / (order - 1) > best;
  };
  const auto below = [&](double t, double best) {
    const double order = OrderAt(t);
    return (-log_delta - 1 - std::log(order)) / (order - 1) > best;
  };
  const double order = OrderAt(Minimize(evaluate, below, above));
  const double rdp = curve(order);
  if (!(rdp < kInfinity)) return {};
  return {EpsilonFromRenyi(rdp, order, log_delta, conversion), order};
}

RenyiDeltaResult MinimizeDelta(const std::function<double(double)>& curve, double epsilon) {
  const auto evaluate = [&](double t) {
    const double order = OrderAt(t);
    const double rdp = curve(order);
    if (!(rdp < kInfinity)) return kInfinity;
    return (order - 1) * (rdp - epsilon) + Entropy(order);
  };
  // Convex in a: two rising steps end the scan.
  double previous = kInfinity;
  double latest = kInfinity;
  const auto tracked = [&](double t) {
    previous = latest;
    latest = evaluate(t);
    return latest;
  };
  const auto rising = [&](double, double best) { return latest > previous && latest > best; };
  const auto never = [](double, double) { return false; };
  const double order = OrderAt(Minimize(tracked, never, rising));
  const double rdp = curve(order);
  if (!(rdp < kInfinity)) return {};
  return {LogDeltaFromRenyi(rdp, order, epsilon), order};
}

}  // namespace sordino
