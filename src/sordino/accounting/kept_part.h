// The part of a release that keeps a bound with no delta, and the probability that is lost for it;
// ledger/release_costs.h has the definition and the theorem.
#ifndef SORDINO_ACCOUNTING_KEPT_PART_H_
#define SORDINO_ACCOUNTING_KEPT_PART_H_

#include "sordino/accounting/event.h"

namespace sordino {

struct KeptPart {
  Event event = Event::None();
  double loss = 0;
};
// Approximate events inside become pure ones. What cannot be split stays as it is.
KeptPart KeptPartOf(const Event& event);

}  // namespace sordino

#endif  // SORDINO_ACCOUNTING_KEPT_PART_H_
