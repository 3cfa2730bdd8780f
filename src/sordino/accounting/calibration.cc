#include "sordino/accounting/calibration.h"

#include <algorithm>
#include <cmath>

#include "sordino/accounting/accountant.h"
#include "sordino/accounting/internal/engines/contradiction.h"
#include "sordino/accounting/renyi.h"

namespace sordino {
namespace {

double RenyiUpper(const Event& event, Delta delta) {
  const double log_delta = std::log(delta.value());
  if (!std::isfinite(log_delta) || log_delta >= 0) return kInfinity;
  RenyiCurve curve(event);
  return curve.reason().empty() ? curve.ToEpsilon(log_delta).epsilon : kInfinity;
}

constexpr double kMinCalibratedNoise = 1e-4;
constexpr double kMaxNoise = 1e12;
constexpr double kMinRate = 1e-15;
constexpr std::uint64_t kMaxSteps = 1000000000000;

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

// What is solved for. The search runs along y = log x, or -log x where more of it spends more, so
// that epsilon falls as y rises.
struct Unknown {
  std::function<Event(double)> event_of;
  double sign;  // 1 where more of it spends less
  bool whole;   // a whole number
  double start;
  double least_private;
  double most_private;

  double Coordinate(double x) const { return sign * std::log(x); }
  // The nearest number that may be an answer, on the safe side.
  double At(double y) const {
    const double x = std::exp(sign * y);
    const auto [low, high] = std::minmax(least_private, most_private);
    // A whole number comes back from its logarithm a little too small.
    return std::clamp(whole ? std::floor(x * (1 + 1e-13)) : RoundToDigits(x, sign > 0), low, high);
  }
};

struct Tried {
  double x;
  double y;
  Interval spent;
  double excess;  // log(spent / target); at most 0 where the budget is met
};

// The least private x that meets a budget. Quick bounds say about where it is; bounds at full
// effort, which cost ten times as much, are asked for near it only, along secants: epsilon is close
// to a power of x.
class BudgetSearch {
 public:
  BudgetSearch(Unknown unknown, double target, Delta delta)
      : unknown_(std::move(unknown)), target_(target), delta_(delta) {}

  std::optional<Tried> Solve() {
    double y = QuickCrossing();
    for (tries_ = 0; tries_ < kMaxTries; ++tries_) {
      const Tried tried = Try(unknown_.At(y), false);
      const bool met = tried.excess <= 0;
      same_side_ = met == last_met_ ? same_side_ + 1 : 0;
      last_met_ = met;
      (met ? good_ : bad_) = tried;
      if (!met && tried.x == unknown_.most_private) return std::nullopt;
      if (met && (tried.x == unknown_.least_private || CloseEnough(tried))) return tried;
      if (good_ && bad_ && Closed()) return good_;
      y = Next();
    }
    return good_;
  }

 private:
  // Where the secants of a jump would go on for long, bisection ends after fewer than this.
  static constexpr int kMaxTries = 200;
  // In log x: how far apart the ends of a bracket of quick bounds may be.
  static constexpr double kQuickBracket = 0.1;
  // An excess beyond this says nothing of the distance.
  static constexpr double kFarOff = 3;

  Tried Try(double x, bool quick) const {
    const Event event = unknown_.event_of(x);
    Interval spent;
    if (quick) {
      spent = CertifiedEpsilon(event, std::log(delta_.value()), Effort::kQuick).value;
      if (std::isinf(spent.upper)) spent.upper = std::min(spent.upper, RenyiUpper(event, delta_));
    } else {
      spent = SpentEpsilon(event, delta_);
    }
    return {x, unknown_.Coordinate(x), spent, Excess(spent.upper)};
  }

  // A target of zero is met by a spend of zero only.
  double Excess(double spent) const {
    if (spent <= target_ && target_ == 0) return -kInfinity;
    if (target_ == 0) return kInfinity;
    return std::log(std::max(spent, 1e-300) / target_);
  }

  // About where quick upper ends meet the budget; sets slope_.
  double QuickCrossing() {
    const double first = unknown_.Coordinate(unknown_.least_private);
    const double last = unknown_.Coordinate(unknown_.most_private);
    Tried good = Try(unknown_.start, true);
    Tried bad = good;
    for (double step = 1; good.excess > 0; step *= 1.5) {
      if (good.y >= last) return last;
      bad = good;
      good = Try(unknown_.At(std::min(last, good.y + step)), true);
    }
    for (double step = 1; bad.excess <= 0; step *= 1.5) {
      if (bad.y <= first) return first;
      good = bad;
      bad = Try(unknown_.At(std::max(first, bad.y - step)), true);
    }
    for (int i = 0; good.y - bad.y > kQuickBracket && good.x != bad.x; ++i) {
      const bool near = std::abs(bad.excess) < kFarOff && std::abs(good.excess) < kFarOff;
      const double share = near && i % 3 != 2 ? bad.excess / (bad.excess - good.excess) : 0.5;
      const double y = bad.y + std::clamp(share, 0.1, 0.9) * (good.y - bad.y);
      const Tried middle = Try(unknown_.At(y), true);
      if (middle.x == good.x || middle.x == bad.x) break;
      (middle.excess <= 0 ? good : bad) = middle;
    }
    const double rise = bad.excess - good.excess;
    if (!(rise < kFarOff) || !(good.y > bad.y)) return good.y;
    slope_ = std::max(rise / (good.y - bad.y), kMinSearchSlope);
    return bad.y + (good.y - bad.y) * bad.excess / rise;
  }

  // How much of the budget may be left: a share of what the interval itself leaves open. Wide
  // intervals take long, and their upper ends jump where engines hand over to each other: after
  // some tries more may be left.
  double Slack(const Tried& tried) const {
    constexpr double kShare = 0.25;
    constexpr double kExact = 1e-6;
    constexpr int kPatience = 2;
    const double open =
        tried.spent.lower > 0 ? std::log(tried.spent.upper / tried.spent.lower) : kInfinity;
    const double least = std::min(kShare * open, kMaxSlack);
    return open < kExact ? least : std::ldexp(least, 2 * std::max(0, tries_ - kPatience));
  }
  bool CloseEnough(const Tried& tried) const { return tried.excess >= -Slack(tried); }

  // Whether nothing is left between the ends.
  bool Closed() const {
    if (unknown_.whole) return std::abs(good_->x - bad_->x) <= 1;
    return good_->y - bad_->y <= kCalibrationTolerance;
  }

  double Next() const {
    if (good_ && bad_) return unknown_.Coordinate(Between());
    // One side only: along the slope, in growing steps.
    const Tried& from = good_ ? *good_ : *bad_;
    const double reach = std::ldexp(1.0, same_side_);
    const double aim = 0.5 * Slack(from);
    const double excess = std::clamp(from.excess + aim, -kFarOff, kFarOff);
    double step = excess / slope_ * (same_side_ > 0 ? reach : 1);
    const double least = 0.5 * kCalibrationTolerance * reach;
    step = good_ ? std::min(step, -least) : std::max(step, least);
    double y = from.y + step;
    if (unknown_.whole && unknown_.At(y) == from.x) {
      y = unknown_.Coordinate(from.x + (good_ ? 1 : -1));
    }
    return y;
  }

  // A number between the ends.
  double Between() const {
    const double width = good_->y - bad_->y;
    const bool near = bad_->excess < kFarOff && good_->excess > -kFarOff;
    double share = 0.5;
    if (near && tries_ % 4 != 3 && same_side_ < 3) {
      const double slope = (bad_->excess - good_->excess) / width;
      const double aim =
          std::max(0.5 * Slack(*good_), unknown_.whole ? 0 : 0.25 * kCalibrationTolerance * slope);
      share = std::clamp((bad_->excess + aim) / (bad_->excess - good_->excess), 0.02, 0.98);
    }
    const double x = unknown_.At(bad_->y + share * width);
    if (!unknown_.whole) return x;
    const auto [low, high] = std::minmax(good_->x, bad_->x);
    return std::clamp(x, low + 1, high - 1);
  }

  static constexpr double kMinSearchSlope = 0.05;
  static constexpr double kMaxSlack = 2e-4;

  Unknown unknown_;
  double target_;
  Delta delta_;
  double slope_ = 1;  // of log epsilon over y, less the sign
  std::optional<Tried> good_;
  std::optional<Tried> bad_;
  std::optional<bool> last_met_;
  int tries_ = 0;      // at full effort
  int same_side_ = 0;  // how often the last answer was on the same side as the one before
};

}  // namespace

Interval SpentEpsilon(const Event& event, Delta delta) {
  Interval spent = CertifiedEpsilon(event, std::log(delta.value())).value;
  const bool wide = spent.upper - spent.lower > 0.01 * spent.upper;
  if (wide || std::isinf(spent.upper)) {
    spent.upper = std::min(spent.upper, RenyiUpper(event, delta));
  }
  spent.lower = ConsistentLower(spent, {"the lower end of pld", "the upper end of pld or rdp"},
                                event.ToString());
  return spent;
}

std::optional<NoiseCalibration> CalibrateNoise(
    const std::function<Event(NoiseMultiplier)>& event_of, Epsilon epsilon, Delta delta) {
  const auto at = [&](double noise) { return event_of(NoiseMultiplier(noise)); };
  const Unknown noise{at, 1, false, 1, kMinCalibratedNoise, kMaxNoise};
  const auto found = BudgetSearch(noise, epsilon.value(), delta).Solve();
  if (!found) return std::nullopt;
  return NoiseCalibration{NoiseMultiplier(found->x), found->spent};
}

std::optional<StepCalibration> CalibrateSteps(const Event& step, Epsilon epsilon, Delta delta) {
  const auto at = [&](double steps) {
    return Event::Repeat(step, static_cast<std::uint64_t>(steps));
  };
  // A long composition is answered faster than a short one, so the search starts high.
  const Unknown steps{at, -1, true, 32, static_cast<double>(kMaxSteps), 1};
  const auto found = BudgetSearch(steps, epsilon.value(), delta).Solve();
  if (!found) return std::nullopt;
  return StepCalibration{static_cast<std::uint64_t>(found->x), found->spent};
}

std::optional<RateCalibration> CalibrateRate(const std::function<Event(SamplingRate)>& event_of,
                                             Epsilon epsilon, Delta delta) {
  const auto at = [&](double rate) { return event_of(SamplingRate(rate)); };
  const Unknown rate{at, -1, false, 1, 1, kMinRate};
  const auto found = BudgetSearch(rate, epsilon.value(), delta).Solve();
  if (!found) return std::nullopt;
  return RateCalibration{SamplingRate(found->x), found->spent};
}

}  // namespace sordino
