// What the scores of the canaries of one run prove about its epsilon.
//
// Every canary was put into the data by a fair coin of its own, and an attack gave it a score that
// should be larger where the coin said yes, and above 0. The attacker guesses "in" for the r / 2
// largest scores and "out" for the r / 2 smallest. How many canaries are guessed is fixed before a
// score is seen: r = 2.5 m^0.6 of m, and at least 16. Surer guesses prove more, and fewer of them
// less. The rule is read off the bounds that the expected numbers of right guesses of Gaussian runs
// give, mu from 0.55 to 1.75 and m from 200 to 50,000: they are within 7 % of those of the best r.
// Of equal scores the first canaries come first, which does not depend on their coins.
//
// By signs. A canary is guessed to be in where its score is above 0. For a run that is mu-GDP such
// a guess is right with a probability of at most Phi(mu / 2), the best of any test at even odds, so
// if the guesses about different canaries are independent, then v of m right ones and Clopper and
// Pearson's lower limit p of their share prove mu >= 2 Phi^-1(p).
#ifndef SORDINO_LOWER_BOUNDS_CANARY_AUDIT_H_
#define SORDINO_LOWER_BOUNDS_CANARY_AUDIT_H_

#include <cstdint>
#include <vector>

#include "sordino/base/quantity.h"
#include "sordino/lower_bounds/one_run.h"

namespace sordino {

// One entry for each canary.
struct ScoredCanaries {
  std::vector<char> is_in;  // what its coin said
  std::vector<double> scores;
};

struct CanaryAudit {
  OneRun outcome;
  double epsilon = 0;  // one run (one_run.h), for any mechanism
  // For a run that is Gaussian-DP: by the same guesses against a whole trade-off curve (one_run.h),
  // and by signs.
  GaussianLowerBound gaussian;
  GaussianLowerBound signs;
};

inline constexpr std::int64_t kMinAuditCanaries = 16;

// `significance` is that of each of the three. Throws Error for fewer than kMinAuditCanaries, and
// for a score that is not a number.
CanaryAudit AuditCanaries(const ScoredCanaries& canaries, Delta delta, double significance);

}  // namespace sordino

#endif  // SORDINO_LOWER_BOUNDS_CANARY_AUDIT_H_
