// General and published Renyi bounds that need only the curve of the mechanism inside.
#ifndef SORDINO_ACCOUNTING_INTERNAL_RENYI_BOUNDS_H_
#define SORDINO_ACCOUNTING_INTERNAL_RENYI_BOUNDS_H_

#include <functional>

#include "sordino/accounting/run_count.h"

namespace sordino {

using RenyiFunction = std::function<double(double)>;

// A function of real orders made from one of integer orders >= 2: (alpha - 1) R(alpha) is convex
// in alpha and 0 at alpha = 1, so linear interpolation of it is an upper bound. Values at
// integers are remembered. Above `largest` the function `beyond` is used.
RenyiFunction InterpolatedRenyi(std::function<double(int)> at_integer, int largest,
                                RenyiFunction beyond);

// Poisson sampling with probability q under add-remove, for any mechanism with curve `inner`
// (Zhu and Wang 2019, ICML, theorem 5). Never above `inner` itself.
RenyiFunction PoissonRenyiBound(double q, RenyiFunction inner);

// Sampling without replacement at rate q under replace-one, for any mechanism with curve `inner`
// (Wang, Balle and Kasiviswanathan 2019, arXiv 1808.00087, theorem 9). Never above `inner`.
RenyiFunction FixedRenyiBound(double q, RenyiFunction inner);

// Exponential mechanism with epsilon-bounded range, order >= 1 (Dong, Durfee and Rogers 2020,
// arXiv 1909.13830): the largest divergence over pairs with losses t and t - epsilon.
double BoundedRangeRenyi(double epsilon, double order);

// The best of K runs of a mechanism, K from the truncated negative binomial distribution (Papernot
// and Steinke 2021, arXiv 2110.03620, theorem 2).
double BestOfNegativeBinomialRenyi(const RenyiFunction& inner, const RunCount& runs, double order);
// K from the Poisson distribution of this mean (their theorem 6, and the chance that nothing is
// released beside it); `log_delta` is that of the mechanism at an epsilon.
double BestOfPoissonRenyi(const RenyiFunction& inner,
                          const std::function<double(double)>& log_delta, double mean,
                          double order);

}  // namespace sordino

#endif  // SORDINO_ACCOUNTING_INTERNAL_RENYI_BOUNDS_H_
