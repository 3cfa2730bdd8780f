// Poisson-sampled events whose two ends differ: guarantees instead of mechanisms.
//
// Sampling keeps domination: a pair (A, B) that dominates a mechanism with the record against one
// without it, sampled with rate q, becomes ((1-q)B + qA, B) and its reverse (arXiv 2106.08567,
// theorem 11); with an attained pair the result is attained.
//   exponential   from above the pair of one step (bounded_range.h), from below losses t and t - e
//   zcdp          from below a Gaussian with that rho
// Replace-one. A pure or approximate event below a sampler bounds replacing and dropping a record:
// the laws A and A' with either record and B without one are pairwise within the guarantee, and the
// pair is (1-q)B + qA against (1-q)B + qA'. From above it has the glued profile (advanced joint
// convexity, arXiv 1807.01647, theorem 2, as for batches of fixed size in dominating_pair.h). From
// below A' = B gives both directions of sampling, and three outcomes with B = (b, b, 1 - 2b),
// A = (b e^e, b, c), A' = (b, b e^e, c), c = e^-e (1 - 2b), are pairwise within e.
#ifndef SORDINO_ACCOUNTING_INTERNAL_POISSON_GUARANTEES_H_
#define SORDINO_ACCOUNTING_INTERNAL_POISSON_GUARANTEES_H_

#include <optional>

#include "sordino/accounting/internal/dominating_pair.h"

namespace sordino {

// Under replace-one; `epsilon` is that of a pure or approximate event, none where its outcomes are
// all there is. Nothing for large ones.
std::optional<DominatingPairs> ReplacedGuarantee(const Event& child, double q,
                                                 std::optional<double> epsilon);

// Nothing for large ranges.
std::optional<DominatingPairs> SampledExponential(double range, double q, Adjacency adjacency,
                                                  const PairUse& use);
// From below; nothing for large rho, and without sampling.
std::optional<DominatingPairs> SampledZcdp(double rho, double q, Adjacency adjacency,
                                           const PairUse& use);

}  // namespace sordino

#endif  // SORDINO_ACCOUNTING_INTERNAL_POISSON_GUARANTEES_H_
