// The best banded Toeplitz strategy for prefix sums: the coefficients c_1, ..., c_{b-1} of C (c_0
// is 1) that minimise
//
//   sum_t weight_t B_t^2 * |S|^2,   B = A C^-1 (first column), weight_t = (n - t) / n for the mean
//                                   of the squared errors, 1 for the last and largest one,
//
// where S_t = c_t + c_{t-s} + c_{t-2s} + ... is the sum of the columns of the participations
// 0, s, 2s, ... |S| is the sensitivity for bands <= s, where the coefficients are free, and for
// coefficients that do not rise (sensitivity.h). With more bands than s and several participations
// the minimum is over those: c_j is proportional to the sum of e^{u_i} over i >= j.
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

// c_0, ..., c_{b-1}.
std::vector<double> BandedOptimum(std::int64_t bands, const Participation& participation,
                                  CorrelationObjective objective);

// The same for one participation, nearly: after a multiple of the bands, the mean of B_t^2 is taken
// to stay what it is. Starts from the square root of the matrix of ones, cut off, which is the best
// for the largest error with as many bands as steps (Fichtenberger, Henzinger, Upadhyay, arXiv
// 2202.11205).
std::vector<double> QuickBandedOptimum(std::int64_t bands, std::int64_t steps,
                                       CorrelationObjective objective);

}  // namespace sordino

#endif  // SORDINO_CORRELATION_INTERNAL_BANDED_OPTIMUM_H_
