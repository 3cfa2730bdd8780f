// The law of S = X_1 + ... + X_t (allocation.h) on points e^{jh}: for heavy tails and tiny deltas.
//
// A lattice (lattice_sum.h) resolves sums of one size; points at equal ratios resolve all sizes
// alike, and no transform leaves rounding behind: every mass is a sum of positive terms, good to a
// relative 1e-12 times t. Sums are formed by doubling. The sum of two points is no point:
//  * from above it is split between its two neighbours, mass and mean kept, which is larger in
//    convex order;
//  * from below the sums that belong to a point are merged into one value, their mean, which is
//    smaller in convex order (Jensen). A law is then masses and first moments.
// A split of half of S adds at most (n/t)(h/2)^2 to the relative variance of S for parts of n
// copies, so about h^2 / 2 in all.
#ifndef SORDINO_ACCOUNTING_INTERNAL_GEOMETRIC_SUM_H_
#define SORDINO_ACCOUNTING_INTERNAL_GEOMETRIC_SUM_H_

#include <cstdint>
#include <vector>

#include "sordino/accounting/effort.h"
#include "sordino/accounting/internal/atoms/balanced_runs.h"

namespace sordino {

// Q-masses of values of S, increasing, on the event that the logarithm of every ratio is within
// low_u and cap_u standard deviations of its mean.
struct GeometricSums {
  std::vector<ValueMass> upper;  // for every convex f >= 0, sum of mass * f is at least E[f(S)]
  std::vector<ValueMass> lower;  // at most
};
struct GeometricRange {
  double s;  // 1 / sigma
  double low_u;
  double cap_u;
};
GeometricSums SumOnPoints(std::uint64_t batches, const GeometricRange& range, Effort effort);

}  // namespace sordino

#endif  // SORDINO_ACCOUNTING_INTERNAL_GEOMETRIC_SUM_H_
