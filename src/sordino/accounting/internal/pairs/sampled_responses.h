// Randomised response below samplers, where the record takes the place of another report.
//
// p, k: a report is uniform over k values with probability p, so that each other value has a = p/k
// and the own one h = 1 - p + a. In a sample of rate q the record x, x' or its stand-in reports,
// and another record's y else: (1-q) M(y) + q M(x) against (1-q) M(y) + q M(x').
//   Replace-one, k >= 3. With y = x' the losses above zero are those of removing a record, with
//     y = x those below are those of adding it: the glued pair (dominating_pair.h). With y unlike
//     both, the outcome x has P = a + q (h - a) and Q = a, as in the first, x' the reverse, as in
//     the second, and all others P = Q: this y attains the glued pair.
//   Zero-out, batches of fixed size: M(x') is uniform. Only the outcome x has P > Q: P - uQ =
//     (1-q)(1-u) M(y)[x] + q (h - u/k) is largest for u >= 1 where y is not x, as M(y)[x] = a.
//     Every other outcome z has Q - uP = (1-q)(1-u) M(y)[z] + q (1/k - u a), largest where y = x,
//     as M(y)[z] = a for all of them. The glued pair of both is the upper end; both are attained.
#ifndef SORDINO_ACCOUNTING_INTERNAL_SAMPLED_RESPONSES_H_
#define SORDINO_ACCOUNTING_INTERNAL_SAMPLED_RESPONSES_H_

#include <optional>

#include "sordino/accounting/internal/pairs/dominating_pair.h"

namespace sordino {

// The first, of a randomised response that is sampled with rate q in (0, 1]; nothing for k = 2.
std::optional<DominatingPairs> ReplacedResponses(const Event& child, double q);
// The second.
DominatingPairs NullResponses(const Event& child, double q);

}  // namespace sordino

#endif  // SORDINO_ACCOUNTING_INTERNAL_SAMPLED_RESPONSES_H_
