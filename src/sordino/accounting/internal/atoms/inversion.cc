#include "sordino/accounting/internal/atoms/inversion.h"
#include "sordino/accounting/internal/rounding.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "sordino/accounting/internal/contour/tilt_search.h"
#include "sordino/base/quantity.h"

namespace sordino {
namespace {

constexpr double kMaxInversionNodes = 1 << 18;

// The period that pushes both families of aliases below e^-kInversionMargin of delta, and the
// larger tilt that shows it for those above epsilon.
struct Alias {
  double period = kInfinity;
  double larger_c = 0;
};

// Tilts below `most` are tried.
Alias FindAlias(const AtomComposition& composition, double c, double h, double log_delta,
                double epsilon, double most = kInfinity) {
  const double sd = std::sqrt(composition.RoughTilted(c).variance + h * h);
  Alias alias;
  for (const double deviations : {3.0, 7.0, 1.0, 0.3, 0.1}) {
    const double c2 = c + deviations / sd;
    if (!(c2 < most)) continue;
    const double moment = composition.RoughLogMoment(c2) + 0.5 * h * h * c2 * (c2 + 1);
    if (!std::isfinite(moment)) continue;
    const double wanted = (moment - c2 * epsilon - log_delta + kInversionMargin) / (c2 - c);
    if (wanted < alias.period) alias = {wanted, c2};
  }
  alias.period = std::max({(kInversionMargin - log_delta) / c, alias.period, 8 * sd, 16 * h});
  return alias;
}

// The cut is relative to the integrand at y = 0, which may be far above delta.
double LastFrequency(double log_above, double h) {
  return std::sqrt(2 * (kInversionMargin + std::max(0.0, log_above))) / h;
}

}  // namespace

double Inversion::Nodes(const AtomComposition& composition, double c, double h, double log_delta,
                        double epsilon) {
  const double log_moment = composition.RoughLogMoment(c) + 0.5 * h * h * c * (c + 1);
  const Alias alias = FindAlias(composition, c, h, log_delta, epsilon);
  if (!std::isfinite(log_moment) || !std::isfinite(alias.period)) return kInfinity;
  return LastFrequency(log_moment - c * epsilon - log_delta, h) * alias.period /
         (2 * std::numbers::pi);
}

bool Inversion::Make(AtomComposition& composition, double c, double h, double log_delta,
                     double epsilon, double max_work) {
  c_ = c;
  h_ = h;
  lower_ = composition.bound() == Bound::kLower;
  const double about = composition.RoughLogMoment(c) + 0.5 * h * h * c * (c + 1);
  if (!std::isfinite(about)) return false;
  const double expected = Nodes(composition, c, h, log_delta, epsilon);
  if (!(expected < kMaxInversionNodes) || !(expected * composition.work() < max_work)) return false;
  const double last = LastFrequency(about - c * epsilon - log_delta, h);
  composition.Sharpen(c, last);
  log_moment_ = composition.LogMoment(c) + 0.5 * h * h * c * (c + 1);
  if (!std::isfinite(log_moment_)) return false;
  log_moment_error_ = composition.LogMomentError(c) + 4 * kUnitRoundoff * std::abs(log_moment_);
  if (!ChoosePeriod(composition, log_delta, epsilon)) return false;
  const double nodes = std::ceil(last / step_) + 1;
  if (!(nodes < kMaxInversionNodes) || !(nodes * composition.work() < max_work)) return false;
  Evaluate(composition, static_cast<std::size_t>(nodes));
  return true;
}

double Inversion::Work(const AtomComposition& composition) const {
  return static_cast<double>(value_.size()) * (composition.work() + 200);
}

double Inversion::LogDelta(double epsilon) const {
  double sum = 0;  // of the real part of value e^{-iy epsilon}
  for (std::size_t k = 0; k < value_.size(); ++k) {
    const double angle = step_ * static_cast<double>(k) * epsilon;
    sum += value_[k].real() * std::cos(angle) + value_[k].imag() * std::sin(angle);
  }
  const double log_front = log_moment_ - c_ * epsilon;
  const double front_error =
      log_moment_error_ + 8 * kUnitRoundoff * (std::abs(log_moment_) + std::abs(c_ * epsilon));
  double error = error_ + angle_error_ * std::abs(epsilon) + tail_;
  if (!lower_) return log_front + front_error + std::log(std::max(0.0, sum) + error);
  const double period = 2 * std::numbers::pi / step_;
  error += std::exp(-c_ * period - log_front) / -std::expm1(-c_ * period);
  const double gap = (larger_c_ - c_) * period;
  error += std::exp(larger_log_moment_ - larger_c_ * epsilon + LogChernoffConstant(larger_c_) -
                    gap - log_front) /
           -std::expm1(-gap);
  const double rest = sum - error * (1 + 1e-6);
  return rest > 0 ? log_front - front_error + std::log(rest) : -kInfinity;
}

bool Inversion::ChoosePeriod(const AtomComposition& composition, double log_delta, double epsilon) {
  // Lists that were sharpened for c may say nothing at a much larger tilt.
  for (double most = kInfinity;; most = larger_c_) {
    const Alias alias = FindAlias(composition, c_, h_, log_delta, epsilon, most);
    if (!std::isfinite(alias.period)) return false;
    larger_c_ = alias.larger_c;
    const double moment = composition.LogMoment(larger_c_);
    larger_log_moment_ = moment + 0.5 * h_ * h_ * larger_c_ * (larger_c_ + 1) +
                         composition.LogMomentError(larger_c_) + 1e-12 * std::abs(moment);
    step_ = 2 * std::numbers::pi / alias.period;
    if (std::isfinite(larger_log_moment_)) return std::isfinite(step_) && step_ > 0;
  }
}

void Inversion::Evaluate(const AtomComposition& composition, std::size_t nodes) {
  const MomentLine line = composition.Line(c_, step_, nodes);
  const double scale = step_ / (2 * std::numbers::pi);
  const double correction = lower_ ? h_ * h_ * (1 + h_) : 0;
  value_.resize(nodes);
  error_ = 0;
  angle_error_ = 0;
  const double mu2 = composition.mu2() + h_ * h_;
  for (std::size_t k = 0; k < nodes; ++k) {
    const double y = step_ * static_cast<double>(k);
    const std::complex<double> s(c_, y);
    const std::complex<double> kernel = 1.0 / (s * (s + 1.0)) - correction;
    const double gauss = 0.5 * mu2 * (c_ * (c_ + 1) - y * y);
    const double turn = mu2 * (c_ + 0.5) * y;
    const double log_modulus = line.log_modulus[k] - log_moment_;
    const double modulus = std::exp(log_modulus + gauss);
    const double largest = std::exp(line.log_largest[k] - log_moment_ + gauss);
    const double weight = (k == 0 ? 1 : 2) * scale;
    value_[k] = weight * std::polar(modulus, line.phase[k] + turn) * kernel;
    const double rounding =
        kUnitRoundoff * (32 + 4 * std::abs(log_moment_) + 4 * std::abs(log_modulus) +
                         4 * std::abs(gauss) + 4 * std::abs(turn) + 4 * composition.factors());
    const double size = weight * std::abs(kernel);
    error_ += size * (largest - modulus + largest * rounding);
    angle_error_ += size * modulus * kUnitRoundoff * 3 * y;
  }
  error_ += static_cast<double>(nodes) * kUnitRoundoff * error_ + 1e-300;
  const double last = step_ * static_cast<double>(nodes - 1);
  // |kernel| <= 1/y^2 + correction, and every modulus is at most that of the Gaussians.
  const double log_end = composition.LogMoment(c_) + log_moment_error_ -
                         0.5 * composition.mu2() * c_ * (c_ + 1) - log_moment_ +
                         0.5 * mu2 * (c_ * (c_ + 1) - last * last);
  tail_ = std::exp(log_end) * (1 + 2 * (1 + h_)) / (std::numbers::pi * last);
}

}  // namespace sordino
