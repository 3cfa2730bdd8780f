// A composition of pairs, answered by the engine that fits it: closed form, exact, contour,
// smoothed or grid (docs/accounting.md says which one serves what). Where two engines answer, their
// intervals are intersected, and a contradiction between them throws (contradiction.h).
#ifndef SORDINO_ACCOUNTING_INTERNAL_ENGINES_H_
#define SORDINO_ACCOUNTING_INTERNAL_ENGINES_H_

#include <string>
#include <vector>

#include "sordino/accounting/effort.h"
#include "sordino/accounting/internal/atoms/smoothed_contour.h"
#include "sordino/accounting/internal/contour/contour.h"
#include "sordino/base/quantity.h"

namespace sordino {

struct Question {
  // What another direction of the adjacency has already proven: a composition that stays below it
  // needs no more than a quick bound.
  double known_lower = 0;
  WantedEnds wanted = {};
  Effort effort = Effort::kFull;
};

struct Answer {
  Interval value;  // epsilon, or log delta
  std::string engine;
};

// At most `most` of the pairs, each counted for those after it too: about the same composition,
// and no bound on it.
std::vector<CountedPair> Thinned(const std::vector<CountedPair>& pairs, std::size_t most);

// The smallest epsilon >= 0 with delta(epsilon) <= e^log_delta.
Answer ComposedEpsilon(const std::vector<CountedPair>& pairs, double log_delta,
                       const Question& question);
// log delta(epsilon).
Answer ComposedLogDelta(const std::vector<CountedPair>& pairs, double epsilon,
                        const Question& question);

}  // namespace sordino

#endif  // SORDINO_ACCOUNTING_INTERNAL_ENGINES_H_
