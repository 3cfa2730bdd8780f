#include "sordino/accounting/loss_pair.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <optional>

#include "sordino/accounting/gaussian.h"

namespace sordino {
namespace {

// Beyond this exponent exp() leaves the range of double.
constexpr double kLargeExponent = 600;

}  // namespace

GaussianMixtureDensity::GaussianMixtureDensity(double sigma, Parts numerator, Parts denominator)
    : sigma_(sigma),
      half_precision_(0.5 / (sigma * sigma)),
      numerator_(std::move(numerator)),
      denominator_(std::move(denominator)) {
  for (const auto& part : numerator_) {
    max_numerator_shift_ = std::max(max_numerator_shift_, part.first);
  }
  for (const auto& part : denominator_) {
    max_denominator_shift_ = std::max(max_denominator_shift_, -part.first);
  }
}

double GaussianMixtureDensity::low() const { return -std::numeric_limits<double>::infinity(); }
double GaussianMixtureDensity::high() const { return std::numeric_limits<double>::infinity(); }

double GaussianMixtureDensity::LogRatio(const Parts& parts, double x) const {
  if (parts.size() == 1) return parts[0].first * (2 * x - parts[0].first) * half_precision_;
  double largest = 0;
  double sum = 0;  // of p_i (e^{z_i} - 1): exact to rounding also for tiny probabilities
  for (const auto& [shift, probability] : parts) {
    const double z = shift * (2 * x - shift) * half_precision_;
    largest = std::max(largest, z);
    sum += probability * std::expm1(z);
  }
  if (largest < kLargeExponent) return std::log1p(sum);
  double scaled = 0;
  for (const auto& [shift, probability] : parts) {
    scaled += probability * std::exp(shift * (2 * x - shift) * half_precision_ - largest);
  }
  return largest + std::log(scaled);
}

GaussianMixtureDensity::Side GaussianMixtureDensity::Evaluate(const Parts& parts, double x) const {
  if (parts.size() == 1)
    return {LogRatio(parts, x), parts[0].first, parts[0].first == 0 ? 0.0 : 1.0};
  // One exponential a part: e^z = 1 + expm1(z) is exact enough for the posterior.
  double largest = 0;
  double sum = 0;
  double shift_sum = 0;
  double hit_sum = 0;
  for (const auto& [shift, probability] : parts) {
    if (shift == 0) continue;
    const double z = shift * (2 * x - shift) * half_precision_;
    largest = std::max(largest, z);
    const double growth = std::expm1(z);
    sum += probability * growth;
    hit_sum += probability * (1 + growth);
    shift_sum += shift * probability * (1 + growth);
  }
  if (largest < kLargeExponent) {
    return {std::log1p(sum), shift_sum / (1 + sum), std::min(1.0, hit_sum / (1 + sum))};
  }
  Side side{LogRatio(parts, x), 0, 0};
  for (const auto& [shift, probability] : parts) {
    if (shift == 0) continue;
    const double weight =
        probability * std::exp(shift * (2 * x - shift) * half_precision_ - side.log_ratio);
    side.shift += shift * weight;
    side.hit += weight;
  }
  side.hit = std::min(1.0, side.hit);
  return side;
}

double GaussianMixtureDensity::LogDensity(double x) const {
  constexpr double kLogSqrtTwoPi = 0.91893853320467274178;
  return LogRatio(numerator_, x) - x * x * half_precision_ - std::log(sigma_) - kLogSqrtTwoPi;
}

double GaussianMixtureDensity::Loss(double x) const {
  return LogRatio(numerator_, x) - LogRatio(denominator_, x);
}

double GaussianMixtureDensity::LargestLoss() const {
  // For large x the largest shift of num and the smallest |shift| of den decide.
  if (max_numerator_shift_ > 0) return high();
  double zero = 0;
  for (const auto& [shift, probability] : denominator_) {
    if (shift == 0) zero += probability;
  }
  return zero > 0 ? -std::log(zero) : high();
}

double GaussianMixtureDensity::Scale() const {
  // The ratio changes on the scale sigma^2 / shift, the Gaussian on the scale sigma.
  const double shift = std::max(max_numerator_shift_, max_denominator_shift_);
  return shift > 0 ? std::min(sigma_, sigma_ * sigma_ / shift) : sigma_;
}

double GaussianMixtureDensity::SmoothLength(double x) const {
  // Where one part has all of the posterior on either side the ratio is a pure exponential.
  const Side numerator = Numerator(x);
  const Side denominator = Denominator(x);
  constexpr double kSaturated = 1e-17;
  const bool smooth = numerator.shift >= max_numerator_shift_ * (1 - kSaturated) &&
                      -denominator.shift <= max_denominator_shift_ * kSaturated;
  const double slope = 2 * half_precision_ * std::abs(numerator.shift - x);
  const double length = smooth ? sigma_ : Scale();
  return slope * length > 6 ? 6 / slope : length;
}

namespace {

// A pair with both sides alike but for the sign of the shift s (Poisson sampling, replace-one):
// with a = e^{-s^2/(2 sigma^2)} and y = s x / sigma^2, e^loss = (1 - q + q a e^y) / (1 - q + q a
// e^-y), a quadratic equation for e^y with the solution
//   y = loss/2 + asinh((1 - q) / (q a) sinh(loss/2)).
std::optional<double> MirroredExponent(const GaussianMixtureDensity::Parts& numerator,
                                       const GaussianMixtureDensity::Parts& denominator,
                                       double half_precision, double loss) {
  if (numerator.size() != 2 || denominator.size() != 2 || numerator[0] != denominator[0] ||
      numerator[0].first != 0 || numerator[1].first != -denominator[1].first ||
      numerator[1].second != denominator[1].second || !(numerator[0].second > 0)) {
    return std::nullopt;
  }
  constexpr double kLarge = 18;  // where asinh(e^t) is t + log 2 to the last digit
  const double half = 0.5 * std::abs(loss);
  if (half == 0) return 0.0;
  const double log_sinh = half < kLarge ? std::log(std::sinh(half)) : half - std::numbers::ln2;
  const auto [shift, q] = numerator[1];
  const double t = std::log(numerator[0].second / q) + shift * shift * half_precision + log_sinh;
  const double y = half + (t < kLarge ? std::asinh(std::exp(t)) : t + std::numbers::ln2);
  return loss < 0 ? -y : y;
}

}  // namespace

double GaussianMixtureDensity::CoordinateOf(double loss) const {
  // A closed form where one side is a single rate: e^loss = 1 - q + q e^z.
  if (denominator_.size() == 1 && numerator_.size() == 2 && numerator_[0].first == 0) {
    const auto [shift, q] = numerator_[1];
    const double rest = std::expm1(loss) + q;  // q e^z
    if (rest <= 0) return low();
    const double z = loss < 30 ? std::log(rest / q)
                               : loss + std::log1p(-(1 - q) * std::exp(-loss)) - std::log(q);
    return (z / half_precision_ / shift + shift) / 2;
  }
  if (numerator_.size() == 1 && denominator_.size() == 2 && denominator_[0].first == 0) {
    const auto [shift, q] = denominator_[1];
    const double rest = std::expm1(-loss) + q;
    if (rest <= 0) return high();
    const double z = loss > -30 ? std::log(rest / q)
                                : -loss + std::log1p(-(1 - q) * std::exp(loss)) - std::log(q);
    return (z / half_precision_ / shift + shift) / 2;
  }
  if (const auto y = MirroredExponent(numerator_, denominator_, half_precision_, loss)) {
    return *y / (2 * half_precision_ * numerator_[1].first);
  }
  // Bracket by doubling, then Newton inside the bracket: the loss is strictly increasing.
  double a = -sigma_;
  double b = sigma_;
  for (int i = 0; i < 60 && Loss(a) > loss; ++i) a *= 2;
  for (int i = 0; i < 60 && Loss(b) < loss; ++i) b *= 2;
  if (Loss(a) > loss) return low();
  if (Loss(b) < loss) return high();
  double x = 0.5 * (a + b);
  for (int i = 0; i < 200; ++i) {
    const Side numerator = Numerator(x);
    const Side denominator = Denominator(x);
    const double residual = numerator.log_ratio - denominator.log_ratio - loss;
    (residual < 0 ? a : b) = x;
    const double slope = 2 * half_precision_ * (numerator.shift - denominator.shift);
    double next = x - residual / slope;
    if (!(next > a && next < b)) next = 0.5 * (a + b);
    if (std::abs(next - x) <= 1e-15 * sigma_ || next == a || next == b) return next;
    x = next;
  }
  return x;
}

double GaussianMixtureDensity::MassBelow(double x) const {
  double mass = 0;
  for (const auto& [shift, probability] : numerator_) {
    mass += probability * UpperTail((shift - x) / sigma_);
  }
  return mass;
}

double GaussianMixtureDensity::ExcessAbove(double x) const {
  double excess = 0;
  for (const auto& [shift, probability] : numerator_) {
    if (shift == 0) continue;
    excess += probability * (UpperTail((x - shift) / sigma_) - UpperTail(x / sigma_));
  }
  for (const auto& [shift, probability] : denominator_) {
    if (shift == 0) continue;
    excess += probability * (UpperTail(x / sigma_) - UpperTail((x - shift) / sigma_));
  }
  return excess;
}

double GaussianMixtureDensity::MassAbove(double x) const {
  double mass = 0;
  for (const auto& [shift, probability] : numerator_) {
    mass += probability * UpperTail((x - shift) / sigma_);
  }
  return mass;
}

double GaussianMixtureDensity::HitProbability() const {
  double largest = 0;
  for (const Parts* parts : {&numerator_, &denominator_}) {
    double hit = 0;
    for (const auto& [shift, probability] : *parts) hit += shift != 0 ? probability : 0;
    largest = std::max(largest, hit);
  }
  return largest;
}

double GaussianMixtureDensity::OtherMassBelow(double x) const {
  double mass = 0;
  for (const auto& [shift, probability] : denominator_) {
    mass += probability * UpperTail((shift - x) / sigma_);
  }
  return mass;
}

double GaussianMixtureDensity::OtherMassAbove(double x) const {
  double mass = 0;
  for (const auto& [shift, probability] : denominator_) {
    mass += probability * UpperTail((x - shift) / sigma_);
  }
  return mass;
}

void GaussianMixtureDensity::At(double x, double* log_density, double* loss) const {
  constexpr double kLogSqrtTwoPi = 0.91893853320467274178;
  const double numerator = LogRatio(numerator_, x);
  if (log_density != nullptr) {
    *log_density = numerator - x * x * half_precision_ - std::log(sigma_) - kLogSqrtTwoPi;
  }
  if (loss != nullptr) *loss = numerator - LogRatio(denominator_, x);
}

LaplaceDensity::LaplaceDensity(double scale, double rate, Direction direction)
    : scale_(scale), rate_(rate), direction_(direction) {}

double LaplaceDensity::LogMix(double x) const {
  const double z = (2 * x - 1) / scale_;
  if (rate_ == 1) return z;
  if (z < kLargeExponent) return std::log1p(rate_ * std::expm1(z));
  return z + std::log(rate_ + (1 - rate_) * std::exp(-z));
}

double LaplaceDensity::LogDensity(double x) const {
  // Lap(0) at x in (0, 1); for "add" the coordinate runs backwards.
  if (direction_ == Direction::kRemove) return -x / scale_ - std::log(2 * scale_) + LogMix(x);
  return -(1 - x) / scale_ - std::log(2 * scale_);
}

double LaplaceDensity::Loss(double x) const {
  return direction_ == Direction::kRemove ? LogMix(x) : -LogMix(1 - x);
}

double LaplaceDensity::LargestLoss() const { return Loss(1); }

double LaplaceDensity::Scale() const { return std::min(1.0, scale_); }

double LaplaceDensity::CoordinateOf(double loss) const {
  const double mix = direction_ == Direction::kRemove ? loss : -loss;
  double z = mix;
  if (rate_ < 1) {
    const double rest = std::expm1(mix) + rate_;
    if (rest <= 0) return direction_ == Direction::kRemove ? 0 : 1;
    z = mix < 30 ? std::log(rest / rate_)
                 : mix + std::log1p(-(1 - rate_) * std::exp(-mix)) - std::log(rate_);
  }
  const double x = std::clamp((z * scale_ + 1) / 2, 0.0, 1.0);
  return direction_ == Direction::kRemove ? x : 1 - x;
}

double LaplaceDensity::MassBelow(double x) const {
  // From the centre 0 to x; "add" has the noise around the mirrored centre alone.
  const double end = std::exp(-1 / scale_);
  const double rising = std::exp(-(1 - x) / scale_) - end;
  if (direction_ == Direction::kAdd) return 0.5 * rising;
  return 0.5 * ((1 - rate_) * -std::expm1(-x / scale_) + rate_ * rising);
}

double LaplaceDensity::MassAbove(double x) const {
  const double end = std::exp(-1 / scale_);
  const double rest = -std::expm1(-(1 - x) / scale_);
  if (direction_ == Direction::kAdd) return 0.5 * rest;
  return 0.5 * ((1 - rate_) * (std::exp(-x / scale_) - end) + rate_ * rest);
}

bool LaplaceDensity::Integrate(double a, double b, double* mass, double* loss) const {
  // With B and A the masses of Lap(0) and Lap(1): A / B = e^{(a + b - 1) / scale}.
  *loss = Loss(0.5 * (a + b));
  const bool remove = direction_ == Direction::kRemove;
  const double log_density = remove ? *loss - a / scale_ : -(1 - b) / scale_;
  *mass = -0.5 * std::exp(log_density) * std::expm1((a - b) / scale_);
  return true;
}

std::vector<LossAtom> LaplaceDensity::Ends() const {
  const double tail = 0.5 * std::exp(-1 / scale_);
  if (direction_ == Direction::kRemove) {
    // Left of 0: P = (1-q)/2 + q e^{-1/b}/2. Right of 1: (1-q) e^{-1/b}/2 + q/2.
    return {{LogMix(0), (1 - rate_) * 0.5 + rate_ * tail},
            {LogMix(1), (1 - rate_) * tail + rate_ * 0.5}};
  }
  return {{-LogMix(1), tail}, {-LogMix(0), 0.5}};
}

}  // namespace sordino
