#include "sordino/correlation/internal/banded_optimum.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>

#include "sordino/base/quantity.h"
#include "sordino/correlation/internal/minimise.h"
#include "sordino/correlation/internal/objective.h"
#include "sordino/correlation/toeplitz.h"

namespace sordino {
namespace {

// The logarithm of the objective at column = 1, x_0, x_1, ...
class BandedObjective {
 public:
  BandedObjective(const Participation& participation, CorrelationObjective objective)
      : participation_(participation),
        weights_(ErrorWeights(participation.steps, objective)),
        ones_(weights_.size(), 1.0) {}

  double operator()(std::span<const double> x, std::span<double> gradient) const {
    std::vector<double> column{1.0};
    column.insert(column.end(), x.begin(), x.end());
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
    for (std::size_t j = 1; j < column.size(); ++j) {
      double product = 0;
      for (std::size_t t = j; t < sums.size(); ++t) product += back[t] * sums[t - j];
      gradient[j - 1] = -2 * product / error + pattern.slope()[j] / pattern.value();
    }
    return std::log(error) + std::log(pattern.value());
  }

 private:
  Participation participation_;
  std::vector<double> weights_;
  std::vector<double> ones_;
};

}  // namespace

std::vector<double> BandedOptimum(std::int64_t bands, const Participation& participation,
                                  CorrelationObjective objective) {
  // The square root of the matrix of ones, cut off: the best one for the largest error with as many
  // bands as steps (Fichtenberger, Henzinger, Upadhyay, arXiv 2202.11205).
  std::vector<double> start = BinomialSeries(-0.5, bands);
  start.erase(start.begin());
  const BandedObjective function(participation, objective);
  std::vector<double> column = Minimise(function, std::move(start)).x;
  column.insert(column.begin(), 1.0);
  return column;
}

}  // namespace sordino
