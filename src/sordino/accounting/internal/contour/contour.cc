#include "sordino/accounting/internal/contour/contour.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>
#include <optional>
#include <utility>

#include "sordino/accounting/internal/contour/contour_composition.h"
#include "sordino/accounting/internal/contour/tilt_search.h"
#include "sordino/accounting/internal/contour/tilted_loss.h"
#include "sordino/accounting/internal/rounding.h"

namespace sordino {
namespace {

// Relative size to which the neglected terms are pushed: e^-kLineMargin.
constexpr double kLineMargin = 30;
// The cuts take out at most e^-kCutMargin of delta.
constexpr double kCutMargin = 24;
constexpr double kMaxNodes = 1 << 17;
// Sines up to this many, a recurrence beyond, and no contour beyond some tenths of a second of
// that.
constexpr double kMaxSines = 2e5;
constexpr double kMaxTurns = 1e8;
// The certified inversion at one tilt.
class ContourInversion {
 public:
  // A target log delta that is meant to be resolved, and a guess of epsilon.
  static std::optional<ContourInversion> Make(ContourComposition& composition, double c,
                                              double log_delta) {
    ContourInversion inversion;
    inversion.c_ = c;
    if (!inversion.ChooseNodes(composition, log_delta)) return std::nullopt;
    return inversion;
  }

  double mean() const { return mean_; }
  double deviation() const { return std::sqrt(variance_); }

  // log of S, of its certified upper end and of the certified lower end; and d log S / d epsilon.
  struct Value {
    double log_delta;
    double log_upper;
    double log_lower;
    double slope;
  };

  Value At(double epsilon) const {
    const double shift = epsilon - mean_;
    double sum = 0;
    double slope = 0;
    double error = 0;
    for (std::size_t k = 0; k < log_modulus_.size(); ++k) {
      const double y = step_ * static_cast<double>(k);
      const std::complex<double> s(c_, y);
      const std::complex<double> kernel = 1.0 / (s * (s + 1.0));
      const double angle = phase_[k] - y * shift;
      const double modulus = std::exp(log_modulus_[k]);
      const std::complex<double> value = std::polar(modulus, angle) * kernel;
      const double weight = k == 0 ? 1 : 2;
      sum += weight * value.real();
      slope -= weight * (value * s).real();
      error +=
          weight * std::abs(kernel) *
          (error_[k] + modulus * kUnitRoundoff * (16 + std::abs(angle) + 2 * y * std::abs(shift)));
    }
    const double scale = step_ / (2 * std::numbers::pi);
    const double log_front = log_moment_ - c_ * epsilon;
    // |s (s + 1)| >= y^2 beyond the last node.
    error = scale * error + std::exp(log_tail_) / (std::numbers::pi * last_frequency_);
    const double front_error =
        log_moment_error_ + 4 * kUnitRoundoff * (std::abs(log_moment_) + std::abs(c_ * epsilon));
    const double period = 2 * std::numbers::pi / step_;
    // Aliases, relative to e^log_front.
    const double below = std::exp(-c_ * period - log_front) / -std::expm1(-c_ * period);
    const double gap = (larger_c_ - c_) * period;
    const double above = std::exp(larger_log_moment_ - larger_c_ * epsilon +
                                  LogChernoffConstant(larger_c_) - gap - log_front) /
                         -std::expm1(-gap);
    sum *= scale;
    Value value;
    value.log_delta = sum > 0 ? log_front + std::log(sum) : -kInfinity;
    value.log_upper = log_front + front_error + std::log(std::max(0.0, sum) + error);
    const double rest = sum - error - (below + above) * (1 + 1e-6);
    value.log_lower = rest > 0 ? log_front - front_error + std::log(rest) : -kInfinity;
    value.slope = sum > 0 ? slope * scale / sum : -c_;
    return value;
  }

 private:
  bool ChooseNodes(ContourComposition& composition, double log_delta) {
    // A first guess of the highest frequency, so that one pass over the pairs usually does.
    const double d = 0.1 * c_;
    const double curvature =
        (composition.ApproximateLogMoment(c_ + d) - 2 * composition.ApproximateLogMoment(c_) +
         composition.ApproximateLogMoment(c_ - d)) /
        (d * d);
    if (!(curvature > 0)) return false;
    std::vector<double> larger_tilts;
    for (const double deviations : {3.0, 7.0, 1.0, 0.3}) {
      larger_tilts.push_back(c_ + deviations / std::sqrt(curvature));
    }
    if (composition.IsLarge()) larger_tilts.resize(1);
    std::vector<double> larger_moments;
    std::vector<TiltedLoss> parts;
    double certified_frequency = 24 / std::sqrt(curvature);
    if (!composition.Tilt(c_, certified_frequency, larger_tilts, parts, larger_moments)) {
      certified_frequency = 0;
      if (!composition.Tilt(c_, 0, larger_tilts, parts, larger_moments)) return false;
    }
    const double mu2 = composition.gaussian_mu2();
    Summarise(parts, mu2);
    if (!(variance_ > 0) || !std::isfinite(variance_)) return false;
    if (!ChooseStep(larger_tilts, larger_moments, log_delta)) return false;
    const std::optional<double> nodes = CountNodes(parts, mu2);
    if (!nodes || IsTooMuch(parts, *nodes)) return false;
    last_frequency_ = step_ * (*nodes - 1);
    if (last_frequency_ > certified_frequency) {
      // Higher frequencies want more nodes in x, so the work is known only after the last tilt.
      std::vector<double> unused;
      if (!composition.Tilt(c_, last_frequency_, {}, parts, unused) || IsTooMuch(parts, *nodes)) {
        return false;
      }
      Summarise(parts, mu2);
    }
    log_tail_ = LogModulusBound(parts, mu2, last_frequency_);
    Evaluate(parts, mu2, static_cast<std::size_t>(*nodes));
    return true;
  }

  // Moment, mean and variance of the tilted sum.
  void Summarise(const std::vector<TiltedLoss>& parts, double mu2) {
    log_moment_ = 0.5 * mu2 * c_ * (c_ + 1);
    log_moment_error_ = 8 * kUnitRoundoff * log_moment_;
    mean_ = mu2 * (c_ + 0.5);
    variance_ = mu2;
    for (const TiltedLoss& part : parts) {
      log_moment_ += part.count() * part.log_moment();
      log_moment_error_ += part.count() * part.log_moment_error() +
                           kUnitRoundoff * std::abs(part.count() * part.log_moment());
      mean_ += part.count() * part.mean();
      variance_ += part.count() * part.variance();
    }
    // Summation over the parts.
    log_moment_error_ += kUnitRoundoff * static_cast<double>(parts.size()) * std::abs(log_moment_);
  }

  // The period, for which both families of aliases are below e^-kLineMargin of delta. The one from
  // above wants a larger tilt at which the moment is still moderate.
  bool ChooseStep(const std::vector<double>& larger_tilts,
                  const std::vector<double>& larger_moments, double log_delta) {
    const double log_front = log_moment_ - c_ * mean_;
    double best = kInfinity;
    for (std::size_t i = 0; i < larger_tilts.size(); ++i) {
      const double c2 = larger_tilts[i];
      const double moment = larger_moments[i];
      if (!std::isfinite(moment)) continue;
      const double wanted = (moment - c2 * mean_ - log_front + kLineMargin + 5) / (c2 - c_);
      if (wanted < best) {
        best = wanted;
        larger_c_ = c2;
        larger_log_moment_ = moment;
      }
    }
    if (!std::isfinite(best)) return false;
    const double period =
        std::max({(kLineMargin - log_delta) / c_, best, 8 * std::sqrt(variance_)});
    step_ = 2 * std::numbers::pi / period;
    return true;
  }

  static double LogModulusBound(const std::vector<TiltedLoss>& parts, double mu2, double y) {
    double bound = -0.5 * mu2 * y * y;
    for (const TiltedLoss& part : parts) bound += part.count() * part.LogModulusBound(y);
    return bound;
  }

  // How many steps there are up to the cut: the frequency is doubled until the bound on the modulus
  // is negligible, then bisected. None where that takes more than twice kMaxNodes.
  std::optional<double> CountNodes(const std::vector<TiltedLoss>& parts, double mu2) const {
    const auto counts = [&](double y) { return LogModulusBound(parts, mu2, y) > -kLineMargin - 4; };
    double high = 4 / std::sqrt(variance_);
    while (counts(high)) {
      high *= 2;
      if (high / step_ > 2 * kMaxNodes) return std::nullopt;
    }
    double low = high / 2;
    for (int i = 0; i < (parts.size() > ContourComposition::kManyPairs ? 3 : 6); ++i) {
      const double middle = 0.5 * (low + high);
      (counts(middle) ? low : high) = middle;
    }
    return std::ceil(high / step_) + 1;
  }

  static bool IsTooMuch(const std::vector<TiltedLoss>& parts, double nodes) {
    double work = 0;
    for (const TiltedLoss& part : parts) work += nodes * static_cast<double>(part.size());
    return nodes > kMaxNodes || work > kMaxTurns;
  }

  void Evaluate(const std::vector<TiltedLoss>& parts, double mu2, std::size_t nodes) {
    double work = 0;
    for (const TiltedLoss& part : parts) work += static_cast<double>(part.size() * nodes);
    const bool recurrence = work > kMaxSines;
    log_modulus_.assign(nodes, 0.0);
    phase_.assign(nodes, 0.0);
    std::vector<double> log_largest(nodes, 0.0);
    std::vector<std::complex<double>> values(nodes);
    for (const TiltedLoss& part : parts) {
      part.Characteristic(step_, recurrence, values);
      for (std::size_t k = 0; k < nodes; ++k) {
        const double modulus = std::abs(values[k]);
        const double error = part.CharacteristicError(step_ * static_cast<double>(k), recurrence);
        log_modulus_[k] += part.count() * std::log(std::max(modulus, 1e-300));
        log_largest[k] += part.count() * std::log(modulus + error);
        phase_[k] += part.count() * std::arg(values[k]);
      }
    }
    error_.resize(nodes);
    for (std::size_t k = 0; k < nodes; ++k) {
      const double y = step_ * static_cast<double>(k);
      log_modulus_[k] -= 0.5 * mu2 * y * y;
      log_largest[k] -= 0.5 * mu2 * y * y;
      // |a^n - b^n| <= (|a| + e)^n - |a|^n for |b - a| <= e, and the rounding of the logarithms.
      const double rounding =
          kUnitRoundoff * 4 *
          (std::abs(log_modulus_[k]) + std::abs(phase_[k]) + static_cast<double>(parts.size()));
      const double modulus = std::exp(log_modulus_[k]);
      error_[k] = std::exp(log_largest[k]) - modulus + modulus * std::expm1(rounding) +
                  std::exp(log_largest[k]) * 4 * kUnitRoundoff;
      error_[k] = std::max(error_[k], 0.0);
    }
  }

  double c_ = 0;
  double log_moment_ = 0;
  double log_moment_error_ = 0;
  double mean_ = 0;
  double variance_ = 0;
  double larger_c_ = 0;
  double larger_log_moment_ = 0;
  double step_ = 0;
  double last_frequency_ = 0;
  double log_tail_ = 0;
  std::vector<double> log_modulus_;
  std::vector<double> phase_;
  std::vector<double> error_;
};

// Starts where a Gaussian of the composed variance would have its saddle point.
double GuessTilt(ContourComposition& composition, double log_delta) {
  const double h = 1e-3;
  const double curvature = 2 * composition.ApproximateLogMoment(h) / (h * (1 + h));
  const double sd = std::sqrt(std::max(curvature, 1e-300));
  return std::sqrt(std::max(1.0, -2 * log_delta)) / sd;
}

// delta = (mass at infinity) + (mass that cuts took out) + (finite part): log of what is left for
// the finite part.
double FiniteTarget(double log_delta, const ContourComposition& composition,
                    bool charge_cuts = true) {
  const double taken =
      -std::expm1(composition.log_survival()) + (charge_cuts ? composition.lost_mass() : 0.0);
  if (taken == 0) return log_delta;
  const double share = taken * std::exp(-log_delta);
  return share < 1 ? log_delta + std::log1p(-share) : -kInfinity;
}

// Chooses the tilt with and without a cut and keeps the better.
struct Prepared {
  ContourComposition composition;
  double c = 0;
  double value = kInfinity;  // of the objective at c
};

template <typename Objective>
std::optional<Prepared> Prepare(std::span<const CountedPair> pairs, double log_delta,
                                Objective objective) {
  std::optional<Prepared> best;
  // Narrow cuts cost more nodes, so a narrower one must earn its place.
  for (const double cut_width : {0.0, 0.3, 0.1, 0.03}) {
    Prepared candidate;
    const double goal = cut_width > 0 ? log_delta - kCutMargin : -kInfinity;
    if (!candidate.composition.Build(pairs, goal, cut_width)) return std::nullopt;
    if (!candidate.composition.HasDensity()) return std::nullopt;
    const auto f = [&](double c) { return objective(candidate.composition, c); };
    candidate.c = MinimiseOverTilt(f, GuessTilt(candidate.composition, log_delta));
    candidate.value = f(candidate.c);
    const bool better = !best || candidate.value < best->value - 1e-4 * std::abs(best->value);
    if (best && !better && std::isfinite(candidate.value)) break;
    if (better) best = std::move(candidate);
  }
  return best;
}

double Grain(const ContourInversion& inversion, double epsilon) {
  return 8 * kUnitRoundoff * (epsilon + std::abs(inversion.mean()));
}

}  // namespace

std::optional<Interval> ContourEpsilon(std::span<const CountedPair> pairs, double log_delta) {
  const auto converted = [&](ContourComposition& composition, double c) {
    const double target = FiniteTarget(log_delta, composition);
    return (composition.ApproximateLogMoment(c) - target + LogChernoffConstant(c)) / c;
  };
  std::optional<Prepared> prepared = Prepare(pairs, log_delta, converted);
  if (!prepared || !std::isfinite(prepared->value)) return std::nullopt;
  // The upper end answers for what the cuts took out, the lower end does without it.
  const double upper_target = FiniteTarget(log_delta, prepared->composition);
  const double lower_target = FiniteTarget(log_delta, prepared->composition, false);
  const std::optional<ContourInversion> inversion =
      ContourInversion::Make(prepared->composition, prepared->c, upper_target);
  if (!inversion) return std::nullopt;

  if (inversion->At(0).log_upper <= upper_target) return Interval{0, 0};
  // Newton on log S(epsilon) = target, kept inside a bracket.
  double low = 0;
  double high = kInfinity;
  double epsilon = std::max(0.0, prepared->value);
  for (int i = 0; i < 60; ++i) {
    const ContourInversion::Value value = inversion->At(epsilon);
    if (!std::isfinite(value.log_delta)) {
      high = epsilon;
      epsilon = 0.5 * (low + high);
      continue;
    }
    const double residual = value.log_delta - upper_target;
    if (std::abs(residual) < 1e-12) break;
    (residual > 0 ? low : high) = epsilon;
    double next = epsilon - residual / value.slope;
    // Rounding of epsilon against the mean of the loss: no step below it means anything.
    if (std::abs(next - epsilon) <= 4 * Grain(*inversion, epsilon)) break;
    if (!(next > low && next < high)) {
      next = std::isinf(high) ? epsilon + inversion->deviation() : 0.5 * (low + high);
    }
    epsilon = next;
  }
  // Step outward until the certified ends confirm.
  const double grain = Grain(*inversion, epsilon);
  Interval result{0, kInfinity};
  const double first = std::max(1e-14 * epsilon, grain);
  for (double step = first; step < 0.5 * epsilon + inversion->deviation(); step *= 2) {
    if (inversion->At(epsilon + step).log_upper <= upper_target) {
      result.upper = epsilon + step + grain;
      break;
    }
  }
  for (double step = first; step < epsilon; step *= 2) {
    if (inversion->At(epsilon - step).log_lower >= lower_target) {
      result.lower = std::max(0.0, epsilon - step - grain);
      break;
    }
  }
  if (std::isinf(result.upper)) return std::nullopt;
  return result;
}

std::optional<Interval> ContourLogDelta(std::span<const CountedPair> pairs, double epsilon) {
  const auto bound = [&](ContourComposition& composition, double c) {
    return composition.ApproximateLogMoment(c) - c * epsilon + LogChernoffConstant(c);
  };
  // The mass that a cut may lose hangs on the answer, so the answer is refined until it is small
  // against it.
  double guess = -10;
  std::optional<Interval> result;
  for (int round = 0; round < 4; ++round) {
    std::optional<Prepared> prepared = Prepare(pairs, guess, bound);
    if (!prepared || !std::isfinite(prepared->value)) return result;
    const double target = std::min(prepared->value, 0.0);
    const std::optional<ContourInversion> inversion =
        ContourInversion::Make(prepared->composition, prepared->c, target);
    if (!inversion) return result;
    const ContourInversion::Value value = inversion->At(epsilon);
    const double infinite = -std::expm1(prepared->composition.log_survival());
    const double extra = infinite + prepared->composition.lost_mass();
    result = Interval{value.log_lower, value.log_upper};
    if (infinite > 0) result->lower = std::log(std::exp(result->lower) + infinite);
    if (extra > 0) result->upper = std::log(std::exp(result->upper) + extra);
    result->upper = std::min(result->upper, 0.0);
    if (prepared->composition.lost_mass() <= std::exp(result->lower - kCutMargin + 5)) break;
    guess = std::isfinite(value.log_delta) ? value.log_delta - 1 : guess - 30;
  }
  return result;
}

}  // namespace sordino
