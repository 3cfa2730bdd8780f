// The best banded Toeplitz strategy for prefix sums: the coefficients c_1, ..., c_{b-1} of C (c_0 is
// 1) that minimise
//
//   sum_t weight_t B_t^2 * |S|^2,   B = A C^-1 (first column), weight_t = (n - t) / n for the mean
//                                   of the squared errors, 1 for the last and largest one,
//
// where S_t = c_t + c_{t-s} + c_{t-2s} + ... is the sum of the columns of the participations
// 0, s, 2s, ... For bands <= s and for coefficients that do not rise, |S| is the sensitivity
// (sensitivity.h).
//
// Gradient. d B = - B dC / C as power series, so d/dc_j of sum_t w_t B_t^2 is -2 sum_t v_t B_{t-j}
// with v = C^-T (w B): three passes of n b operations in all.
#ifndef SORDINO_CORRELATION_INTERNAL_BANDED_OPTIMUM_H_
#define SORDINO_CORRELATION_INTERNAL_BANDED_OPTIMUM_H_

#include <cstdint>
#include <vector>

#include "sordino/correlation/participation.h"
#include "sordino/correlation/strategy.h"

namespace sordino {

std::vector<double> BandedOptimum(std::int64_t bands, const Participation& participation,
                                  CorrelationObjective objective);

}  // namespace sordino

#endif  // SORDINO_CORRELATION_INTERNAL_BANDED_OPTIMUM_H_
