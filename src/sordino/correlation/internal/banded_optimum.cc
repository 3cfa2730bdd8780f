#include "sordino/correlation/internal/banded_optimum.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <span>
#include <utility>

#include "sordino/base/quantity.h"
#include "sordino/correlation/internal/minimise.h"
#include "sordino/correlation/internal/objective.h"
#include "sordino/correlation/toeplitz.h"

namespace sordino {
namespace {

constexpr double kBandedTolerance = 1e-13;
constexpr double kQuickTolerance = 1e-8;
// Prefix sums of C^-1 settle after a multiple of the bands.
constexpr std::int64_t kSettled = 64;
constexpr std::int64_t kShort = 1024;

// The logarithm of the objective at a column that begins with 1.
class BandedObjective {
 public:
  // As many weights as steps.
  BandedObjective(const Participation& participation, std::vector<double> weights)
      : participation_(participation), weights_(std::move(weights)), ones_(weights_.size(), 1.0) {}

  double operator()(std::span<const double> column, std::span<double> gradient) const {
    const std::vector<double> sums = Divided(ones_, column, participation_.steps);
    std::vector<double> weighted(sums.size());
    double error = 0;
    for (std::size_t t = 0; t < sums.size(); ++t) {
      weighted[t] = weights_[t] * sums[t];
      error += weighted[t] * sums[t];
    }
    if (!std::isfinite(error)) return kInfinity;
    const std::vector<double> back = DividedBack(weighted, column);
    const PatternSquare pattern(column, participation_);
    for (std::size_t j = 0; j < column.size(); ++j) {
      const double product =
          std::inner_product(sums.begin(), sums.end() - static_cast<std::ptrdiff_t>(j),
                             back.begin() + static_cast<std::ptrdiff_t>(j), 0.0);
      gradient[j] = -2 * product / error + pattern.slope()[j] / pattern.value();
    }
    return std::log(error) + std::log(pattern.value());
  }

 private:
  Participation participation_;
  std::vector<double> weights_;
  std::vector<double> ones_;
};

// c_1, c_2, ... as they are.
std::vector<double> FreeOptimum(const BandedObjective& objective, std::vector<double> column,
                                double tolerance) {
  std::vector<double> start(column.begin() + 1, column.end());
  std::vector<double> slope(column.size());
  const auto function = [&](std::span<const double> x, std::span<double> gradient) {
    std::copy(x.begin(), x.end(), column.begin() + 1);
    const double value = objective(column, slope);
    std::copy(slope.begin() + 1, slope.end(), gradient.begin());
    return value;
  };
  const Minimum found = Minimise(function, std::move(start), tolerance);
  std::copy(found.x.begin(), found.x.end(), column.begin() + 1);
  return column;
}

// The sums of e^{u_i} from each place on, divided by the first.
std::vector<double> FallingColumn(std::span<const double> logarithms) {
  std::vector<double> column(logarithms.size());
  double sum = 0;
  for (std::size_t j = column.size(); j-- > 0;) {
    sum += std::exp(logarithms[j]);
    column[j] = sum;
  }
  for (std::size_t j = column.size(); j-- > 0;) column[j] /= column[0];
  return column;
}

std::vector<double> FallingOptimum(const BandedObjective& objective,
                                   const std::vector<double>& column, double tolerance) {
  std::vector<double> start(column.size());
  for (std::size_t j = 0; j < column.size(); ++j) {
    start[j] = std::log(column[j] - (j + 1 < column.size() ? column[j + 1] : 0));
  }
  std::vector<double> slope(column.size());
  const auto function = [&](std::span<const double> x, std::span<double> gradient) {
    const std::vector<double> now = FallingColumn(x);
    const double value = objective(now, slope);
    const double mean = std::inner_product(slope.begin(), slope.end(), now.begin(), 0.0);
    double sum = 0;
    for (std::size_t i = 0; i < now.size(); ++i) {
      sum += slope[i];
      gradient[i] = (now[i] - (i + 1 < now.size() ? now[i + 1] : 0)) * (sum - mean);
    }
    return value;
  };
  return FallingColumn(Minimise(function, std::move(start), tolerance).x);
}

}  // namespace

std::vector<double> QuickBandedOptimum(std::int64_t bands, std::int64_t steps,
                                       CorrelationObjective objective) {
  std::vector<double> weights = ErrorWeights(steps, objective);
  const std::int64_t settled = std::min(steps, std::max(kShort, kSettled * bands));
  const auto kept = static_cast<std::size_t>(settled);
  const double rest = std::accumulate(weights.begin() + settled, weights.end(), 0.0);
  weights.resize(kept);
  for (std::size_t t = kept / 2; t < kept; ++t)
    weights[t] += rest / static_cast<double>(kept - kept / 2);
  const BandedObjective function({.steps = settled, .separation = settled, .count = 1},
                                 std::move(weights));
  return FreeOptimum(function, BinomialSeries(-0.5, bands), kQuickTolerance);
}

std::vector<double> BandedOptimum(std::int64_t bands, const Participation& participation,
                                  CorrelationObjective objective) {
  const BandedObjective function(participation, ErrorWeights(participation.steps, objective));
  const bool apart = participation.Fitting() == 1 || bands <= participation.separation;
  const std::int64_t free_bands = apart ? bands : participation.separation;
  std::vector<double> free = FreeOptimum(
      function, QuickBandedOptimum(free_bands, participation.steps, objective), kBandedTolerance);
  if (apart) return free;
  free.resize(static_cast<std::size_t>(bands), 0.0);
  std::vector<double> falling =
      FallingOptimum(function, BinomialSeries(-0.5, bands), kBandedTolerance);
  std::vector<double> slope(free.size());
  return function(free, slope) < function(falling, slope) ? free : falling;
}

}  // namespace sordino
