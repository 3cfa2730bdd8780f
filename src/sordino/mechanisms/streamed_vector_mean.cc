#include <algorithm>
#include <cmath>
#include <numbers>

#include "sordino/base/check.h"
#include "sordino/base/error.h"
#include "sordino/mechanisms/internal/additive_statistic.h"
#include "sordino/mechanisms/internal/clipped_row.h"
#include "sordino/mechanisms/streamed_statistic.h"

namespace sordino {
namespace {

using internal::AdditiveStatistic;
using internal::Int128;

// A row on the grid: its parts are whole numbers of steps.
struct VectorGrid {
  double tau;
  double step;
  double longest;        // norm of the clipped part of a row
  std::int64_t counted;  // what each row adds to the count; 0 where the count is public
};

class VectorMean final : public AdditiveStatistic {
 public:
  VectorMean(std::size_t dimension, double tau, const PrivacyUnit& unit, const NoiseBudget& budget)
      : VectorMean(dimension, tau, unit, budget,
                   GridNoiseMultiplier(
                       budget.noise, budget.epsilon, budget.delta,
                       std::max<std::size_t>(unit.groups, 1) * Coordinates(dimension, unit))) {}

  void Add(std::size_t group, double value) override { AddVector(group, {&value, 1}); }

  void AddVector(std::size_t group, std::span<const double> row) override {
    SORDINO_CHECK(row.size() == dimension_, "a row has one number for each column");
    Int128* sums = totals(group);
    internal::AddClippedRow(row, grid_.tau, grid_.step, sums);
    if (unit().count_is_public) {
      ++rows_;
    } else {
      sums[dimension_] += grid_.counted;
    }
  }

  std::vector<Release> Finish(Generator& generator) const override {
    std::vector<Release> releases;
    for (std::size_t group = 0; group < unit().groups; ++group) {
      releases.push_back(unit().count_is_public ? OfKnownRows(generator)
                                                : OfNoisedRows(group, generator));
    }
    return releases;
  }

 private:
  VectorMean(std::size_t dimension, double tau, const PrivacyUnit& unit, const NoiseBudget& budget,
             double multiplier)
      : VectorMean(dimension, unit, budget, multiplier,
                   GridOf(dimension, tau, unit, budget.noise, multiplier)) {}
  VectorMean(std::size_t dimension, const PrivacyUnit& unit, const NoiseBudget& budget,
             double multiplier, const VectorGrid& grid)
      : AdditiveStatistic(unit, budget, Coordinates(dimension, unit), multiplier,
                          InSteps(dimension, unit, grid), false),
        dimension_(dimension),
        grid_(grid) {}

  static std::size_t Coordinates(std::size_t dimension, const PrivacyUnit& unit) {
    return unit.count_is_public ? dimension : dimension + 1;
  }

  // Two rows of vectors may be opposite, and so may all rows of a unit.
  static double Units(const PrivacyUnit& unit) {
    return (unit.adjacency == Adjacency::kReplaceOne ? 2.0 : 1.0) * unit.rows;
  }

  static double CountWeight(std::size_t dimension) {
    return 1 / std::sqrt(std::sqrt(static_cast<double>(dimension)));
  }

  static VectorGrid GridOf(std::size_t dimension, double tau, const PrivacyUnit& unit,
                           NoiseKind noise, double multiplier) {
    const double d = static_cast<double>(dimension);
    const double row = noise == NoiseKind::kLaplace ? std::sqrt(d) + 1 : std::numbers::sqrt2;
    const double step = std::ldexp(1.0, GridExponent(tau * row * Units(unit) * multiplier, tau));
    const double counted =
        unit.count_is_public ? 0 : std::max(1.0, std::rint(CountWeight(dimension) * tau / step));
    return {tau, step, internal::LongestRow(tau, step, dimension),
            static_cast<std::int64_t>(counted)};
  }

  static IntegerSensitivity InSteps(std::size_t dimension, const PrivacyUnit& unit,
                                    const VectorGrid& grid) {
    constexpr double kRoundings = 1 + 0x1p-48;
    const double d = static_cast<double>(dimension);
    const auto counted = static_cast<double>(grid.counted);
    const double row_l1 = grid.longest * std::sqrt(d) * kRoundings + counted;
    double row_l2 = std::hypot(grid.longest, counted) * kRoundings;
    // Between replaced rows the count cancels in one group; in two groups the parts are orthogonal.
    if (unit.adjacency == Adjacency::kReplaceOne) {
      row_l2 = std::max(grid.longest, row_l2 / std::numbers::sqrt2) * kRoundings;
    }
    return {std::ceil(Units(unit) * row_l1), Units(unit) * row_l2};
  }

  Release OfKnownRows(Generator& generator) const {
    Release release = Blank(generator);
    const double unit_step = grid_.step / std::max<double>(1, static_cast<double>(rows_));
    const double half = noise().HalfWidth(budget().confidence) * unit_step + grid_.step;
    release.noise_scale = noise().scale() * unit_step;
    for (const double sum : Noised(0, generator)) {
      const double mean = sum * unit_step;
      release.values.push_back(Place(mean));
      release.intervals.push_back(rows_ == 0 ? Interval{-grid_.tau, grid_.tau}
                                             : Interval{Place(mean - half), Place(mean + half)});
    }
    return release;
  }

  Release OfNoisedRows(std::size_t group, Generator& generator) const {
    Release release = Blank(generator);
    const std::vector<double> sums = Noised(group, generator);
    const auto counted = static_cast<double>(grid_.counted);
    // A noised number of rows below 1 says nothing about the mean.
    const double rows = std::max(sums[dimension_], counted);
    const bool counts = sums[dimension_] >= counted;
    // The mean is this times the quotient of the totals, which is at most `reach` for real rows.
    const double scale = grid_.step * counted;
    const double reach = grid_.tau / scale;
    double steepest = 0;
    for (std::size_t i = 0; i < dimension_; ++i) {
      const double ratio = counts ? std::clamp(sums[i] / rows, -reach, reach) : 0;
      const Interval range = internal::SignedRatioInterval(
          budget().noise, noise().scale(), sums[i], sums[dimension_], reach, budget().confidence);
      release.values.push_back(Place(ratio * scale));
      release.intervals.push_back(
          {Place(range.lower * scale - grid_.step), Place(range.upper * scale + grid_.step)});
      steepest = std::max(steepest, std::hypot(1, ratio));
    }
    release.noise_scale = noise().scale() / rows * steepest * scale;
    return release;
  }

  double Place(double mean) const { return std::clamp(mean, -grid_.tau, grid_.tau); }

  std::size_t dimension_;
  VectorGrid grid_;
  std::uint64_t rows_ = 0;  // read only where the number of rows is public
};

}  // namespace

std::unique_ptr<StreamedStatistic> MakeVectorMean(std::size_t dimension, ClipNorm tau,
                                                  const PrivacyUnit& unit,
                                                  const NoiseBudget& budget) {
  if (dimension == 0) throw Error("a vector mean has at least one column.");
  return std::make_unique<VectorMean>(dimension, tau.value(), unit, budget);
}

}  // namespace sordino
