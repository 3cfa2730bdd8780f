#include "sordino/accounting/internal/engines/exact_release.h"

#include <algorithm>
#include <cmath>

#include "sordino/accounting/gaussian.h"
#include "sordino/accounting/internal/contour/gauss_legendre.h"
#include "sordino/base/quantity.h"

namespace sordino {
namespace {

// Gauss-Legendre with eight points on panels of a quarter of the density's scale.
constexpr double kReleasePanel = 0.25;
// Integration stops where terms fall below e^-kNegligible of the largest.
constexpr double kNegligible = 45;

// A sum of e^{exponent} * value kept relative to its largest exponent.
class WeightedLogSum {
 public:
  void Add(double exponent, double value) {
    if (!(value > 0) || exponent == -kInfinity) return;
    const double log_value = exponent + std::log(value);
    if (log_value > top_) {
      sum_ = sum_ * std::exp(top_ - log_value) + 1;
      top_ = log_value;
    } else {
      sum_ += std::exp(log_value - top_);
    }
  }
  double top() const { return top_; }
  double Log() const { return sum_ > 0 ? top_ + std::log(sum_) : -kInfinity; }

 private:
  double top_ = -kInfinity;
  double sum_ = 0;
};

void AddPiece(const DensityPiece& piece, double epsilon, WeightedLogSum& sum) {
  const LossDensity& d = *piece.density;
  const double lowest = std::max(epsilon, piece.clip_low);
  double a = d.CoordinateOf(lowest);
  if (!std::isfinite(a)) {
    if (a > 0) return;
    // All of the density lies above: start where its mass begins.
    a = -d.Scale();
    while (d.MassBelow(a) > 1e-40) a *= 1.05;
  }
  if (std::isfinite(d.low())) a = std::max(a, d.low());
  double end = d.high();
  if (piece.clip_high < 1e300) end = std::min(end, d.CoordinateOf(piece.clip_high));
  int falling = 0;
  double previous = -kInfinity;
  while (a < end) {
    const double b = std::min(a + kReleasePanel * d.SmoothLength(a), end);
    double largest = -kInfinity;
    for (std::size_t k = 0; k < kLegendreNodesOfEight.size(); ++k) {
      for (const int side : {-1, 1}) {
        const double x = 0.5 * (a + b) + side * 0.5 * (b - a) * kLegendreNodesOfEight[k];
        const double gain = -std::expm1(epsilon - d.Loss(x));
        const double exponent = d.LogDensity(x);
        sum.Add(exponent, 0.5 * (b - a) * kLegendreWeightsOfEight[k] * gain * piece.weight);
        largest = std::max(largest, exponent);
      }
    }
    // A mixture has several humps: stop only when the density has been falling for a while and
    // the mass that is left is negligible.
    falling = largest < previous ? falling + 1 : 0;
    previous = largest;
    const double left = d.MassAbove(b);
    if (!(left > 0)) break;
    if (falling > 8 && largest < sum.top() - kNegligible &&
        std::log(left) < sum.top() - kNegligible) {
      break;
    }
    a = b;
  }
}

}  // namespace

double ExactLogDelta(const LossPair& pair, double epsilon) {
  if (pair.gaussian_mu > 0) {
    if (epsilon >= 0) return GaussianLogDelta(pair.gaussian_mu, epsilon);
    // delta(-e) = 1 - e^-e + e^-e delta(e), because the pair is symmetric.
    return std::log(-std::expm1(epsilon) +
                    std::exp(epsilon + GaussianLogDelta(pair.gaussian_mu, -epsilon)));
  }
  WeightedLogSum sum;
  if (pair.infinite_mass > 0) sum.Add(0, pair.infinite_mass);
  for (const LossAtom& atom : pair.atoms) {
    if (atom.mass > 0 && atom.loss > epsilon) {
      sum.Add(std::log(atom.mass), -std::expm1(epsilon - atom.loss));
    }
  }
  for (const DensityPiece& piece : pair.pieces) AddPiece(piece, epsilon, sum);
  return std::min(0.0, sum.Log());
}

double ExactEpsilon(const LossPair& pair, double log_delta) {
  if (std::log(pair.infinite_mass) > log_delta) return kInfinity;
  if (ExactLogDelta(pair, 0) <= log_delta) return 0;
  double low = 0;
  double high = 1;
  while (ExactLogDelta(pair, high) > log_delta) {
    low = high;
    high *= 2;
    if (high > 1e15) return kInfinity;
  }
  // Bisection in epsilon, with a secant step in log delta where it helps.
  double f_low = ExactLogDelta(pair, low) - log_delta;
  double f_high = ExactLogDelta(pair, high) - log_delta;
  for (int i = 0; i < 200 && high - low > 4e-16 * high; ++i) {
    double middle = 0.5 * (low + high);
    if (i % 3 != 2 && std::isfinite(f_low) && std::isfinite(f_high) && f_low > f_high) {
      middle = low + (high - low) * f_low / (f_low - f_high);
      middle = std::clamp(middle, low + 1e-3 * (high - low), high - 1e-3 * (high - low));
    }
    const double f = ExactLogDelta(pair, middle) - log_delta;
    if (f > 0) {
      low = middle;
      f_low = f;
    } else {
      high = middle;
      f_high = f;
    }
  }
  return high;
}

double LargestLoss(const LossPair& pair) {
  if (pair.infinite_mass > 0 || pair.gaussian_mu > 0) return kInfinity;
  double largest = pair.atoms.empty() && pair.pieces.empty() ? 0 : -kInfinity;
  for (const LossAtom& atom : pair.atoms) {
    if (atom.mass > 0) largest = std::max(largest, atom.loss);
  }
  for (const DensityPiece& piece : pair.pieces) {
    double top = piece.density->LargestLoss();
    top = std::min(top, piece.clip_high < 1e300 ? piece.clip_high : kInfinity);
    largest = std::max(largest, top);
  }
  return largest;
}

}  // namespace sordino
