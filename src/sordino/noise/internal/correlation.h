// Gaussian noise that is correlated between steps (correlation/strategy.h) in a run: what it
// remembers, how many steps have one event, and which.
//
// A record takes part in steps that are at least s = Separation() apart, by the sampler.
//
// Few bands. C has b <= s bands, so that the columns of C of two steps in which a record takes part
// do not overlap: each participation is a Gaussian release of its own, of the b rows that begin
// with its step, in which it moves C x by |c| times the distance of neighbouring sums. That is the
// release of which the sampler makes the event of s steps (sampling/cyclic.cc,
// sampling/ordered.cc):
//
//   poisson(s q, matrix(z, |c|)),  charged with the first of s steps.
//
// Sums may depend on what was released before: within these rows the record adds to the first one
// only, which is fixed when its step begins, and all else is the same function of earlier releases
// for neighbours.
//
// All bands. Else all steps are one release of C x, matrix(z, S) with the sensitivity S of C for
// the pattern of all steps, s apart, and sampling is not counted. It is charged with the first
// step.
//
// z is the noise multiplier of the plan: draws w have the deviation z in the unit of the distance
// of neighbouring sums. A run that is resumed begins a new process at that step, with new groups
// where the sampler has groups, and is charged for it as if all of the event were new.
#ifndef SORDINO_NOISE_INTERNAL_CORRELATION_H_
#define SORDINO_NOISE_INTERNAL_CORRELATION_H_

#include <cstdint>
#include <string>

#include "sordino/noise/noise_component.h"

namespace sordino::internal {

struct Correlation {
  NoiseMemory memory;
  double sensitivity = 1;            // of C for the steps of one event
  std::int64_t steps_per_event = 1;  // s, or all
  bool is_by_round = true;           // few bands

  Event EventOf(const NoiseTerms& terms, std::int64_t first, std::int64_t last) const;
};

// The strategy that is chosen for a budget.
inline constexpr const char* kChosenCorrelation = "auto";

// Throws Error for what is neither a strategy nor that.
void CheckCorrelation(const std::string& text);
std::int64_t CorrelatedBands(const std::string& text, std::int64_t steps);
// Throws Error for plans that the events above do not cover.
void CheckCorrelated(const NoiseTerms& terms, const std::string& text);
// Found once for each text and pattern of steps.
const Correlation& CorrelationOf(const NoiseTerms& terms, const std::string& text);

// With Poisson sampling the number of bands, with a fixed pattern of steps the strategy, of the
// least RMSE of prefix sums at the noise that meets the budget; "none" where that is best.
std::string ChooseCorrelation(const NoiseQuestion& budget);

}  // namespace sordino::internal

#endif  // SORDINO_NOISE_INTERNAL_CORRELATION_H_
