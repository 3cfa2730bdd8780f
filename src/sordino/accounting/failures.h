// Failures that have a probability, paid out of delta.
//
// A mechanism within tau in total variation of one that is (epsilon, delta)-DP, on every dataset,
// is (epsilon, delta + (1 + e^epsilon) tau)-DP. So a share of delta is kept back for what is not in
// the event (noise that is not quite the Gaussian, a batch that was too large), and the event is
// held to the rest.
#ifndef SORDINO_ACCOUNTING_FAILURES_H_
#define SORDINO_ACCOUNTING_FAILURES_H_

#include <array>

#include "sordino/accounting/event.h"
#include "sordino/base/quantity.h"

namespace sordino {

// The share of delta that pays for failures: the first of these that is enough.
inline constexpr std::array<double, 4> kFailureShares = {0x1p-31, 0x1p-16, 0x1p-8, 0x1p-2};

// Whether `paid`, a part of delta, pays for failures of total probability tau. Nothing fails: true.
bool FailuresArePaid(double tau, Epsilon epsilon, double paid);
// The largest epsilon at which `paid` pays for failures of a tau above 0; 0 where it does at none.
Epsilon LargestPaidEpsilon(double tau, double paid);
// What the share leaves for the event.
Delta DeltaForEvents(Delta delta, double share);

// Certified epsilon of the event together with failures of total probability tau; the upper end is
// infinite when no share of delta pays for them.
Interval SpentEpsilon(const Event& event, Delta delta, double tau);

}  // namespace sordino

#endif  // SORDINO_ACCOUNTING_FAILURES_H_
