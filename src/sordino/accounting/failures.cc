#include "sordino/accounting/failures.h"

#include <cmath>

#include "sordino/accounting/calibration.h"

namespace sordino {

bool FailuresArePaid(double tau, Epsilon epsilon, double paid) {
  if (tau == 0) return true;
  return (1 + std::exp(epsilon.value())) * tau <= paid;
}

Delta DeltaForEvents(Delta delta, double share) { return Delta(delta.value() * (1 - share)); }

Interval SpentEpsilon(const Event& event, Delta delta, double tau) {
  CheckRange("the probability of failures", tau, 0, false, 1, false);
  Interval spent = {SpentEpsilon(event, delta).lower, kInfinity};
  if (tau == 0) return SpentEpsilon(event, delta);
  for (const double share : kFailureShares) {
    const double upper = SpentEpsilon(event, DeltaForEvents(delta, share)).upper;
    if (FailuresArePaid(tau, Epsilon(upper), delta.value() * share)) {
      spent.upper = upper;
      break;
    }
  }
  return spent;
}

}  // namespace sordino
