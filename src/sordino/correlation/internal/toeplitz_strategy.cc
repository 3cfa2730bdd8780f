#include "sordino/correlation/internal/toeplitz_strategy.h"

#include <limits>

#include "sordino/correlation/sensitivity.h"
#include "sordino/correlation/toeplitz.h"

namespace sordino {

double ToeplitzStrategy::Sensitivity(const Participation& participation) const {
  participation.Check();
  const double rounding = static_cast<double>(participation.steps) *
                          static_cast<double>(RecursionLength() + 1) *
                          std::numeric_limits<double>::epsilon();
  return ToeplitzSensitivity(Coefficients(participation.steps), participation).value *
         (1 + rounding);
}

std::vector<double> ToeplitzStrategy::SquaredErrors(std::int64_t steps) const {
  return RowNorms(PrefixSums(NoiseCoefficients(steps)));
}

}  // namespace sordino
