// The best of K independent runs of a mechanism, K drawn in secret (accounting/run_count.h).
//
// Let Q and Q' be the distributions of a run's result on two neighbouring datasets. Results have a
// total order that depends on public data only (a score that is part of the result, say); of equal
// ones an independent uniform number decides, which is appended to the result. A result may be
// anything: a number, or a model with its noisy score. Let f(s) = E[s^K], E[K] finite, and let
// u(y) be the chance under Q that a run does better than y, u'(y) that under Q'.
//
// Theorem. Let (A, B) dominate (Q, Q'), and g(u) = sup {B(S) : A(S) <= u}. For epsilon >= 0 the
// hockey-stick divergence of the best of K runs from Q and from Q' is at most
//     E_A[H(e^{epsilon - L})],  L the loss log(dA/dB),
//     H(c) = max over u in [0, 1] of (f'(1 - u) - c f'(1 - g(u)))+.
//
// Proof.
// 1. Given K = k, the best result has the density k (1 - u(y))^{k-1} with respect to Q: each of k
//    runs may be it, and the others then do not do better. The order has no ties, so the mean over
//    K is f'(1 - u(y)). If K = 0, nothing is released, with the same chance f(0) under both; for
//    epsilon >= 0 this outcome adds (f(0) - e^epsilon f(0))+ = 0.
// 2. So with densities q and q' the divergence is the integral of
//      (q f'(1 - u(y)) - e^epsilon q' f'(1 - u'(y)))+.
// 3. The results that are better than y are a set S with Q(S) = u(y) and Q'(S) = u'(y). A test
//    between Q and Q' is one between A and B, so u'(y) <= g(u(y)). f' does not fall, because its
//    coefficients are not negative; so f'(1 - u'(y)) >= f'(1 - g(u(y))).
// 4. So the integrand is at most q (f'(1 - u) - c f'(1 - g(u)))+ <= q H(c) at u = u(y) and c =
//    e^epsilon q'/q; where q = 0 it is 0. This is finite: H <= f'(1) = E[K].
// 5. H is the largest of functions that are affine in c, so it is convex, and the integral of
//    q H(e^epsilon q'/q) is an f-divergence. It does not grow under post-processing, and (Q, Q') is
//    a post-processing of (A, B) (Blackwell), which gives the theorem.
// A pair that dominates the neighbours in both orders gives a bound for both: SymmetricPair of
// profile_pair.h, made of what the accountants certify about a run. It exists for every event.
//
// In numbers. [0, 1] is cut at points u_i; on [u_i, u_{i+1}] no line of H lies above
// f'(1 - u_i) - c f'(1 - g(u_{i+1})). The upper envelope of these lines is kept.
//
// From below, for a Gaussian run: the result is one number y, the score too, Q = N(mu, 1) and
// Q' = N(0, 1), the largest wins; and the same with mu and 0 exchanged. Cells of y have the masses
// f(F(b)) - f(F(a)) under both: post-processing of an attained pair.
//
// How long the runs took tells K: it must not be shown.
#ifndef SORDINO_ACCOUNTING_INTERNAL_SELECTION_H_
#define SORDINO_ACCOUNTING_INTERNAL_SELECTION_H_

#include <vector>

#include "sordino/accounting/effort.h"
#include "sordino/accounting/event.h"
#include "sordino/accounting/internal/pairs/dominating_pair.h"
#include "sordino/accounting/loss_pair.h"
#include "sordino/accounting/run_count.h"

namespace sordino {

// Log delta at epsilon of the best of such runs, from above. `run` is a SymmetricPair.
class SelectionProfile {
 public:
  SelectionProfile(const RunCount& runs, const LossPair& run);

  double Delta(double epsilon) const;
  double LargestLoss() const { return largest_loss_; }  // of the finite ones

 private:
  struct Line {
    double at_zero;  // in c
    double fall;
    double from = 0;  // the least c at which no line lies above it
  };
  void AddLine(Line line);
  double Largest(double c) const;

  LossPair run_;
  std::vector<Line> lines_;
  double largest_loss_ = 0;
};

// The pairs of the best of several runs of the event.
DominatingPairs SelectionPairs(const RunCount& runs, const Event& run, const PairUse& use);

}  // namespace sordino

#endif  // SORDINO_ACCOUNTING_INTERNAL_SELECTION_H_
