#include "sordino/accounting/internal/allocation/allocation_band.h"

#include <algorithm>
#include <cmath>

#include "sordino/accounting/gaussian.h"
#include "sordino/base/check.h"

namespace sordino {
namespace {

// Tilted mass outside the window of the sum: e^-kBandMargin.
constexpr double kBandMargin = 40;
// Steeper tilts than this over the cap are not resolved by the nodes of the moments; of the law
// itself, and of the bounds on its tails.
constexpr double kSteepest = 40;
constexpr double kSteepestBound = 90;
// Towards small losses the tilt magnifies the errors of the transform. Where an error is this share
// of a mass, the rest of the mass is put at one value.
constexpr double kNoiseShare = 0.01;

}  // namespace

AllocationBand::AllocationBand(const BandOptions& options)
    : options_(options),
      ratio_(options.s, options.low_u, options.cap_u,
             options.direction == AllocationDirection::kAdd) {
  ChooseTilt();
  ChooseWindow();
}

// Errors of the transform are e^exponent larger near the mean, and e^{tilt x - exponent} smaller at
// a distance of x. The far end of a heavy tail must not become the bulk of the tilted law.
void AllocationBand::ChooseTilt() {
  const double sign = remove() ? 1 : -1;
  const double t = options_.batches;
  const auto value = [&](double x) { return t * (ratio_.LogMoment(sign * x) - sign * x); };
  const double log_lost = std::log(std::max(LostMass(), 1e-300));
  const double most =
      remove()
          ? std::clamp(-log_lost - 6, 0.01, kSteepest / std::min(1.0, options_.s)) / ratio_.cap()
          : 1e6;
  double low = 0;
  double high = 1e-3 / std::max(ratio_.cap(), t);
  while (high < most && value(high) < options_.tilt_exponent) {
    low = high;
    high *= 2;
  }
  high = std::min(high, most);
  for (int i = 0; i < 30; ++i) {
    const double middle = 0.5 * (low + high);
    const double v = value(middle);
    (std::isfinite(v) && v < options_.tilt_exponent ? low : high) = middle;
  }
  tilt_ = sign * low;
  log_scale_ = ratio_.LogMoment(tilt_);
}

// The end of a window that leaves out e^-kBandMargin of the tilted law, by Chernoff.
AllocationBand::End AllocationBand::WindowEnd(int side) const {
  const double t = options_.batches;
  const LogNormalRatio::Moments tilted = ratio_.TiltedMoments(tilt_);
  const double deviation = std::sqrt(t * tilted.variance);
  End best{side > 0 ? t * ratio_.cap() : 0.0, 1 / deviation};
  for (const double size : {0.5, 1.0, 2.0, 4.0, 6.0, 9.0, 14.0, 20.0, 30.0}) {
    for (const double d : {size / deviation, size / ratio_.cap(), size / (t * tilted.mean)}) {
      const double theta = tilt_ + side * d;
      if (theta * ratio_.cap() * std::min(1.0, options_.s) > kSteepestBound) continue;
      const double bound =
          (t * (ratio_.LogMoment(theta) - tilted.log_moment) + kBandMargin) / (side * d);
      if (std::isfinite(bound) && side * bound < side * best.value) best = {bound, d};
    }
  }
  return best;
}

void AllocationBand::ChooseWindow() {
  const End high = WindowEnd(1);
  const End low = WindowEnd(-1);
  window_ = {std::max(0.0, low.value), options_.size, high.exponent, low.exponent};
  spacing_ = (high.value - window_.start) / static_cast<double>(options_.size - 8);
  if (!remove() && ratio_.cap() > high.value) {
    // A ratio that alone is beyond the window may be anything there.
    options_.cap_u = ratio_.Coordinate(high.value);
    ratio_ = LogNormalRatio(options_.s, options_.low_u, options_.cap_u, true);
  }
}

double AllocationBand::LostMass() const {
  const double t = options_.batches;
  double lost = t * UpperTail(-options_.low_u);
  if (remove()) {
    lost += UpperTail(options_.cap_u - options_.s) + (t - 1) * UpperTail(options_.cap_u);
  }
  return lost * (1 + 1e-9);
}

AllocationBand::Masses AllocationBand::Untilted(const LatticeSum& sum, std::size_t i) const {
  const double s = sum.Value(i);
  const double relative =
      options_.batches * (kLognormalRounding + 1e-15 * (1 + std::abs(log_scale_))) + 1e-12 +
      4e-16 * (std::abs(sum.log_scale) + std::abs(tilt_ * s));
  const double scale = std::exp(std::min(600.0, sum.log_scale - tilt_ * s));
  if (s < 0) return {s, 0, 0, scale * sum.error};
  return {s, scale * (1 - relative) * std::max(0.0, sum.mass[i] - sum.error),
          scale * (1 + relative) * (std::max(0.0, sum.mass[i]) + sum.error), scale * sum.error};
}

std::vector<ValueMass> AllocationBand::Lower() const {
  const LatticeSum sum = SumOfCopies(
      ratio_.Below(spacing_, tilt_, log_scale_, remove() ? Rounding::kDown : Rounding::kUp),
      static_cast<std::uint64_t>(options_.batches), window_, remove());
  std::vector<ValueMass> values;
  for (std::size_t i = 0; i < sum.mass.size(); ++i) {
    const Masses m = Untilted(sum, i);
    if (m.s > 0 && m.lower > 0) values.push_back({m.s, QMass(m.s, m.lower)});
  }
  return values;
}

// From large losses to small ones, until errors take over; the rest, at most 1 less what was
// certainly there, stands at the last value, whose loss is larger than its own.
AllocationBand::UpperLaw AllocationBand::Upper() const {
  const LatticeSum sum =
      SumOfCopies(ratio_.Above(spacing_, tilt_, log_scale_),
                  static_cast<std::uint64_t>(options_.batches), window_, remove());
  UpperLaw law;
  std::vector<ValueMass>& values = law.values;
  double certain = 0;
  const std::size_t n = sum.mass.size();
  for (std::size_t i = 0; i < n; ++i) {
    const Masses m = Untilted(sum, remove() ? n - 1 - i : i);
    if (m.s < 0 || !(m.upper > 0) || (remove() && m.s == 0)) continue;
    values.push_back({m.s, QMass(m.s, m.upper)});
    certain += m.lower;
    if (certain > 0.5 && m.noise > kNoiseShare * m.lower) break;
  }
  SORDINO_CHECK(!values.empty(), "the law of a sum has no values");
  const double rest = std::max(0.0, 1 - certain) + 1e-12;
  values.back().mass += QMass(values.back().value, rest);
  if (remove()) std::reverse(values.begin(), values.end());
  // The error of a mass bounds the tilted mass outside the window, and the tilt shrinks beyond its
  // end.
  law.beyond = Untilted(sum, remove() ? n - 1 : 0).noise * (1 + 1e-6);
  return law;
}

}  // namespace sordino
