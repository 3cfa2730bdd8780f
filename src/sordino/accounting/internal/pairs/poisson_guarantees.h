// Sampled events whose two ends differ: guarantees instead of mechanisms.
//
// Sampling keeps domination: a pair (A, B) that dominates a mechanism with the record against one
// without it, sampled with rate q, becomes ((1-q)B + qA, B) and its reverse (arXiv 2106.08567,
// theorem 11); with an attained pair the result is attained.
//   exponential   from above the pair of one step (bounded_range.h), from below losses t and t - e
//   zcdp          from above a Gaussian (zcdp_gaussian.h), from below one with that rho
// In a batch of fixed size the record takes the place of another one, and both hold too.
// Replace-one. A pure or approximate event below a sampler bounds replacing and dropping a record:
// the laws A and A' with either record and B without one are pairwise within the guarantee, and the
// pair is (1-q)B + qA against (1-q)B + qA'. From above it has the glued profile (advanced joint
// convexity, arXiv 1807.01647, theorem 2, as for batches of fixed size in dominating_pair.h); so
// have exponential and zCDP events, and those in batches of fixed size under zero-out. From
// below A' = B gives both directions of sampling, and three outcomes with B = (b, b, 1 - 2b),
// A = (b e^e, b, c), A' = (b, b e^e, c), c = e^-e (1 - 2b), are pairwise within e.
#ifndef SORDINO_ACCOUNTING_INTERNAL_POISSON_GUARANTEES_H_
#define SORDINO_ACCOUNTING_INTERNAL_POISSON_GUARANTEES_H_

#include <optional>

#include "sordino/accounting/internal/event_kind.h"

namespace sordino {

// Under replace-one; `epsilon` is that of a pure or approximate event, none where its outcomes are
// all there is. Nothing for large ones.
std::optional<DominatingPairs> ReplacedGuarantee(const Event& child, double q,
                                                 std::optional<double> epsilon);

// Nothing for large ranges.
std::optional<DominatingPairs> SampledExponential(double range, EventSampling sampler,
                                                  Adjacency adjacency, const PairUse& use);
// Nothing for large rho.
std::optional<DominatingPairs> SampledZcdp(double rho, EventSampling sampler, Adjacency adjacency,
                                           const PairUse& use);

}  // namespace sordino

#endif  // SORDINO_ACCOUNTING_INTERNAL_POISSON_GUARANTEES_H_
