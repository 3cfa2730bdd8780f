// What one release, or one failure, costs the rules of a ledger (budget_filter.h).
//
// Losses. Some mechanisms keep a bound except with a small probability. Let P and Q be the laws of
// one step on two neighbouring datasets, given everything before it. A *kept part* of loss l is a
// pair of measures P~ <= P and Q~ <= Q, each of mass 1 - l at least, which are the laws, restricted
// to some outcomes, of two neighbours' steps that have the bound (pure epsilon, R(order) or mu).
//
// Theorem. Let each step have a kept part of loss l_i, chosen like the step itself from what came
// before, and let the sum of the losses be at most s on every path. If a rule makes every run of
// steps with the kept bounds (epsilon, d)-DP, the run is (epsilon, d + s)-DP.
//
// Proof. Under P draw, at each step, from P~_i, and with what is missing to P_i be lost; the same
// under Q. The run is lost somewhere with a probability of at most E[sum l_i] <= s under P. What is
// not lost is a set of outcomes of steps with the kept bounds, which stop when they are lost. So
// P[S] <= P[S, kept] + s <= e^epsilon Q[S, kept] + d + s <= e^epsilon Q[S] + d + s.
//
//   approximate(e, d)  has the kept part pure(e) of loss d: P = (1 - d) P' + d P'' and Q = (1 - d)
//                      Q' + d Q'' with P' and Q' within e of each other (Kairouz, Oh and Viswanath
//                      2015, arXiv 1311.0776; Murtagh and Vadhan 2016). The filters are those of
//                      Whitehouse, Ramdas, Rogers and Wu 2023, arXiv 2203.05481.
//   compose            losses add up.
//   parallel           the largest loss.
//   poisson(q, M)      under add-remove and zero-out: the loss of M, whoever was sampled. Under
//                      replace-one three laws would have to be split in one way: not measured.
//   a failure          a release within tau, in total variation, of one whose kept part (K_P, K_Q)
//                      has loss l. With f = min(P / P*, 1), g = min(Q / Q*, 1) and h = min(f, g)
//                      the measures h K_P <= P and h K_Q <= Q are those of the ideal release, of
//                      which an outcome x is kept with probability h(x): post-processing, so the
//                      bound stays. P loses l, tau for f, and for g the mass of K_P where K_Q has
//                      tau: e^p tau for pure p, (tau e^R)^((a - 1) / a) for R(a) by Hoelder.
#ifndef SORDINO_LEDGER_RELEASE_COSTS_H_
#define SORDINO_LEDGER_RELEASE_COSTS_H_

#include "sordino/accounting/event.h"
#include "sordino/accounting/kept_part.h"
#include "sordino/ledger/budget.h"

namespace sordino {

struct ReleaseCosts {
  double pure = kInfinity;
  double filter = kInfinity;  // R(order) or mu^2; infinite where the filter cannot measure it
  double loss = 0;            // 0 for budgets that keep nothing for losses
};
// `order`: 0 where the budget has no Renyi filter or its order is not fixed.
ReleaseCosts CostsOf(const Event& release, const Budget& budget, double order);

// The loss of a failure of probability tau of a release with this kept part.
double FailureLoss(const Event& kept, double tau);

}  // namespace sordino

#endif  // SORDINO_LEDGER_RELEASE_COSTS_H_
