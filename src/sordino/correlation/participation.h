// In which steps one record may take part: what a sensitivity over many steps depends on.
//
// A pattern is a set of steps in [0, steps) with at most `count` members, any two of which are at
// least `separation` apart: a record that was in step i is not in steps i + 1, ...,
// i + separation - 1. (Some publications count the steps in between, which are one fewer.)
//
//   one pass over the data                    count 1
//   k epochs in one fixed order               separation = steps of an epoch, count k
//   cyclic Poisson sampling of b groups       separation b, count ceil(steps / b), and the noise of
//                                             each round is amplified by sampling (bands_choice.h)
#ifndef SORDINO_CORRELATION_PARTICIPATION_H_
#define SORDINO_CORRELATION_PARTICIPATION_H_

#include <cstdint>

namespace sordino {

struct Participation {
  std::int64_t steps = 1;       // n, from 1 to kMaxCorrelatedSteps
  std::int64_t separation = 1;  // at least 1; 1: every step
  std::int64_t count = 1;       // at least 1

  // How many participations fit: min(count, ceil(steps / separation)).
  std::int64_t Fitting() const;
  // Throws Error for numbers outside their ranges.
  void Check() const;

  friend bool operator==(const Participation&, const Participation&) = default;
};

inline constexpr std::int64_t kMaxCorrelatedSteps = 10'000'000;

}  // namespace sordino

#endif  // SORDINO_CORRELATION_PARTICIPATION_H_
