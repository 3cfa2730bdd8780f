// The two factors that an optimiser makes small: weights of the squared errors, and the sensitivity
// of evenly spaced participations, with its derivatives.
#ifndef SORDINO_CORRELATION_INTERNAL_OBJECTIVE_H_
#define SORDINO_CORRELATION_INTERNAL_OBJECTIVE_H_

#include <cstdint>
#include <span>
#include <vector>

#include "sordino/correlation/participation.h"
#include "sordino/correlation/strategy.h"

namespace sordino {

// weight_t of B_t^2, for t < steps: (n - t) / n for the mean over the prefix sums, 1 for the last.
std::vector<double> ErrorWeights(std::int64_t steps, CorrelationObjective objective);

// |S|^2 with S_t = c_t + c_{t-s} + c_{t-2s} + ..., one term for each participation 0, s, 2s, ...
class PatternSquare {
 public:
  PatternSquare(std::span<const double> column, const Participation& participation);
  double value() const { return value_; }
  // Its derivative by each coefficient, of all steps.
  const std::vector<double>& slope() const { return slope_; }

 private:
  double value_ = 0;
  std::vector<double> slope_;
};

}  // namespace sordino

#endif  // SORDINO_CORRELATION_INTERNAL_OBJECTIVE_H_
