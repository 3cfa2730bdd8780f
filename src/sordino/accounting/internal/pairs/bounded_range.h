// Compositions of bounded-range mechanisms (the exponential mechanism): pairs from above and below.
//
// A mechanism has range e when for any neighbours the losses log P/Q of all outcomes lie in an
// interval of length e. Such a pair is dominated by one with two losses, t and t - e, for some t in
// [0, e] that the neighbours decide: the probability of t is p(t) = (e^e - e^t) / (e^e - 1) under P
// (Dong, Durfee and Rogers, "Optimal differential privacy composition for exponential mechanisms",
// arXiv 1909.13830, which also shows that each of them is attained and that t may depend on earlier
// outputs with profit). No single t dominates the others.
//
// From above. Let D_n(epsilon) be the largest delta of n such steps, each t chosen by what came
// before. With F_n(u) = D_n(log u),
//   F_0(u) = (1 - u)_+,   F_{n+1}(u) = sup_t p(t) F_n(u e^-t) + (1 - p(t)) F_n(u e^{e-t}).
// Each F_n is convex in u and falls from 1 at u = 0, as a supremum of profiles, so it is the
// profile of a pair (arXiv 2106.08567, proposition 8), which dominates every adaptive sequence of n
// steps. F_n is kept at u = e^{ih}, h = e / m, and joined by straight lines, which lie above it. On
// one piece of both lines, with y = e^-t, p F(u y) + (1-p) F(u y e^e) is a constant + c_1 y + c_2 /
// y with c_1 <= 0 (F is convex): its largest value is in closed form, and the supremum is over all
// t. The family is symmetric (t becomes e - t where P and Q change places), so F_n(1/u) = 1 - (1 -
// F_n(u)) / u, and u >= 1 is enough. Above the last u, F counts as constant.
//
// Blocks. n = k b steps are dominated by k copies of the pair of b steps, and F of few steps costs
// more than of many: a pair that must serve every epsilon lets each block choose t anew for each.
// Other releases may stand between the steps of a block: let T_t and G map a function F of u to its
// mean over the losses of one release. Then sup_t T_t G F <= G sup_t T_t F (a mean of suprema is at
// least the supremum of means), so that letting all choices of t come last only adds to delta.
// This holds for one range e; of several, only one may be taken in blocks of more than one step.
//
// From below. One t for all steps is attained; the best t for delta is looked for. So is a t that
// is a multiple of h and depends on what came before: of those the recursion, without lines between
// the points, finds the best for one epsilon, and the losses of that strategy are summed up.
#ifndef SORDINO_ACCOUNTING_INTERNAL_BOUNDED_RANGE_H_
#define SORDINO_ACCOUNTING_INTERNAL_BOUNDED_RANGE_H_

#include <cstdint>

#include "sordino/accounting/effort.h"
#include "sordino/accounting/internal/pairs/outcomes.h"
#include "sordino/accounting/loss_pair.h"

namespace sordino {

// How many steps of `count` a block takes at most; `count` steps are so many blocks, rounded up.
std::uint64_t BoundedRangeBlock(std::uint64_t count, Effort effort);

// Dominates `steps` adaptively chosen steps of this range. Losses whose probability is about
// e^log_lost become infinite. range in (0, 700].
LossPair BoundedRangeUpper(double range, std::uint64_t steps, double log_lost, Effort effort);
// The same of one step, as outcomes.
Outcomes BoundedRangeOutcomes(double range);

// The t in [0, range] whose `count` copies lose most at about this delta, as far as is found.
double WorstLoss(double range, std::uint64_t count, double log_delta);
// The losses of `steps` steps, each t chosen by those before, about as large as they can be at this
// delta; attained. steps at most the block of that count.
LossPair BoundedRangeStrategy(double range, std::uint64_t steps, double log_delta);
// The pair of losses t and t - range, attained.
Outcomes TwoLossOutcomes(double range, double t);

}  // namespace sordino

#endif  // SORDINO_ACCOUNTING_INTERNAL_BOUNDED_RANGE_H_
