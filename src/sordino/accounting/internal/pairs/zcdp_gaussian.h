// A Gaussian that dominates adaptive compositions of zCDP mechanisms.
//
// Let F_n(u) be the largest delta at epsilon = log u of n steps, each rho-zCDP and chosen by what
// came before: F_0(u) = (1 - u)_+ and F_{n+1}(u) = sup E_Q[R F_n(u / R)], R = dP/dQ, over all
// rho-zCDP pairs (P, Q). Let G_V be the profile of a Gaussian mechanism with mu^2 = V. Claim: if
// F_n <= G_V and V >= 4 rho, then F_{n+1} <= G_{V + 2s} for every s that meets the two conditions
// below.
//
// Proof. Let p_V be the density of the loss of that Gaussian under Q: normal, mean -V/2, variance
// V. With x = log u, phi(R) = R G_V(u / R) has phi''(R) = u p_V(x - log R) / R^2, whose logarithm
// is a concave parabola in log R, so it lies below its tangent: phi''(R) <= phi''(1) R^{a-2} with a
// = x/V + 1/2. Integrating twice, and E_Q[R] = 1,
//   E_Q[phi(R)] <= G_V(u) + u p_V(x) h,   h = E_Q[(R^a - 1 - a (R - 1)) / (a (a - 1))].
// For a outside of [0, 1], E_Q[R^a] <= e^{rho a (a - 1)}: the Renyi divergence of order a of (P,
// Q), or of order 1 - a of (Q, P). So h <= the integral of e^{r a (a-1)} over r in [0, rho]. For a
// in [0, 1], R^{a-2} <= a R^-1 + (1 - a) R^-2 bounds h by a mean of the two Kullback-Leibler
// divergences: h <= rho. On the other side dG_V/dV = u p_V(x) / 2, hence
//   G_{V+2s}(u) - G_V(u) = u p_V(x) * integral of w(r) over r in [0, s],
//   w(r) = sqrt(V/V_r) e^{r (a - 1/2)^2 V/V_r - r/4},   V_r = V + 2r.
// Outside of [0, 1] let s >= rho V / (V - 2 rho), and r = t V / (V - 2t), t in [0, rho]: then
// r V/V_r = t, and w(r) dr/dt = (1 - 2t/V)^{-3/2} e^{t (a - 1/2)^2 - r/4}, which is at least
// e^{t a (a-1)} as (r - t) / 4 = t^2 / (2 (V - 2t)) <= t/V <= -log(1 - 2t/V) for t <= 1. In [0, 1]
// w(r) >= sqrt(V/V_s) e^{-s/4}, so s sqrt(V/V_s) e^{-s/4} >= rho is enough. rho is at most 1/2.
//
// It starts with V = 4 rho. n steps are dominated by a Gaussian of about V = 2 rho (n + log n + 2),
// while a Gaussian with V = 2 rho n is one of them. Other releases may stand between the steps:
// bounded_range.h says why.
#ifndef SORDINO_ACCOUNTING_INTERNAL_ZCDP_GAUSSIAN_H_
#define SORDINO_ACCOUNTING_INTERNAL_ZCDP_GAUSSIAN_H_

#include <cstdint>
#include <optional>

namespace sordino {

// mu of a Gaussian mechanism that dominates `steps` adaptively chosen rho-zCDP mechanisms; nothing
// for rho above 1/2.
std::optional<double> ZcdpGaussianMu(double rho, std::uint64_t steps);

}  // namespace sordino

#endif  // SORDINO_ACCOUNTING_INTERNAL_ZCDP_GAUSSIAN_H_
