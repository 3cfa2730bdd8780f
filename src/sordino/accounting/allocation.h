// Random allocation: each record takes part in exactly one of t steps, chosen uniformly and
// independently of all other records (balls into bins), and each step is a Gaussian mechanism.
//
// Theorem. Let P = (1/t) sum_i N(e_i, sigma^2 I_t) and Q = N(0, sigma^2 I_t), with sigma the noise
// over the bound C on a contribution. Under add-remove and under zero-out adjacency, the t steps
// together, adaptively chosen, are dominated by (P, Q) where the record is in the first dataset and
// by (Q, P) where it is in the second, and a record whose contribution is always the same vector of
// norm C, among records that contribute nothing, attains both. (Chua et al., "Balls-and-bins
// sampling for DP-SGD", arXiv 2412.16802; Feldman and Shenfeld, "Privacy amplification by random
// allocation", arXiv 2502.08202.)
//
// Proof. Draw the places of the other records; they do not depend on this one. Without it, step j
// releases a_j + sigma xi_j, where a_j is a function of the past. With it in place i, step i
// releases a_i + v_i + sigma xi_i, where v_i is a function of the past, |v_i| <= 1. Both are made
// from one sample y of Q or of P by the same kernel: take step j's noise in the direction of v_j to
// be |v_j| y_j + sqrt(1 - |v_j|^2) sigma z_j, with fresh normal z_j, and fresh noise in the other
// directions. Its mean is |v_j| if j = i and zero else, its variance is sigma^2, and it is
// independent of the past. Post-processing makes neither pair easier to tell apart. []
//
// Replacing a record is not covered: with the record at either end both laws are mixtures, and no
// dominating pair is proven. Batches of a fixed size (shuffling) are not covered either: the places
// of the others would depend on this record.
//
// The allocation is one mechanism of t steps. Fewer of its steps are post-processing of all of
// them, so a run that stops inside an allocation is charged a whole one. Allocations drawn anew
// compose as any other releases.
//
// The loss. dP/dQ = S / t with S = X_1 + ... + X_t, where under Q the X_i are independent copies of
// e^{u / sigma - 1 / (2 sigma^2)}, u standard normal. For all real epsilon
//   (P, Q): delta = E_Q[(S/t - e^epsilon)_+],    (Q, P): delta = E_Q[(1 - e^epsilon S/t)_+],
// both convex in S: a bound on S in convex order is a bound on the pairs at every epsilon, hence
// under composition (arXiv 2106.08567). lognormal_lattice.h bounds each X_i in convex order on a
// lattice, lattice_sum.h sums t of them, and the sum is brought to a lattice of losses in the same
// way (split from above, merged from below), so that the grid that composes the allocations
// (grid.h) adds no rounding of its own. geometric_sum.h does the same on points at equal ratios,
// for heavy tails; of two bounds from above the smaller counts at every point.
//
// What is charged. With a step's ratio beyond the range the loss counts as infinite; its
// probability is chosen e^-12 of delta. At small S the lattice is coarse, and from above
//   S/t >= exp(mean of log X_i),  the exponential of N(-1/(2 sigma^2), 1/(t sigma^2))
// (arithmetic and geometric mean) is used where it is better.
#ifndef SORDINO_ACCOUNTING_ALLOCATION_H_
#define SORDINO_ACCOUNTING_ALLOCATION_H_

#include <cstdint>

#include "sordino/accounting/effort.h"
#include "sordino/accounting/loss_pair.h"

namespace sordino {

// Below this noise the ratio of a step spans too many orders of magnitude.
inline constexpr double kMinAllocationNoise = 0.1;
// Above this noise losses are as small as the rounding of the sums.
inline constexpr double kMaxAllocationNoise = 2000;
// Beyond this many batches the rounding of the sums is larger than what they are to resolve.
inline constexpr double kMaxAllocationBatches = 1e7;

// What the pairs are for: their ranges and resolution are chosen for `count` allocations and about
// this delta. Bounds hold for every question.
struct AllocationUse {
  double log_delta = -20;
  std::uint64_t count = 1;
  Effort effort = Effort::kFull;
};

struct AllocationPairs {
  LossPair remove_upper;  // the record is in the first dataset
  LossPair remove_lower;
  LossPair add_upper;  // the record is in the second dataset
  LossPair add_lower;
  // From below, on points at equal ratios; without masses where these were not asked for.
  LossPair remove_lower_points;
  LossPair add_lower_points;
};

// batches from 2 to kMaxAllocationBatches, sigma from kMinAllocationNoise to
// kMaxAllocationNoise.
AllocationPairs PairsOfAllocation(std::uint64_t batches, double sigma, const AllocationUse& use);

}  // namespace sordino

#endif  // SORDINO_ACCOUNTING_ALLOCATION_H_
