// What every mechanism of this module gives back.
//
// A Release holds private values only: the noised numbers and what is public about them. The
// interval is about the noise: with probability at least `confidence` over the noise it contains
// the statistic of the (clamped, capped) data. It says nothing about a population from which the
// data may have been drawn.
#ifndef SORDINO_MECHANISMS_RELEASE_H_
#define SORDINO_MECHANISMS_RELEASE_H_

#include <vector>

#include "sordino/accounting/event.h"
#include "sordino/base/quantity.h"

namespace sordino {

inline constexpr double kDefaultConfidence = 0.95;

struct Release {
  std::vector<double> values;
  // One for each value, each at `confidence` on its own.
  std::vector<Interval> intervals;
  double confidence = kDefaultConfidence;
  // Scale (Laplace) or standard deviation (Gaussian) of the noise in the units of the values; for
  // a ratio to first order, and for a quantile the scale of the error in ranks.
  double noise_scale = 0;
  Epsilon epsilon{0};
  Delta delta{0};
  Event event = Event::None();
  // How far in total variation the noise that was drawn is at most from that of the event; a ledger
  // is charged both, and pays for this out of delta (accounting/failures.h). 0 for noise that is
  // exactly that of the event.
  double failure = 0;
  // False when the generator was seeded: then nothing here is private.
  bool is_private = true;

  double value() const { return values.front(); }
  const Interval& interval() const { return intervals.front(); }
};

}  // namespace sordino

#endif  // SORDINO_MECHANISMS_RELEASE_H_
