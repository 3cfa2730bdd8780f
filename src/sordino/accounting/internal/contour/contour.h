// Certified (epsilon, delta) of a composition by Fourier inversion along a tilted contour.
//
// Write M_i(s) = E_P[e^{s L_i}] for the losses of the composed pairs and K(s) = sum_i log M_i(s).
// For every c > 0
//   delta(epsilon) = 1/(2 pi) * integral over y of  e^{K(s) - s epsilon} / (s (s + 1)),
//                    s = c + iy.                                                            (1)
// The integrand falls off like a Gaussian of width 1/sd of the composed loss, whatever the number
// of steps, so some hundred nodes of the trapezoidal rule do what a grid of privacy losses needs
// millions of points for. (Saddle points: arXiv 2208.09595. The error bounds are ours.)
//
// Every error has a bound, and the bounds are part of the answer:
//  * Step eta in y. By Poisson summation the trapezoidal sum is exactly
//      S = sum over m of delta(epsilon + m P) e^{c m P},  P = 2 pi / eta,
//    a sum of non-negative terms: S is itself an upper bound. The terms m < 0 are at most
//    e^{-c |m| P}; those with m > 0 follow from Chernoff at a larger tilt c2,
//      delta(e) <= e^{K(c2) - c2 e} c2^c2 / (1 + c2)^(1 + c2).
//  * Cut at y = Y. The tilted density of the loss is bounded below by a stack of uniform layers
//    (mass m_j on an interval of length w_j); hence
//      |M(c + iy)| / M(c) <= 1 - sum_j m_j (1 - sup_{u >= y w_j / 2} |sin u / u|)
//    for all y beyond, and to the power of the step count this is negligible.
//  * M(s) itself is a trapezoidal sum over the noise coordinate x. Its integrand is analytic in
//    |Im x| < a, and the error is at most 2 N / (e^{2 pi a / h} - 1) with N the integral of its
//    modulus along Im x = a (Trefethen and Weideman 2014, theorem 5.1), bounded cell by cell.
//  * Rounding of every sum, to the power of the step count, is added.
//
// No certificate is given (nullopt) where the layers are too thin: few steps, or losses that are
// almost discrete. The grid (grid.h) serves there.
#ifndef SORDINO_ACCOUNTING_INTERNAL_CONTOUR_H_
#define SORDINO_ACCOUNTING_INTERNAL_CONTOUR_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sordino/accounting/loss_pair.h"
#include "sordino/base/quantity.h"

namespace sordino {

struct CountedPair {
  LossPair pair;
  std::uint64_t count;
};

// The interval that contains the smallest epsilon >= 0 with delta(epsilon) <= e^log_delta.
std::optional<Interval> ContourEpsilon(std::span<const CountedPair> pairs, double log_delta);

// The interval that contains log delta(epsilon), for epsilon >= 0.
std::optional<Interval> ContourLogDelta(std::span<const CountedPair> pairs, double epsilon);

}  // namespace sordino

#endif  // SORDINO_ACCOUNTING_INTERNAL_CONTOUR_H_
