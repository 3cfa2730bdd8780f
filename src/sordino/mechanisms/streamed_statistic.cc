#include "sordino/mechanisms/streamed_statistic.h"

#include <algorithm>
#include <cmath>

#include "sordino/base/check.h"
#include "sordino/base/error.h"
#include "sordino/mechanisms/internal/additive_statistic.h"

namespace sordino {
namespace {

using internal::AdditiveStatistic;
using internal::FractionBits;
using internal::Int128;
using internal::NonNegativeFactor;
using internal::UnitFactor;
using internal::UnitInterval;

double Multiplier(const PrivacyUnit& unit, const NoiseBudget& budget, std::size_t coordinates) {
  return GridNoiseMultiplier(budget.noise, budget.epsilon, budget.delta,
                             std::max<std::size_t>(unit.groups, 1) * coordinates);
}

double NoiseInRows(const UnitFactor& factor, const NoiseBudget& budget, double multiplier) {
  return (budget.noise == NoiseKind::kLaplace ? factor.l1 : factor.l2) * multiplier;
}

// Counts of rows in bins: `coordinates` bins for each group, all noised on their own.
class Counts final : public AdditiveStatistic {
 public:
  Counts(const PrivacyUnit& unit, const NoiseBudget& budget, std::size_t bins)
      : Counts(unit, budget, bins, NonNegativeFactor(unit), Multiplier(unit, budget, bins)) {}

  void Add(std::size_t group, double value) override {
    if (bins_ == 1) {
      totals(group)[0] += one_;
    } else if (value >= 0 && value < static_cast<double>(bins_)) {
      totals(group)[static_cast<std::size_t>(value)] += one_;
    }
  }

  std::vector<Release> Finish(Generator& generator) const override {
    const double step = 1 / static_cast<double>(one_);
    const double half = noise().HalfWidth(budget().confidence) * step;
    std::vector<Release> releases;
    for (std::size_t group = 0; group < unit().groups; ++group) {
      Release release = Blank(generator);
      release.noise_scale = noise().scale() * step;
      for (const double total : Noised(group, generator)) {
        const double count = total * step;
        release.values.push_back(count);
        // Nothing is cut at 0: the value lies in its interval, and sums of counts stay unbiased.
        release.intervals.push_back({count - half, count + half});
      }
      releases.push_back(std::move(release));
    }
    return releases;
  }

 private:
  Counts(const PrivacyUnit& unit, const NoiseBudget& budget, std::size_t bins,
         const UnitFactor& factor, double multiplier)
      : Counts(unit, budget, bins, factor, multiplier,
               budget.noise == NoiseKind::kLaplace
                   ? 0
                   : FractionBits(NoiseInRows(factor, budget, multiplier))) {}
  Counts(const PrivacyUnit& unit, const NoiseBudget& budget, std::size_t bins,
         const UnitFactor& factor, double multiplier, int bits)
      : AdditiveStatistic(unit, budget, bins, multiplier,
                          {std::ldexp(factor.l1, bits), std::ldexp(factor.l2, bits)},
                          bins * unit.groups == 1 ||
                              (unit.rows == 1 && unit.adjacency != Adjacency::kReplaceOne)),
        bins_(bins),
        one_(std::int64_t{1} << bits) {}

  std::size_t bins_;
  std::int64_t one_;
};

class Sum final : public AdditiveStatistic {
 public:
  Sum(const Bounds& bounds, const PrivacyUnit& unit, const NoiseBudget& budget)
      : Sum(bounds, unit, budget, Multiplier(unit, budget, 1)) {}

  void Add(std::size_t group, double value) override {
    totals(group)[0] += std::llrint(bounds_.Clamp(value) / step_);
  }

  std::vector<Release> Finish(Generator& generator) const override {
    const double half = noise().HalfWidth(budget().confidence) * step_;
    std::vector<Release> releases;
    for (std::size_t group = 0; group < unit().groups; ++group) {
      Release release = Blank(generator);
      release.noise_scale = noise().scale() * step_;
      const double sum = Noised(group, generator).front() * step_;
      release.values = {sum};
      release.intervals = {{sum - half, sum + half}};
      releases.push_back(std::move(release));
    }
    return releases;
  }

 private:
  Sum(const Bounds& bounds, const PrivacyUnit& unit, const NoiseBudget& budget, double multiplier)
      : Sum(bounds, unit, budget, multiplier, Step(bounds, unit, multiplier)) {}
  Sum(const Bounds& bounds, const PrivacyUnit& unit, const NoiseBudget& budget, double multiplier,
      double step)
      : AdditiveStatistic(unit, budget, 1, multiplier, InSteps(bounds, unit, step),
                          unit.groups == 1),
        bounds_(bounds),
        step_(step) {}

  static double Magnitude(const Bounds& bounds) {
    return std::max(std::abs(bounds.low()), std::abs(bounds.high()));
  }
  static double Step(const Bounds& bounds, const PrivacyUnit& unit, double multiplier) {
    const double row = unit.count_is_public ? bounds.width() : Magnitude(bounds);
    return std::ldexp(1.0, GridExponent(row * unit.rows * multiplier, Magnitude(bounds)));
  }

  // Rounding is monotone, so the rounded bounds bound the rounded rows.
  static IntegerSensitivity InSteps(const Bounds& bounds, const PrivacyUnit& unit, double step) {
    const double low = std::rint(bounds.low() / step);
    const double high = std::rint(bounds.high() / step);
    const double most = std::max(std::abs(low), std::abs(high));
    double sensitivity = most * unit.rows;
    if (unit.count_is_public) {
      sensitivity = high - low;
    } else if (unit.adjacency == Adjacency::kReplaceOne && unit.groups == 1) {
      // From all rows at one end to all at the other, or to none.
      sensitivity = unit.rows * (std::max(high, 0.0) - std::min(low, 0.0));
    } else if (unit.adjacency == Adjacency::kReplaceOne) {
      sensitivity *= 2;
    }
    sensitivity = std::max(sensitivity, 1.0);
    return {sensitivity, sensitivity};
  }

  Bounds bounds_;
  double step_;
};

class Mean final : public AdditiveStatistic {
 public:
  Mean(const Bounds& bounds, const PrivacyUnit& unit, const NoiseBudget& budget)
      : Mean(bounds, unit, budget, Factor(unit), Multiplier(unit, budget, 2)) {}

  void Add(std::size_t group, double value) override {
    const std::int64_t steps = interval_.Steps(value);
    Int128* sums = totals(group);
    sums[0] += steps;
    if (unit().count_is_public) {
      ++rows_;
    } else {
      sums[1] += one_ - steps;
    }
  }

  std::vector<Release> Finish(Generator& generator) const override {
    std::vector<Release> releases;
    for (std::size_t group = 0; group < unit().groups; ++group) {
      Release release = Blank(generator);
      const std::vector<double> sums = Noised(group, generator);
      Interval range;
      double mean = 0.5;
      if (unit().count_is_public) {
        const double all = std::max<double>(1, static_cast<double>(rows_)) * interval_.one();
        const double half = noise().HalfWidth(budget().confidence) / all;
        mean = sums[0] / all;
        range = rows_ == 0 ? Interval{0, 1} : Interval{mean - half, mean + half};
        release.noise_scale = bounds_.width() * noise().scale() / all;
      } else {
        // A noised number of rows below 1 says nothing about the mean.
        const double all = std::max(sums[0] + sums[1], interval_.one());
        if (sums[0] + sums[1] >= interval_.one()) mean = sums[0] / all;
        range = internal::RatioInterval(budget().noise, noise().scale(), sums[0], sums[1],
                                        budget().confidence);
        const double m = std::clamp(mean, 0.0, 1.0);
        release.noise_scale = bounds_.width() * noise().scale() / all * std::hypot(1 - m, m);
      }
      const double rounding = 0.5 / interval_.one();
      release.values = {Place(mean)};
      release.intervals = {{Place(range.lower - rounding), Place(range.upper + rounding)}};
      releases.push_back(std::move(release));
    }
    return releases;
  }

 private:
  Mean(const Bounds& bounds, const PrivacyUnit& unit, const NoiseBudget& budget,
       const UnitFactor& factor, double multiplier)
      : Mean(bounds, unit, budget, factor, multiplier,
             FractionBits(NoiseInRows(factor, budget, multiplier))) {}
  Mean(const Bounds& bounds, const PrivacyUnit& unit, const NoiseBudget& budget,
       const UnitFactor& factor, double multiplier, int bits)
      : AdditiveStatistic(unit, budget, unit.count_is_public ? 1 : 2, multiplier,
                          {std::ldexp(factor.l1, bits), std::ldexp(factor.l2, bits)},
                          unit.count_is_public),
        bounds_(bounds),
        interval_(bounds, bits),
        one_(std::int64_t{1} << bits) {}

  static UnitFactor Factor(const PrivacyUnit& unit) {
    return unit.count_is_public ? UnitFactor{1, 1} : NonNegativeFactor(unit);
  }
  double Place(double u) const {
    return bounds_.Clamp(bounds_.low() + std::clamp(u, 0.0, 1.0) * bounds_.width());
  }

  Bounds bounds_;
  UnitInterval interval_;
  std::int64_t one_;
  std::uint64_t rows_ = 0;  // read only where the number of rows is public
};

}  // namespace

void StreamedStatistic::AddVector(std::size_t group, std::span<const double> row) {
  SORDINO_CHECK(row.size() == 1, "a statistic of one column takes one number a row");
  Add(group, row.front());
}

std::unique_ptr<StreamedStatistic> MakeCount(const PrivacyUnit& unit, const NoiseBudget& budget) {
  if (unit.count_is_public) {
    throw Error(
        "under replace-one adjacency the number of rows is public, so a count has nothing to "
        "protect; leave the count out or use add-remove.");
  }
  return std::make_unique<Counts>(unit, budget, 1);
}

std::unique_ptr<StreamedStatistic> MakeHistogram(std::size_t bins, const PrivacyUnit& unit,
                                                 const NoiseBudget& budget) {
  if (bins < 2) throw Error("a histogram has at least two bins; for one use a count.");
  return std::make_unique<Counts>(unit, budget, bins);
}

std::unique_ptr<StreamedStatistic> MakeSum(const Bounds& bounds, const PrivacyUnit& unit,
                                           const NoiseBudget& budget) {
  return std::make_unique<Sum>(bounds, unit, budget);
}

std::unique_ptr<StreamedStatistic> MakeMean(const Bounds& bounds, const PrivacyUnit& unit,
                                            const NoiseBudget& budget) {
  return std::make_unique<Mean>(bounds, unit, budget);
}

}  // namespace sordino
