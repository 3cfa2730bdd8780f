// A composition in which some steps are chosen as one goes: what a record meets in parallel events
// whose parts are cut after a look at earlier releases.
//
// Let D_s(epsilon) be the largest delta(epsilon) that is left when the steps s are still to come.
// By backward induction over the loss so far,
//   D_0(epsilon) = (1 - e^epsilon)_+,
//   D_s(epsilon) = max over the next step and its options (P, Q) of E_P[D_s'(epsilon - L)],
// s' the steps without that one. It depends on epsilon less the loss so far only, so one pass over
// a grid of epsilons is enough. D_s is a largest of convex functions of e^epsilon, so an option may
// be replaced by a pair that dominates it (upper end), or by a coarser one that it dominates (lower
// end): every function of that kind is a mixture of hockey sticks (arXiv 2106.08567). A release
// that is no choice may come first: max E <= E max. The steps of different choices may come in any
// order. Both ends are thus those of the best adaptive strategy; the composition of envelopes
// (envelope.h) is above it.
//
// Options are compositions themselves. On a circle of N points, with losses tilted by e^{cL}, each
// is a product of transforms (discretise.h has the two roundings of losses). For every strategy the
// circle differs from the line by what the losses beyond it can add, which Chernoff bounds with the
// largest moment of all options. Rounding of the transforms is added. Between points of the grid
// convexity says how far the ends are off.
#ifndef SORDINO_ACCOUNTING_INTERNAL_ADAPTIVE_CHOICE_H_
#define SORDINO_ACCOUNTING_INTERNAL_ADAPTIVE_CHOICE_H_

#include <cstdint>
#include <vector>

#include "sordino/accounting/effort.h"
#include "sordino/accounting/internal/contour/contour.h"
#include "sordino/accounting/internal/grid/discretise.h"
#include "sordino/base/quantity.h"

namespace sordino {

// `count` steps, each one of the compositions.
struct ChosenSteps {
  std::vector<std::vector<CountedPair>> options;
  std::uint64_t count = 1;
};

struct AdaptiveComposition {
  std::vector<CountedPair> others;
  std::vector<ChosenSteps> choices;
};

// A bound (kUpper or kLower) on the smallest epsilon >= 0 with delta(epsilon) <= e^log_delta, which
// lies in `known`. Infinity or 0 where nothing is certified: many steps, or losses that spread over
// more orders of magnitude than the grid has points.
double AdaptiveEpsilon(const AdaptiveComposition& composition, double log_delta, Interval known,
                       Bound bound, Effort effort);

// A bound on log delta(epsilon), which is about `guess`; 0 or -infinity where nothing is certified.
double AdaptiveLogDelta(const AdaptiveComposition& composition, double epsilon, double guess,
                        Bound bound, Effort effort);

}  // namespace sordino

#endif  // SORDINO_ACCOUNTING_INTERNAL_ADAPTIVE_CHOICE_H_
