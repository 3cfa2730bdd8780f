// The sum of the rows' gradients, its clipping, and how far rounding can move it.
//
// Rounding. Let u = 2^-53 and gamma_k = k u / (1 - k u), for sums of k products in any order
// (Higham, "Accuracy and Stability of Numerical Algorithms", 2002, section 3.1; a fused product
// only helps). Features are float64 or converted from float32, which is exact. In blocks of b rows:
//   - a score of a row has an error of at most gamma_d R |theta_k|, so the scores of a row one of
//     gamma_d R |Theta|;
//   - the slopes then have one of at most e = SlopeError(that) in L2 (loss.h);
//   - the sum of n outer products, block by block, one of gamma_(b + n/b) sum |r_i| |x_i|.
// Together, in the Frobenius norm, at most n R e + gamma_(b + n/b + 2) n R (S + e) with |r| <= S.
// Clipping r to a ball is a contraction; what it rounds is in SlopeError's allowance.
#ifndef SORDINO_CONVEX_INTERNAL_GRADIENT_SUM_H_
#define SORDINO_CONVEX_INTERNAL_GRADIENT_SUM_H_

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "sordino/convex/problem.h"

namespace sordino::internal {

// Frobenius norm of a matrix of finite numbers, rounded up.
double NormBound(const at::Tensor& matrix);

// sum_i x_i r_i^T, [d, K], with |r_i| scaled down to slope_clip where it is larger.
at::Tensor GradientSum(const Problem& problem, const at::Tensor& theta, double slope_clip);
// The same for some of the rows.
at::Tensor GradientSum(const Problem& problem, const at::Tensor& theta, double slope_clip,
                       const at::Tensor& rows);
// With sum_i l_i as well; no clipping.
struct ValueAndGradient {
  double value = 0;
  at::Tensor gradient;
};
ValueAndGradient LossSum(const Problem& problem, const at::Tensor& theta);

// The bound above for n rows and |Theta| <= theta_norm.
double GradientRounding(const TableShape& shape, std::int64_t rows, double theta_norm);
// Its largest value over all tables that a Problem takes.
double MaxGradientRounding(const TableShape& shape, double theta_norm);

}  // namespace sordino::internal

#endif  // SORDINO_CONVEX_INTERNAL_GRADIENT_SUM_H_
