#include "sordino/accounting/gaussian.h"

#include <algorithm>
#include <boost/math/quadrature/gauss.hpp>
#include <boost/math/special_functions/erf.hpp>
#include <boost/math/tools/toms748_solve.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <utility>

#include "sordino/base/check.h"
#include "sordino/base/quantity.h"

namespace sordino {
namespace {

constexpr double kUnit = 0x1p-53;
constexpr double kLogSqrtTwoPi = 0.91893853320467274178;

// From here on the continued fraction takes over from exp(x^2/2) erfc.
constexpr double kContinuedFraction = 3;

// r(x) = I_1(x) / I_0(x) with I_n(x) = integral of t^n exp(-t^2/2 - x t) over t > 0. The recurrence
// I_{n+1} = n I_{n-1} - x I_n reads I_n / I_{n-1} = n / (x + I_{n+1} / I_n): all terms positive,
// so evaluating it backwards loses nothing. The error of cutting it at n falls like
// exp(-2 x sqrt(2 n)).
double MillsDerivativeRatio(double x) {
  const int terms = 8 + static_cast<int>(220 / x);
  double ratio = 0;
  for (int n = terms; n >= 1; --n) ratio = n / (x + ratio);
  return ratio;
}

// R(x) = I_0(x), for x > -1.
double MillsRatio(double x) {
  if (x >= kContinuedFraction) return 1 / (x + MillsDerivativeRatio(x));
  return std::sqrt(std::numbers::pi / 2) * std::exp(x * x / 2) * std::erfc(x / std::numbers::sqrt2);
}

// -R'(x) = 1 - x R(x) = I_1(x), for x > -1.
double MillsSlope(double x) {
  if (x < kContinuedFraction) return 1 - x * MillsRatio(x);
  const double ratio = MillsDerivativeRatio(x);
  return ratio / (x + ratio);
}

double LogDensity(double x) { return -x * x / 2 - kLogSqrtTwoPi; }

double LogDeltaUpper(double mu, double epsilon) {
  return GaussianLogDelta(mu, epsilon) + GaussianLogDeltaError(mu, epsilon);
}

// Where excess changes sign in [low, high]: the last point on the good side, where excess <= 0.
// The good side is the one named by good_is_low.
template <typename Excess>
double Solve(double low, double high, bool good_is_low, const Excess& excess) {
  const double at_low = excess(low);
  const double at_high = excess(high);
  if ((good_is_low ? at_high : at_low) <= 0) return good_is_low ? high : low;
  // Interpolation overflows where log delta does; halving never does.
  constexpr double kInterpolable = 1e12;
  if (std::abs(at_low) < kInterpolable && std::abs(at_high) < kInterpolable) {
    std::uintmax_t evaluations = 200;
    const std::pair<double, double> bracket = boost::math::tools::toms748_solve(
        excess, low, high, at_low, at_high, boost::math::tools::eps_tolerance<double>(52),
        evaluations);
    low = bracket.first;
    high = bracket.second;
  } else {
    for (int i = 0; i < 1100; ++i) {
      const double middle = low + (high - low) / 2;
      if (middle <= low || middle >= high) break;
      ((excess(middle) <= 0) == good_is_low ? low : high) = middle;
    }
  }
  // The last bits of excess need not be monotone, so the side that holds is looked for.
  double point = good_is_low ? low : high;
  double step = 0x1p-52;
  while (excess(point) > 0) {
    point *= good_is_low ? 1 - step : 1 + step;
    step *= 2;
  }
  return point;
}

}  // namespace

double UpperTail(double x) { return std::erfc(x / std::numbers::sqrt2) / 2; }

double UpperQuantile(double p) { return std::numbers::sqrt2 * boost::math::erfc_inv(2 * p); }

double GaussianLogDelta(double mu, double epsilon) {
  SORDINO_CHECK(mu >= 0 && epsilon >= 0, "the Gaussian curve is defined for mu, epsilon >= 0");
  if (mu == 0 || epsilon == kInfinity) return mu == kInfinity ? 0 : -kInfinity;
  if (mu == kInfinity) return 0;
  const double centre = epsilon / mu;
  const double a = centre - mu / 2;
  const double b = centre + mu / 2;
  if (b == kInfinity) return -kInfinity;
  if (mu <= 1 || b > 4 * mu) {
    // R(a) - R(b) would cancel; the integrand is smooth on the scale of the interval, because
    // either b - a <= 1 or b / a < 4 / 3.
    const double integral =
        mu / 2 * boost::math::quadrature::gauss<double, 20>::integrate([centre, mu](double t) {
          return MillsSlope(centre + t * mu / 2);
        });
    return LogDensity(a) + std::log(integral);
  }
  if (a > 0) return LogDensity(a) + std::log(MillsRatio(a) - MillsRatio(b));
  return std::log1p(-(UpperTail(-a) + std::exp(LogDensity(a)) * MillsRatio(b)));
}

double GaussianLogDeltaError(double mu, double epsilon) {
  if (mu == 0 || mu == kInfinity || epsilon == kInfinity) return 0;
  // a carries an absolute error of at most 2 units of b; the density squares it. The factor of
  // the density (quadrature or difference of Mills ratios) is good to 256 units.
  const double centre = epsilon / mu;
  const double a = std::abs(centre - mu / 2);
  const double b = centre + mu / 2;
  if (b > 0x1p500) return 0;
  return kUnit * (2 * a * b + 2 * a * a + 256);
}

double GaussianEpsilon(double mu, double log_delta) {
  SORDINO_CHECK(mu >= 0 && log_delta <= 0, "a delta is at most 1 and mu is not negative");
  if (mu == 0 || log_delta == 0) return 0;
  if (log_delta == -kInfinity || mu == kInfinity) return kInfinity;
  const auto excess = [mu, log_delta](double epsilon) {
    return LogDeltaUpper(mu, epsilon) - log_delta;
  };
  if (excess(0) <= 0) return 0;
  double low = 0;
  double high = std::max(mu * mu, mu);
  while (excess(high) > 0) {
    low = high;
    high *= 2;
    if (high == kInfinity) return kInfinity;
  }
  return Solve(low, high, /*good_is_low=*/false, excess);
}

double GaussianMu(double epsilon, double log_delta) {
  SORDINO_CHECK(epsilon >= 0 && log_delta <= 0, "a delta is at most 1, epsilon is not negative");
  if (log_delta == 0 || epsilon == kInfinity) return kInfinity;
  if (log_delta == -kInfinity) return 0;
  const auto excess = [epsilon, log_delta](double mu) {
    return LogDeltaUpper(mu, epsilon) - log_delta;
  };
  double low = 1;
  double high = 1;
  while (excess(high) <= 0) {
    low = high;
    high *= 2;
  }
  while (excess(low) > 0) {
    high = low;
    low /= 2;
    // Below this mu the densities are subnormal; no noise that a double can name meets the target.
    if (low < std::numeric_limits<double>::min()) return 0;
  }
  return Solve(low, high, /*good_is_low=*/true, excess);
}

}  // namespace sordino
