// How often a run is repeated before its best result is released, as people write it.
//
//   tnb:ETA:GAMMA   truncated negative binomial: tnb:1:0.1 is geometric, tnb:0:0.1 logarithmic
//   poisson:MEAN    Poisson, where nothing may be released
#ifndef SORDINO_ACCOUNTING_BEST_OF_H_
#define SORDINO_ACCOUNTING_BEST_OF_H_

#include <string_view>

#include "sordino/accounting/event.h"

namespace sordino {

// The best of several runs of the event. Throws Error for another text and for numbers outside
// their ranges.
Event BestOf(std::string_view text, Event run);

}  // namespace sordino

#endif  // SORDINO_ACCOUNTING_BEST_OF_H_
