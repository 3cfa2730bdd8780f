// Random events of every kind, for tests that look for contradictions between the accountants.
#ifndef SORDINO_ACCOUNTING_TESTING_RANDOM_EVENT_H_
#define SORDINO_ACCOUNTING_TESTING_RANDOM_EVENT_H_

#include <cstdint>
#include <random>

#include "sordino/accounting/event.h"

namespace sordino::testing {

// A tree of mechanisms, samplers, compositions and parallel events under a random adjacency, of
// parameters that spread over orders of magnitude. The same generator gives the same event.
Event RandomEvent(std::mt19937_64& random);

// A random delta: mostly 1e-12 to 1e-2, sometimes far below, 0.5 or 0.
double RandomDelta(std::mt19937_64& random);

}  // namespace sordino::testing

#endif  // SORDINO_ACCOUNTING_TESTING_RANDOM_EVENT_H_
