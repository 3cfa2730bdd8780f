// The privacy profile of a single release, by direct integration of
//   delta(epsilon) = integral over losses above epsilon of (1 - e^{epsilon - L}) dP,
// whose integrand has no cancellation. Exact to kExactReleaseError relative.
#ifndef SORDINO_ACCOUNTING_INTERNAL_EXACT_RELEASE_H_
#define SORDINO_ACCOUNTING_INTERNAL_EXACT_RELEASE_H_

#include "sordino/accounting/loss_pair.h"

namespace sordino {

inline constexpr double kExactReleaseError = 1e-12;

double ExactLogDelta(const LossPair& pair, double epsilon);

// The smallest epsilon >= 0 with delta(epsilon) <= e^log_delta, to within rounding; infinity when
// there is none.
double ExactEpsilon(const LossPair& pair, double log_delta);

// The largest loss that has P-mass; infinity when the loss is not bounded.
double LargestLoss(const LossPair& pair);

}  // namespace sordino

#endif  // SORDINO_ACCOUNTING_INTERNAL_EXACT_RELEASE_H_
