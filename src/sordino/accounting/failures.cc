#include "sordino/accounting/failures.h"

#include <algorithm>
#include <cmath>

#include "sordino/accounting/calibration.h"

namespace sordino {

bool FailuresArePaid(double tau, Epsilon epsilon, double paid) {
  if (tau == 0) return true;
  return (1 + std::exp(epsilon.value())) * tau <= paid;
}

Epsilon LargestPaidEpsilon(double tau, double paid) {
  // From (1 + e^epsilon) tau <= paid; the factor is for the rounding of the functions.
  const double largest = std::log(std::max(1.0, paid / tau - 1)) * (1 - 0x1p-40);
  return FailuresArePaid(tau, Epsilon(largest), paid) ? Epsilon(largest) : Epsilon(0);
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
