// The dominating pairs of every event: from what was done to what it can give away.
//
// Theorems used, for Poisson sampling with rate q of a mechanism dominated by (A, B) (A with the
// record, B without): add/remove is dominated by ((1-q)B + qA, B) and (B, (1-q)B + qA)
// (arXiv 2106.08567, theorem 11). Fixed-size sampling under replace-one: the profile of
// ((1-q)B + qA, B) for epsilon >= 0 and of (B, (1-q)B + qA) for epsilon < 0 (theorem 11 too),
// which is glued into one pair with the rest of the mass at loss zero; every single direction of
// it is attained (all other records equal), so the directions serve as lower bounds. Truncated
// Poisson batches (cap m, n records): with probability tau = Pr[Bin(n-1, q) >= m] the batch is full
// without the record, which then enters with probability m Pr[Bin(n, q) > m] / (n tau) and pushes
// another record out (sensitivity two); whether the batch is full does not depend on the record
// and is treated as public (cf. arXiv 2508.15089). Random allocation: allocation.h.
#ifndef SORDINO_ACCOUNTING_DOMINATING_PAIR_H_
#define SORDINO_ACCOUNTING_DOMINATING_PAIR_H_

#include <string>

#include "sordino/accounting/event.h"
#include "sordino/accounting/loss_pair.h"

namespace sordino {

// What the pairs are for. Pairs without a closed form choose their ranges by it; they are bounds
// for every question.
struct PairUse {
  double log_delta = -20;
  std::uint64_t count = 1;
};

struct DominatingPairs {
  // One list a direction of the adjacency; delta is the maximum over them. `upper` dominates every
  // neighbouring pair; `lower` is attained. Most events have upper = lower. An empty list means
  // that there is none (upper: see reason; lower: no bound but zero).
  std::vector<LossPair> upper;
  std::vector<LossPair> lower;
  std::string reason;
  bool exact = false;  // upper and lower are the same pairs
};

// The event must not be a composition or parallel.
DominatingPairs DominatingPairsOf(const Event& event, const PairUse& use = {});

// Whether the pairs of some release in the event depend on what they are for.
bool DependsOnUse(const Event& event);

}  // namespace sordino

#endif  // SORDINO_ACCOUNTING_DOMINATING_PAIR_H_
