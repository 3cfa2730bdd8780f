// The variance in the Bernstein basis; see streamed_statistic.h.
#include <algorithm>
#include <array>
#include <cmath>

#include "sordino/mechanisms/internal/additive_statistic.h"

namespace sordino {
namespace {

using internal::AdditiveStatistic;
using internal::FractionBits;
using internal::Int128;
using internal::NonNegativeFactor;
using internal::UnitFactor;
using internal::UnitInterval;

using Weights = std::array<double, 3>;  // rows at u = 0, at 1/2 and at 1, in the Bernstein sense

double Total(const Weights& c) { return c[0] + c[1] + c[2]; }
double FirstMoment(const Weights& c) { return (c[1] / 2 + c[2]) / Total(c); }
double SecondMoment(const Weights& c) { return c[2] / Total(c); }

// May be negative: noised sums need not be those of any rows.
double RawVariance(const Weights& c) {
  if (!(Total(c) > 0)) return -1;
  const double first = FirstMoment(c);
  return SecondMoment(c) - first * first;
}

double VarianceOf(const Weights& c) { return std::clamp(RawVariance(c), 0.0, 0.25); }

// The least and the largest variance over the box of all sums within t of the noised ones. The
// variance is a linear function minus a squared linear function of the fractions c_i / total, so it
// is concave in them; moving one sum moves the fractions along a line. Hence the least value is at
// a corner, and the largest is found by climbing along one sum at a time.
class VarianceBox {
 public:
  // With `rows` known the middle sum is what the ends leave of it.
  VarianceBox(const Weights& c, double t, bool rows_known) : rows_(rows_known ? Total(c) : -1) {
    for (std::size_t i = 0; i < 3; ++i) {
      low_[i] = std::max(0.0, c[i] - t);
      high_[i] = std::max(0.0, c[i] + t);
    }
  }

  double Least() const {
    double least = 0.25;
    for (int corner = 0; corner < 8; ++corner) {
      Weights c;
      for (std::size_t i = 0; i < 3; ++i) c[i] = (corner >> i) % 2 == 0 ? low_[i] : high_[i];
      least = std::min(least, Evaluate(c));
    }
    return least;
  }

  double Largest() const {
    Weights c;
    for (std::size_t i = 0; i < 3; ++i) c[i] = low_[i] / 2 + high_[i] / 2;
    for (int sweep = 0; sweep < 30; ++sweep) {
      for (std::size_t i = 0; i < 3; ++i) {
        double from = low_[i];
        double to = high_[i];
        for (int step = 0; step < 60; ++step) {
          const double third = (to - from) / 3;
          Weights left = c;
          Weights right = c;
          left[i] = from + third;
          right[i] = to - third;
          const bool rises = RawVariance(Whole(left)) < RawVariance(Whole(right));
          (rises ? from : to) = rises ? left[i] : right[i];
        }
        c[i] = from / 2 + to / 2;
      }
    }
    return Evaluate(c);
  }

 private:
  Weights Whole(Weights c) const {
    if (rows_ >= 0) c[1] = std::max(0.0, rows_ - c[0] - c[2]);
    return c;
  }
  double Evaluate(const Weights& c) const { return VarianceOf(Whole(c)); }

  double rows_;
  Weights low_{};
  Weights high_{};
};

class Variance final : public AdditiveStatistic {
 public:
  Variance(const Bounds& bounds, const PrivacyUnit& unit, const NoiseBudget& budget)
      : Variance(bounds, unit, budget, NonNegativeFactor(unit),
                 GridNoiseMultiplier(budget.noise, budget.epsilon, budget.delta,
                                     3 * std::max<std::size_t>(unit.groups, 1))) {}

  void Add(std::size_t group, double value) override {
    // Rounding two parts down leaves a third that is not negative, because
    // (1 - u)^2 + u^2 <= 1, and the three always sum to exactly one row.
    const double u = static_cast<double>(interval_.Steps(value)) / interval_.one();
    const auto low = static_cast<std::int64_t>((1 - u) * (1 - u) * interval_.one());
    const auto high = std::min(static_cast<std::int64_t>(u * u * interval_.one()), one_ - low);
    Int128* sums = totals(group);
    sums[0] += low;
    sums[1] += high;
    if (unit().count_is_public) {
      ++rows_;
    } else {
      sums[2] += one_ - low - high;
    }
  }

  std::vector<Release> Finish(Generator& generator) const override {
    std::vector<Release> releases;
    for (std::size_t group = 0; group < unit().groups; ++group) {
      releases.push_back(FinishGroup(group, generator));
    }
    return releases;
  }

 private:
  Variance(const Bounds& bounds, const PrivacyUnit& unit, const NoiseBudget& budget,
           const UnitFactor& factor, double multiplier)
      : Variance(bounds, unit, budget, factor, multiplier,
                 FractionBits((budget.noise == NoiseKind::kLaplace ? factor.l1 : factor.l2) *
                              multiplier)) {}
  Variance(const Bounds& bounds, const PrivacyUnit& unit, const NoiseBudget& budget,
           const UnitFactor& factor, double multiplier, int bits)
      : AdditiveStatistic(unit, budget, unit.count_is_public ? 2 : 3, multiplier,
                          {std::ldexp(factor.l1, bits), std::ldexp(factor.l2, bits)}, false),
        width_(bounds.width()),
        interval_(bounds, bits),
        one_(std::int64_t{1} << bits) {}

  Release FinishGroup(std::size_t group, Generator& generator) const {
    Release release = Blank(generator);
    const std::vector<double> sums = Noised(group, generator);
    const bool known = unit().count_is_public;
    Weights c = {sums[0], 0, sums[1]};
    c[1] = known ? static_cast<double>(rows_) * interval_.one() - sums[0] - sums[1] : sums[2];
    const double w2 = width_ * width_;
    const double all = Total(c);
    if (!(all >= interval_.one())) {
      // No rows to speak of: the whole range is the answer.
      release.values = {w2 / 8};
      release.intervals = {{0, w2 / 4}};
      release.noise_scale = w2 / 4;
      return release;
    }
    release.values = {w2 * VarianceOf(c)};
    release.noise_scale = w2 * noise().scale() * Slope(c, known);
    const Interval range = Range(c, known);
    release.intervals = {{w2 * range.lower, w2 * range.upper}};
    return release;
  }

  // The length of the gradient of the variance with respect to the noised sums.
  static double Slope(const Weights& c, bool known) {
    const double all = Total(c);
    const double first = FirstMoment(c);
    const double second = SecondMoment(c);
    const auto slope = [&](double e, double m) {
      return ((e - second) - 2 * first * (m - first)) / all;
    };
    const double at0 = slope(0, 0);
    const double at1 = slope(0, 0.5);
    const double at2 = slope(1, 1);
    // With the number of rows known, what leaves the ends goes to the middle.
    return known ? std::hypot(at0 - at1, at2 - at1) : std::hypot(at0, at1, at2);
  }

  // All variances within reach of the noise: each noise is below t with the confidence that a
  // union bound leaves it. The last term covers the rounding of rows and of the climb.
  Interval Range(const Weights& c, bool known) const {
    const double share = (1 - budget().confidence) / (known ? 2 : 3);
    const VarianceBox box(c, noise().HalfWidth(1 - share), known);
    const double rounding = 4 / interval_.one() + 1e-9;
    return {std::clamp(box.Least() - rounding, 0.0, 0.25),
            std::clamp(box.Largest() + rounding, 0.0, 0.25)};
  }

  double width_;
  UnitInterval interval_;
  std::int64_t one_;
  std::uint64_t rows_ = 0;  // read only where the number of rows is public
};

}  // namespace

std::unique_ptr<StreamedStatistic> MakeVariance(const Bounds& bounds, const PrivacyUnit& unit,
                                                const NoiseBudget& budget) {
  return std::make_unique<Variance>(bounds, unit, budget);
}

}  // namespace sordino
