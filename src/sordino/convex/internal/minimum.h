// The minimum of a regularised convex objective, with a certificate.
//
//     F(theta) = sum_i l_i(theta) + (lambda / 2) |theta|^2 + b . theta
//
// F is strongly convex with the constant lambda, so |theta - argmin F| <= |grad F(theta)| / lambda
// for every theta. The proofs of output and objective perturbation are about the argmin; what is
// computed is a theta whose distance from it is bounded by the certificate: an upper bound on
// |grad F(theta)| in which every rounding is counted (gradient_sum.h). Methods pay for that
// distance.
//
// L-BFGS finds it in tens of steps. If it does not, accelerated descent follows, which converges at
// a known rate on every table (Nesterov, 2004, theorem 2.2.3). Rounding leaves a floor, which a
// plan's limit lies above (GradientLimit).
#ifndef SORDINO_CONVEX_INTERNAL_MINIMUM_H_
#define SORDINO_CONVEX_INTERNAL_MINIMUM_H_

#include <ATen/core/Tensor.h>

#include "sordino/convex/method.h"
#include "sordino/convex/problem.h"

namespace sordino::internal {

struct RegularisedObjective {
  const Problem* problem = nullptr;
  double lambda = 0;
  at::Tensor linear = {};  // b, [d, K]; undefined: 0
};

// The certificate of theta.
double CertifiedGradientNorm(const RegularisedObjective& objective, const at::Tensor& theta);

struct CertifiedMinimum {
  at::Tensor theta;
  double gradient_norm = 0;  // certified
};
// Until the certificate is at most `limit`, from `start` or 0. Throws std::runtime_error where
// rounding forbids that.
CertifiedMinimum Minimise(const RegularisedObjective& objective, double limit,
                          const FitProgress& progress, const at::Tensor& start = {});

// A limit of `share` times the bound on a row's gradient, or more where a table of twice the
// declared size needs it: rounding stays below a quarter of it for weights of 100 times the assumed
// norm.
double GradientLimit(const FitQuestion& question, double share);

}  // namespace sordino::internal

#endif  // SORDINO_CONVEX_INTERNAL_MINIMUM_H_
