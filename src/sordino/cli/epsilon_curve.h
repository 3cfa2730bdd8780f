// What was done, in order, and how epsilon grew with it.
#ifndef SORDINO_CLI_EPSILON_CURVE_H_
#define SORDINO_CLI_EPSILON_CURVE_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "sordino/accounting/event.h"
#include "sordino/base/quantity.h"

namespace sordino {

// Steps in the order in which they were done: each event with the number of times in a row.
struct StepSequence {
  Adjacency adjacency = Adjacency::kAddRemove;
  std::vector<std::pair<Event, std::uint64_t>> phases;

  // Throws Error where the counts add up to more than 2^53.
  std::uint64_t TotalSteps() const;
  // The composition of the first `steps` steps.
  Event Prefix(std::uint64_t steps) const;
};

struct CurvePoint {
  std::uint64_t steps;
  Interval epsilon;
};

// Certified intervals at about 25 step counts, evenly spaced in their logarithm, from the first
// step to the last. `whole` is the interval of the whole sequence, which is known already. In
// between, sequences of more than 200 phases have quick bounds, some percent wide. Epsilon
// cannot fall as steps are added, so the bounds of neighbouring points tighten each other, and
// both ends come out monotone.
std::vector<CurvePoint> EpsilonCurve(const StepSequence& sequence, Delta delta, Interval whole);

}  // namespace sordino

#endif  // SORDINO_CLI_EPSILON_CURVE_H_
