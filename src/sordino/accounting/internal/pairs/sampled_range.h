// Compositions of sampled bounded-range mechanisms, from above.
//
// A pair of losses t and t - e (bounded_range.h) that is sampled with rate q has the ratios R = 1 +
// q (e^t - 1) and 1 + q (e^{t-e} - 1), with the same chances under Q. As there, let F_n(u) be the
// largest delta at e^epsilon = u of n steps, each t chosen by what came before: F_0(u) = (1 - u)_+,
//   F_{n+1}(u) = sup_t E_Q[R F_n(u / R)],
// which is convex and a profile that dominates every adaptive sequence of n steps, record against
// no record; the other direction is its mirror image. F is kept at u = e^{ih} and joined by
// straight lines, which lie above it. On one piece of both lines R F(u / R) is linear in R, so that
// with z = e^t the mean is a constant + c_1 / z + c_2 z, c_2 <= 0: its largest value is in closed
// form, and the supremum is over all t. What is stored is F(u) - (1 - u)_+, which is as small as q.
// Above the last u it counts as constant, below the first as a line through zero.
#ifndef SORDINO_ACCOUNTING_INTERNAL_SAMPLED_RANGE_H_
#define SORDINO_ACCOUNTING_INTERNAL_SAMPLED_RANGE_H_

#include <cstdint>
#include <utility>

#include "sordino/accounting/effort.h"
#include "sordino/accounting/loss_pair.h"

namespace sordino {

// Dominate `steps` adaptively chosen steps of this range, sampled with rate q in (0, 1]: with the
// record against without it, and the reverse. Losses whose probability is about e^log_lost, and
// those beyond the range of doubles, become infinite.
TwoPairs SampledRangeUpper(double range, double q, std::uint64_t steps, double log_lost,
                           Effort effort);

}  // namespace sordino

#endif  // SORDINO_ACCOUNTING_INTERNAL_SAMPLED_RANGE_H_
