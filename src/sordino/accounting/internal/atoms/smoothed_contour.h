// Certified (epsilon, delta) of any composition: lists of atoms, Fourier inversion, and a pinch of
// Gaussian noise that makes the integral converge.
//
// contour.h inverts the characteristic function of the composed loss where that function falls off
// by itself. It does not for few steps, for discrete noise and for sparse sampling, where most
// steps leave the loss almost alone. Here every pair is a list of atoms from above and one from
// below (atom_list.h), and one more release is composed: a Gaussian mechanism of mean shift h,
// whose loss is Z ~ N(h^2/2, h^2). Its factor e^{h^2 s(s+1)/2} ends the integral at |y| of some
// 6/h, whatever the other losses are.
//   Upper end: composing one more release never lowers delta. So delta <= delta_h.
//   Lower end: let g(u) = (1 - e^{epsilon - u})_+. Because E[e^-Z] = 1, what Z adds is the bump
//     D(u) = E[g(u + Z)] - g(u) >= 0. For e = epsilon - u >= 0 it is the Gaussian's delta(e), which
//     with v = e/h, the Mills ratio R and 1 - x R(x) falling in x is
//       phi(v - h/2) * integral over [v - h/2, v + h/2] of (1 - x R(x)) <= h (1 + h) phi(v - h/2)
//     for h <= 1/2 (1 + (h/2) R(-h/2) <= 1 + h). For e < 0 it is e^e times the value at -e. Both
//     are at most D+(u) = h (1 + h) e^{-h^2/8} phi((epsilon - u)/h) e^{(epsilon - u)/2}, whose
//     transform is a constant times the Gaussian's factor, so that
//       delta >= delta_h - E[D+(S)]
//              = 1/(2 pi) * integral of (1/(s(s+1)) - h^2 (1+h)) e^{K(s) + h^2 s(s+1)/2 - s eps}.
// The two ends are h^2 (c + 1) apart in epsilon where the loss is smooth, and less than h where it
// is an atom, so h is chosen for the width that is wanted.
//
// Trapezoidal step, aliases and Chernoff are those of contour.h. Beyond the last frequency Y the
// modulus is at most e^{-h^2 Y^2/2} of that at y = 0. Rounding of every sum is charged.
#ifndef SORDINO_ACCOUNTING_INTERNAL_SMOOTHED_CONTOUR_H_
#define SORDINO_ACCOUNTING_INTERNAL_SMOOTHED_CONTOUR_H_

#include <span>

#include "sordino/accounting/effort.h"
#include "sordino/accounting/internal/contour/contour.h"
#include "sordino/accounting/internal/grid/tail_split.h"
#include "sordino/base/quantity.h"

namespace sordino {

// Which ends are wanted; the other one stays at what is trivial.
struct WantedEnds {
  bool upper = true;
  bool lower = true;
};

// The interval that contains the smallest epsilon >= 0 with delta(epsilon) <= e^log_delta;
// [0, infinity] where the work would be too much. `near`, where it is not 0, says about where the
// answer is.
Interval SmoothedEpsilon(std::span<const CountedPair> pairs, double log_delta, WantedEnds wanted,
                         Effort effort = Effort::kFull, double near = 0);

// The same where rare large losses are set apart; epsilon up to the reach of the split.
Interval SmoothedEpsilon(const TailSplit& split, double log_delta, WantedEnds wanted, Effort effort,
                         double near = 0);

// A quick upper bound on the same epsilon by Chernoff at one tilt; good enough to see that one
// direction of an adjacency, or one of several alternatives, does not matter.
double ChernoffEpsilon(std::span<const CountedPair> pairs, double log_delta);

double ChernoffLogDelta(std::span<const CountedPair> pairs, double epsilon);

// The interval that contains log delta(epsilon), epsilon >= 0; [-infinity, 0] at worst.
Interval SmoothedLogDelta(std::span<const CountedPair> pairs, double epsilon, WantedEnds wanted,
                          Effort effort = Effort::kFull);

// The same where rare large losses are set apart; epsilon up to the reach of the split.
Interval SmoothedLogDelta(const TailSplit& split, double epsilon, WantedEnds wanted, Effort effort);

}  // namespace sordino

#endif  // SORDINO_ACCOUNTING_INTERNAL_SMOOTHED_CONTOUR_H_
