#include "sordino/accounting/tradeoff.h"

#include <algorithm>
#include <boost/math/tools/minima.hpp>
#include <cmath>

#include "sordino/accounting/accountant.h"
#include "sordino/accounting/calibration.h"
#include "sordino/accounting/gaussian.h"
#include "sordino/base/check.h"
#include "sordino/base/quantity.h"

namespace sordino {
namespace {

void CheckTypeOne(double type_one) { CheckRange("the type I error", type_one, 0, false, 1, false); }

}  // namespace

double GaussianTradeoff(double mu, double type_one) {
  CheckRange("mu", mu, 0, false, kInfinity, false);
  CheckTypeOne(type_one);
  if (type_one == 0) return 1;
  if (type_one == 1 || std::isinf(mu)) return 0;
  // Phi(z - mu) with z the upper quantile.
  return UpperTail(mu - UpperQuantile(type_one));
}

double GaussianTruePositiveRate(double mu, double false_positive_rate) {
  CheckRange("mu", mu, 0, false, kInfinity, false);
  CheckTypeOne(false_positive_rate);
  if (false_positive_rate == 0) return 0;
  if (false_positive_rate == 1 || std::isinf(mu)) return 1;
  return UpperTail(UpperQuantile(false_positive_rate) - mu);
}

double ApproximateTradeoff(double epsilon, double delta, double type_one) {
  CheckTypeOne(type_one);
  const double left = type_one == 0 ? 1 - delta : 1 - delta - std::exp(epsilon) * type_one;
  const double right = std::exp(-epsilon) * (1 - delta - type_one);
  return std::max({0.0, left, right});
}

double ProfileTradeoff(const std::function<double(double)>& delta_of, double type_one) {
  CheckTypeOne(type_one);
  const auto at = [&](double epsilon) {
    return ApproximateTradeoff(epsilon, std::clamp(delta_of(epsilon), 0.0, 1.0), type_one);
  };
  double best = at(0);
  double best_log = -20;
  for (double t = -20; t <= 8; t += 0.14) {
    const double value = at(std::exp(t));
    if (value > best) {
      best = value;
      best_log = t;
    }
  }
  std::uintmax_t most = 40;
  const auto refined = boost::math::tools::brent_find_minima(
      [&](double t) { return -at(std::exp(t)); }, best_log - 0.14, best_log + 0.14, 24, most);
  return std::max(best, -refined.second);
}

std::vector<PrivacyLine> PrivacyProfile(const Event& event, int count,
                                        const std::function<void(int)>& after_each) {
  SORDINO_CHECK(count >= 2, "a profile needs two epsilons");
  constexpr double kSmallDelta = 1e-6;
  const double pure = CertifiedEpsilon(event, -kInfinity).value.upper;
  double last = SpentEpsilon(event, Delta(kSmallDelta)).upper;
  if (!std::isfinite(last)) last = std::isfinite(pure) ? pure : 0;
  std::vector<PrivacyLine> profile;
  if (std::isfinite(pure)) profile.push_back({pure, 0});
  for (int i = 0; i < count; ++i) {
    const double epsilon = last * i / (count - 1);
    // 1 is true of everything, and says nothing.
    const double delta = std::exp(CertifiedLogDelta(event, epsilon).value.upper) * (1 + 1e-12);
    if (delta < 1) profile.push_back({epsilon, delta});
    if (after_each) after_each(i + 1);
  }
  return profile;
}

double ProfileTradeoff(std::span<const PrivacyLine> profile, double type_one) {
  CheckTypeOne(type_one);
  double best = 0;
  for (const PrivacyLine& line : profile) {
    best = std::max(best, ApproximateTradeoff(line.epsilon, line.delta, type_one));
  }
  return best;
}

std::vector<TradeoffPoint> TradeoffCurve(const std::function<double(double)>& tradeoff,
                                         std::span<const double> type_one) {
  std::vector<TradeoffPoint> curve;
  curve.reserve(type_one.size());
  for (const double x : type_one) curve.push_back({x, tradeoff(x)});
  return curve;
}

}  // namespace sordino
