#include "sordino/accounting/zcdp.h"

#include <cmath>

#include "sordino/accounting/internal/event_families.h"
#include "sordino/accounting/renyi.h"

namespace sordino {

ZcdpResult ZcdpOfPure(double epsilon) {
  if (std::isinf(epsilon)) return {kInfinity, "an event with infinite epsilon has no finite rho"};
  return {0.5 * epsilon * epsilon, ""};
}

ZcdpResult ZcdpOf(const Event& event) { return event.kind().Zcdp(event); }

RenyiEpsilonResult ZcdpEpsilon(double rho, double log_delta) {
  if (rho == 0) return {0, 2};
  return MinimizeEpsilon([rho](double order) { return rho * order; }, log_delta);
}

}  // namespace sordino
