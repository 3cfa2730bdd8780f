#include "sordino/mechanisms/internal/additive_statistic.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "sordino/base/check.h"
#include "sordino/base/error.h"

namespace sordino::internal {
namespace {

const PrivacyUnit& Checked(const PrivacyUnit& unit) {
  if (unit.rows == 0) throw Error("the number of rows per user is at least 1, not 0.");
  if (unit.groups == 0) throw Error("a statistic has at least one group, not 0.");
  SORDINO_CHECK(!unit.count_is_public || (unit.adjacency == Adjacency::kReplaceOne &&
                                          unit.rows == 1 && unit.groups == 1),
                "the number of rows is private here");
  return unit;
}

// P(|p L1 + q L2| >= s) for independent standard Laplace variables.
double LaplaceSumTail(double p, double q, double s) {
  if (p < q) std::swap(p, q);
  if (q < 1e-6 * p) return std::exp(-s / p);
  // Near p = q the quotient cancels; the limit is used where it differs by less than 1e-6.
  if (p - q < 1e-4 * p) return (1 + s / (p + q)) * std::exp(-2 * s / (p + q));
  return (p * p * std::exp(-s / p) - q * q * std::exp(-s / q)) / (p * p - q * q);
}

// P(|p X - q Y| >= s) for independent noise of the given kind with scale 1.
double NoiseTail(NoiseKind kind, double p, double q, double s) {
  return kind == NoiseKind::kLaplace ? LaplaceSumTail(p, q, s)
                                     : std::erfc(s / std::hypot(p, q) / std::numbers::sqrt2);
}

// The ends of the values that the noise explains, within `range`. The set need not be an interval
// when the noise hides the number of rows, so the search comes from the outside.
template <typename Explained>
Interval ExplainedRange(const Explained& explained, double centre, const Interval& range) {
  constexpr int kSteps = 512;
  const auto end = [&](double bound) {
    double rejected = bound;
    if (explained(bound)) return bound;
    double accepted = centre;
    for (int i = 1; i < kSteps; ++i) {
      const double m = bound + (centre - bound) * i / kSteps;
      if (explained(m)) {
        accepted = m;
        break;
      }
      rejected = m;
    }
    for (int i = 0; i < 50; ++i) {
      const double middle = accepted / 2 + rejected / 2;
      (explained(middle) ? accepted : rejected) = middle;
    }
    return rejected;
  };
  return {end(range.lower), end(range.upper)};
}

}  // namespace

UnitFactor NonNegativeFactor(const PrivacyUnit& unit) {
  const double rows = unit.rows;
  if (unit.adjacency != Adjacency::kReplaceOne) return {rows, rows};
  return {2 * rows, std::numbers::sqrt2 * (1 + 0x1p-50) * rows};
}

int FractionBits(double noise_in_rows) { return std::clamp(37 - std::ilogb(noise_in_rows), 0, 48); }

AdditiveStatistic::AdditiveStatistic(const PrivacyUnit& unit, const NoiseBudget& budget,
                                     std::size_t coordinates, double multiplier,
                                     const IntegerSensitivity& sensitivity,
                                     bool one_coordinate_changes)
    : unit_(Checked(unit)),
      budget_(budget),
      coordinates_(coordinates),
      multiplier_(multiplier),
      sensitivity_(sensitivity),
      one_coordinate_changes_(one_coordinate_changes),
      noise_(budget.noise, sensitivity, multiplier),
      totals_(unit.groups * coordinates, 0) {
  CheckRange("the confidence", budget.confidence, 0, true, 1, true);
  if (budget.noise == NoiseKind::kLaplace) budget_.delta = Delta(0);
}

std::vector<double> AdditiveStatistic::Noised(std::size_t group, Generator& generator) const {
  std::vector<double> noised;
  noised.reserve(coordinates_);
  for (std::size_t i = 0; i < coordinates_; ++i) {
    const Int128 sum = totals_[group * coordinates_ + i] + noise_(generator);
    noised.push_back(static_cast<double>(sum));
  }
  return noised;
}

Release AdditiveStatistic::Blank(const Generator& generator) const {
  Release release;
  release.confidence = budget_.confidence;
  release.epsilon = budget_.epsilon;
  release.delta = budget_.delta;
  release.is_private = generator.IsPrivate();
  release.event = event();
  release.failure = NoiseFailure(budget_.noise, coordinates_);
  return release;
}

Event AdditiveStatistic::event() const {
  if (budget_.noise == NoiseKind::kGaussian) {
    return Event::Gaussian(NoiseMultiplier(multiplier_), unit_.adjacency);
  }
  // The noise is for all totals together, so the groups are one release, and one that a unit is in
  // alone costs what a single group does. Where a unit moves a single total, that total's
  // distribution is the whole story; several totals are charged as pure DP.
  if (one_coordinate_changes_ && sensitivity_.l1 < 0x1p20) {
    return Event::DiscreteLaplace(noise_.scale(), static_cast<std::uint32_t>(sensitivity_.l1),
                                  unit_.adjacency);
  }
  return Event::Pure(budget_.epsilon, unit_.adjacency);
}

UnitInterval::UnitInterval(const Bounds& bounds, int bits)
    : bounds_(bounds), one_(std::ldexp(1.0, bits)) {}

std::int64_t UnitInterval::Steps(double value) const {
  // A quotient of two numbers, the first at most the second, is at most 1 after rounding too.
  return std::llrint((bounds_.Clamp(value) - bounds_.low()) / bounds_.width() * one_);
}

Interval RatioInterval(NoiseKind kind, double scale, double a, double b, double confidence) {
  if (!(a + b > 0)) return {0, 1};
  const auto explained = [&](double m) {
    return NoiseTail(kind, (1 - m) * scale, m * scale, std::abs((1 - m) * a - m * b)) >=
           1 - confidence;
  };
  return ExplainedRange(explained, std::clamp(a / (a + b), 0.0, 1.0), {0, 1});
}

Interval SignedRatioInterval(NoiseKind kind, double scale, double a, double b, double reach,
                             double confidence) {
  if (!(b > 0)) return {-reach, reach};
  const auto explained = [&](double r) {
    return NoiseTail(kind, scale, std::abs(r) * scale, std::abs(a - r * b)) >= 1 - confidence;
  };
  return ExplainedRange(explained, std::clamp(a / b, -reach, reach), {-reach, reach});
}

}  // namespace sordino::internal
