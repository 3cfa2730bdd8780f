#include "sordino/accounting/calibration.h"

#include <algorithm>
#include <cmath>

#include "sordino/accounting/accountant.h"
#include "sordino/accounting/internal/contradiction.h"
#include "sordino/accounting/renyi.h"

namespace sordino {
namespace {

constexpr double kMinCalibratedNoise = 1e-4;
constexpr double kMaxNoise = 1e12;
constexpr double kMinRate = 1e-15;
constexpr std::uint64_t kMaxSteps = 1000000000000;

// Narrows (bad, good), the ends of a bracket in log x, until they agree to the tolerance. The
// spend is close to a power of x, so a secant in logarithms does most of the work.
struct Bracket {
  double bad_log_x;
  double bad_value;  // log(spent / target), positive
  double good_log_x;
  double good_value;  // at most zero
};

template <typename Value>
double Narrow(Bracket bracket, Value value) {
  for (int i = 0; i < 200; ++i) {
    const double width = bracket.good_log_x - bracket.bad_log_x;
    if (std::abs(width) <= kCalibrationTolerance) break;
    double share = 0.5;
    if (i % 4 != 3 && std::isfinite(bracket.bad_value) && std::isfinite(bracket.good_value)) {
      share = bracket.bad_value / (bracket.bad_value - bracket.good_value);
      // Aim a quarter of the tolerance to the good side, so that the last step closes the bracket.
      share += 0.25 * kCalibrationTolerance / std::abs(width);
      share = std::clamp(share, 0.02, 0.98);
      if (std::abs(width) < 50 * kCalibrationTolerance) share = std::clamp(share, 0.1, 0.9);
    }
    const double x = bracket.bad_log_x + share * width;
    const double v = value(x);
    if (v > 0) {
      bracket.bad_log_x = x;
      bracket.bad_value = v;
    } else {
      bracket.good_log_x = x;
      bracket.good_value = v;
    }
  }
  return bracket.good_log_x;
}

// x to ten significant digits, away from the wrong side: an answer that people copy, and the same
// on every machine.
double RoundToDigits(double x, bool up) {
  // Dividing by a power of ten gives the double nearest to the decimal; multiplying would not.
  const double exponent = 9 - std::floor(std::log10(x));
  const double power = std::pow(10.0, std::abs(exponent));
  const double scaled = exponent >= 0 ? x * power : x / power;
  const double digits = up ? std::ceil(scaled) : std::floor(scaled);
  return exponent >= 0 ? digits / power : digits * power;
}

// log(spent / target); a target of zero is met by a spend of zero only.
double Excess(double spent, double target) {
  if (spent <= target) return target > 0 ? std::log(std::max(spent, 1e-300) / target) : 0;
  return target > 0 ? std::log(spent / target) : kInfinity;
}

// The upper end of SpentEpsilon, or any bound that is on the same side of the target: a quick one
// decides most steps of a search.
double SpentAgainst(double target, const Event& event, Delta delta) {
  const Interval quick = CertifiedEpsilon(event, std::log(delta.value()), Effort::kQuick).value;
  if (quick.upper <= target) return quick.upper;
  if (quick.lower > target) return quick.lower;
  return SpentEpsilon(event, delta).upper;
}

}  // namespace

Interval SpentEpsilon(const Event& event, Delta delta) {
  const double log_delta = std::log(delta.value());
  Interval spent = CertifiedEpsilon(event, log_delta).value;
  const bool wide = spent.upper - spent.lower > 0.01 * spent.upper;
  if ((wide || std::isinf(spent.upper)) && std::isfinite(log_delta) && log_delta < 0) {
    RenyiCurve curve(event);
    if (curve.reason().empty()) {
      spent.upper = std::min(spent.upper, curve.ToEpsilon(log_delta).epsilon);
    }
  }
  spent.lower = ConsistentLower(spent, {"the lower end of pld", "the upper end of pld or rdp"},
                                event.ToString());
  return spent;
}

std::optional<NoiseCalibration> CalibrateNoise(
    const std::function<Event(NoiseMultiplier)>& event_of, Epsilon epsilon, Delta delta) {
  const double target = epsilon.value();
  const auto spent = [&](double log_noise) {
    return SpentEpsilon(event_of(NoiseMultiplier(std::exp(log_noise))), delta);
  };
  const auto value = [&](double log_noise) {
    const Event event = event_of(NoiseMultiplier(std::exp(log_noise)));
    return Excess(SpentAgainst(target, event, delta), target);
  };
  Bracket bracket{0, value(0), 0, 0};
  double step = 1;
  if (bracket.bad_value > 0) {
    while (true) {
      const double x = bracket.bad_log_x + step;
      if (x > std::log(kMaxNoise)) return std::nullopt;
      const double v = value(x);
      if (v <= 0) {
        bracket.good_log_x = x;
        bracket.good_value = v;
        break;
      }
      bracket.bad_log_x = x;
      bracket.bad_value = v;
      step *= 1.5;
    }
  } else {
    bracket.good_value = bracket.bad_value;
    while (true) {
      const double x = bracket.good_log_x - step;
      // Less noise than anybody wants already meets the budget.
      if (x < std::log(kMinCalibratedNoise)) {
        return NoiseCalibration{NoiseMultiplier(std::exp(bracket.good_log_x)),
                                spent(bracket.good_log_x)};
      }
      const double v = value(x);
      if (v > 0) {
        bracket.bad_log_x = x;
        bracket.bad_value = v;
        break;
      }
      bracket.good_log_x = x;
      bracket.good_value = v;
    }
  }
  double noise = RoundToDigits(std::exp(Narrow(bracket, value)), true);
  Interval met = SpentEpsilon(event_of(NoiseMultiplier(noise)), delta);
  // The upper end is not quite monotone where one engine hands over to another: the answer is the
  // first from here on that was seen to meet the budget.
  for (double wider = kCalibrationTolerance; met.upper > target; wider *= 2) {
    if (noise > kMaxNoise) return std::nullopt;
    noise = RoundToDigits(noise * (1 + wider), true);
    met = SpentEpsilon(event_of(NoiseMultiplier(noise)), delta);
  }
  return NoiseCalibration{NoiseMultiplier(noise), met};
}

std::optional<StepCalibration> CalibrateSteps(const Event& step, Epsilon epsilon, Delta delta) {
  const auto spent = [&](std::uint64_t steps) {
    return SpentEpsilon(Event::Repeat(step, steps), delta);
  };
  const auto meets = [&](std::uint64_t steps) {
    return SpentAgainst(epsilon.value(), Event::Repeat(step, steps), delta) <= epsilon.value();
  };
  if (!meets(1)) return std::nullopt;
  // A long composition is answered faster than a short one, so the doubling starts high.
  std::uint64_t good = 1;
  std::uint64_t bad = 32;
  while (bad <= kMaxSteps && meets(bad)) {
    good = bad;
    bad *= 2;
  }
  if (bad > kMaxSteps) return StepCalibration{good, spent(good)};
  while (bad - good > 1) {
    const std::uint64_t middle = good + (bad - good) / 2;
    (meets(middle) ? good : bad) = middle;
  }
  return StepCalibration{good, spent(good)};
}

std::optional<RateCalibration> CalibrateRate(const std::function<Event(SamplingRate)>& event_of,
                                             Epsilon epsilon, Delta delta) {
  const auto spent = [&](double log_rate) {
    return SpentEpsilon(event_of(SamplingRate(std::min(1.0, std::exp(log_rate)))), delta);
  };
  const auto value = [&](double log_rate) {
    const Event event = event_of(SamplingRate(std::min(1.0, std::exp(log_rate))));
    return Excess(SpentAgainst(epsilon.value(), event, delta), epsilon.value());
  };
  Bracket bracket{0, value(0), 0, 0};
  if (bracket.bad_value <= 0) return RateCalibration{SamplingRate(1), spent(0)};
  double step = 1;
  while (true) {
    const double x = bracket.bad_log_x - step;
    if (x < std::log(kMinRate)) return std::nullopt;
    const double v = value(x);
    if (v <= 0) {
      bracket.good_log_x = x;
      bracket.good_value = v;
      break;
    }
    bracket.bad_log_x = x;
    bracket.bad_value = v;
    step *= 1.5;
  }
  double rate = RoundToDigits(std::exp(Narrow(bracket, value)), false);
  Interval met = SpentEpsilon(event_of(SamplingRate(rate)), delta);
  for (double narrower = kCalibrationTolerance; met.upper > epsilon.value(); narrower *= 2) {
    if (rate < kMinRate) return std::nullopt;
    rate = RoundToDigits(rate / (1 + narrower), false);
    met = SpentEpsilon(event_of(SamplingRate(rate)), delta);
  }
  return RateCalibration{SamplingRate(rate), met};
}

}  // namespace sordino
