// The L2 sensitivity of a matrix C when one record takes part in several steps.
//
//   Sens(C) = max |sum over i of pi of C_i (x) g_i|
//
// over patterns pi of participation.h and vectors g_i of norm at most 1, one for each step of pi
// (C_i is column i, and its square is sum_ij <C_i, C_j> <g_i, g_j>). Write G_ij = |<C_i, C_j>|.
// Then
//
//   Sens(C)^2 <= max over pi of sum_{i, j in pi} G_ij,                                         (1)
//
// with equality where signs s_i exist with s_i s_j <C_i, C_j> >= 0 for all pairs of the pattern
// (take g_i = s_i g): in particular for C >= 0, and where only neighbours in a pattern overlap,
// because the signs can then be chosen one after the other.
//
// How the maximum is found:
//
//  Columns of a pattern do not overlap (bands <= separation, or one participation). (1) is the
//    largest sum of |C_i|^2 over patterns: a dynamic programme over (step, participations left).
//    In a Toeplitz matrix earlier columns are at least as long, so the pattern 0, b, 2b, ... is the
//    best. Exact, for any signs (Choquette-Choo et al., arXiv 2306.08153).
//  Only neighbours overlap (bands <= 2 separation). A dynamic programme over (last step,
//    participations so far), whose step adds G_ii + 2 G_ij. Exact, for any signs.
//  Toeplitz with C >= 0 whose coefficients do not rise. The pattern 0, b, 2b, ... is the best
//    (Kalinin and Lampert, arXiv 2405.13763, Theorem 2): <C_i, C_j> does not fall when both steps
//    move towards the first or towards each other. Exact.
//  Any other Toeplitz matrix: an upper bound, the smaller of
//    - the sensitivity of the matrix with coefficients max over s >= t of |c_s|, which do not rise
//      and are nowhere smaller, so that each G_ij is at most what it is there;
//    - k |C_0|, because G_ij <= |C_i| |C_j| <= |C_0|^2.
//  Any other matrix: sum_{i in pi} r_i, where r_i is the largest sum of G_ij over j in any pattern,
//    maximised over pi: an upper bound, because pi is one of those patterns (the same paper).
//
// Results are rounded up by more than the error of their sums.
#ifndef SORDINO_CORRELATION_SENSITIVITY_H_
#define SORDINO_CORRELATION_SENSITIVITY_H_

#include <cstdint>
#include <span>
#include <vector>

#include "sordino/correlation/participation.h"

namespace sordino {

struct SensitivityBound {
  double value;
  bool exact;  // up to rounding; false: an upper bound
};

// The largest sum of values over the steps of a pattern. At most steps * count operations.
double BestPattern(std::span<const double> values, const Participation& participation);

// Lower triangular Toeplitz with the first column `column`, zeros beyond its end. Throws Error for
// numbers that are not finite.
SensitivityBound ToeplitzSensitivity(std::span<const double> column,
                                     const Participation& participation);

// Any matrix with as many columns as there are steps, by its rows. At most kMaxMatrixSteps.
// Throws Error for rows of other lengths and for numbers that are not finite.
inline constexpr std::int64_t kMaxMatrixSteps = 2048;
SensitivityBound MatrixSensitivity(const std::vector<std::vector<double>>& rows,
                                   const Participation& participation);

// The same from the absolute inner products of the columns, row by row.
SensitivityBound GramSensitivity(const std::vector<std::vector<double>>& gram,
                                 const Participation& participation);

}  // namespace sordino

#endif  // SORDINO_CORRELATION_SENSITIVITY_H_
