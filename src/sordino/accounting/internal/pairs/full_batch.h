// Truncated Poisson batches: the losses of those that are full, or one record short of it.
//
// Rate q, cap m (dominating_pair.h). Let U_k be the output with a uniform subset of k other
// records, b that of m - 1 others sampled, tau that of m or more. Without the record the output is
// b U_{m-1}
// + tau U_m + fewer. The record enters m - 1 others with probability q, and pushes one of m out
// with probability r; both leave m - 1 others and the record, with probability c = b q + tau r.
// Take W, a uniform subset of m, and j of W for public: the centres are W - j (call it 0), W (at v)
// and W - j + record (at x), |v| <= 1 and |x| <= 1. So the pairs are, x' the record in its place,
//   add-remove   b(1-q) N(0) + tau(1-r) N(v) + c N(x)  against  b N(0) + tau N(v),
//   replace-one  the same against                      b(1-q) N(0) + tau(1-r) N(v) + c N(x'),
//   zero-out     x' = 0.
// At every e^epsilon = u the difference P - uQ is a sum of positive and of negative multiples of
// Gaussians, and the hockey-stick divergence is its largest integral over a set.
//
// Lemma. If all centres x_i of positive terms lie on a line to the right of all centres y_j of
// negative ones, then no centres x'_i, y'_j with |x'_i - y'_j| <= |x_i - y_j| have a larger
// divergence. Proof: on the line the best set is a half-line z > t, with sum a_i n(t - x_i) = sum
// b_j n(t - y_j), n the density of the noise. Both sums can be split into s_ij alike: term i gets
// shares s_ij / n(t - x_i), term j gets s_ij / n(t - y_j). Each pair of shares has its best set at
// the same t, so that their divergences sum up to that of the whole; with other centres each pair
// of shares has at most that, and divergences of sums are at most the sum of divergences.
//
// So x = 1, v = -1, x' = -1 are the worst wherever v has a negative weight and x a positive one. To
// the other side (without the record against with it) v has a positive weight up to u = 1 / (1-r),
// and the same centres are the worst; beyond, v and x are both negative, and x = v is. Likewise
// for a null record. Each t gives the u for which it is the best: the profile in closed form.
#ifndef SORDINO_ACCOUNTING_INTERNAL_FULL_BATCH_H_
#define SORDINO_ACCOUNTING_INTERNAL_FULL_BATCH_H_

#include "sordino/accounting/effort.h"
#include "sordino/accounting/event.h"
#include "sordino/accounting/loss_pair.h"

namespace sordino {

// The losses of such batches, whose masses sum up to that of the batches. Losses that are rarer
// than e^log_lost, about, become infinite. sigma at least kMinNearlyFullNoise.
inline constexpr double kMinNearlyFullNoise = 0.1;
struct NearlyFull {
  double short_by_one = 0;  // b
  double full = 0;          // tau
  double rate = 0;          // q
  double enter = 0;         // r
};
LossPair NearlyFullLosses(const NearlyFull& batch, double sigma, Adjacency adjacency, bool remove,
                          double log_lost, Effort effort);

}  // namespace sordino

#endif  // SORDINO_ACCOUNTING_INTERNAL_FULL_BATCH_H_
