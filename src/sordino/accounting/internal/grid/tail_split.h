// Rare large losses, set apart.
//
// Sparse sampling with little noise spreads the loss of a step over many orders of magnitude, and
// the epsilon that is asked for is far below the largest of them. A grid fine enough for the one is
// too short for the other. But a loss that is large enough needs no resolution at all. Split the
// outcomes of every step at a loss m into a body (L <= m) and a tail (L > m), and let A be the
// compositions with a step in its tail. Because (p - e^epsilon q)_+ = p - e^epsilon q plus
// (e^epsilon q - p)_+,
//   delta(epsilon) = E_P[(1 - e^{epsilon - L})_+; not A] + P(A) - e^epsilon Q(A) + R(epsilon),
//   0 <= R(epsilon) <= e^epsilon Q(A and L < epsilon).
// With p and p' the masses of a tail under P and Q, P(A) = 1 - (1 - p)^T and Q(A) = 1 - (1 - p')^T,
// and the same with products for different steps. The first term is a composition of bounded losses
// (measures of less than full mass), which the engines resolve; the others are closed forms.
//
// Where all losses are at least b and m + (T - 1) b >= epsilon, R is 0: whatever the other steps
// do, the loss stays above epsilon. In general, for every c >= 0,
//   Q(A and L < epsilon) <= sum over i of Q(L_i > m) Q(sum over j != i of L_j < epsilon - m)
//                        <= (sum of p'_i) e^{-c (m - epsilon)} product of E_Q[e^{-c L_j}],
// because E_Q[e^{-cL}] >= 1 (Jensen). These moments have closed bounds. Let u and v be the two
// sides of a mixture pair over N(0, sigma^2) (loss_pair.h), L = log(u/v), q the larger chance of a
// shift, s the largest one, X = E(u-1)^2 <= q^2 (e^{s^2/sigma^2} - 1), f(v) = v^{1+c} - 1 -
// (1+c)(v-1) >= 0, for a whole c and one shift B = E[f(v)] = sum over k >= 2 of
// C(1+c, k) (1-q)^{1+c-k} q^k (e^{k(k-1)s^2/(2 sigma^2)} - 1), and g = (1-q)^{-c}.
//   v = 1:  E_Q[e^{-cL}] - 1 = E[u^{-c} - 1 + c(u-1)] <= c(c+1)/2 g (1-q)^{-2} X, by Taylor,
//     u >= 1-q.
//   Else  E_Q[e^{-cL}] - 1 = E[v^{1+c} u^{-c} - 1 - (1+c)(v-1) + c(u-1)]. Where v = 1-a <= 1 the
//     integrand is at most u^{-c} - 1 + c(u-1) + (1+c) a (1-u^{-c}) + c(1+c)/2 a^2 g, a <= q, of
//     mean at most c(c+1)/2 g (1-q)^{-2} X + (3/2) c(c+1) q^2 g (1-u^{-c} <= c (u-1)_+, of mean <=
//     cq). Where v > 1 all shifts of u count for less than 1, u = 1-a with 0 <= a <= q, and with r
//     = g - 1 - cq, u^{-c} <= 1 + ca + r: the integrand is at most f(v) + (g-1)(v^{1+c} - 1) + r,
//     of mean at most g B + (g-1)(1+c) q + r.
//   Glued pairs (fixed-size sampling) have the losses log u > 0 of u = 1-q+q e^{...} over N(0,
//     sigma^2), their mirror image and an atom at zero, so that E_Q[e^{-cL}] - 1 =
//     E[u^{-c} - 1 + u^{1+c} - u; u > 1] <= 2B: the integrand is f(u) + (u^{-c} - 1 + c(u-1)), and
//     the second term is at most the first for u >= 1 (both vanish with their slopes at 1, and
//     their second derivatives are c(c+1) u^{c-1} and c(c+1) u^{-c-2}).
//
// Where epsilon is small, m can be close to it only with a large c, for which B is enormous: losses
// are as heavy below as above. There the other losses are cut off at -b < 0. With L' = max(L, -b),
//   Q(sum over j != i of L_j < epsilon - m)
//     <= sum over j of Q(L_j < -b) + e^{-c (m - epsilon)} product of max(1, E_Q[e^{-c L'_j}]).
// For every real c >= 1 the bounds above hold for E_Q[e^{-cL'}] - 1 with B replaced by
//   B' = c(c+1)/2 e^{(c-1)b} q^2 (e^{s^2/sigma^2} - 1).
//   Cutting only lowers the integrand, so that nothing changes where v <= 1 (and for v = 1, where
//   nothing is cut at all). Where v > 1, u <= 1, and v min(v/u, e^b)^c <= u^-c h(v) with h(v) =
//   v min(v, e^b)^c, so that f(v) + (g-1)(v^{1+c} - 1) becomes f'(v) + (g-1)(h(v) - 1), f'(v) =
//   h(v) - 1 - (1+c)(v-1). For v <= e^b that is Taylor's rest of v^{1+c}, at most
//   c(c+1)/2 e^{(c-1)b} (v-1)^2. Beyond e^b it is linear with the slope e^{cb} - 1 - c, which is
//   less than c e^{(c-1)b} (e^b - 1) and so less than the slope of that square. Hence E[f'(v)] <=
//   B'. Glued pairs likewise: u^{1+c} becomes h(u), and both terms are at most that square.
#ifndef SORDINO_ACCOUNTING_INTERNAL_TAIL_SPLIT_H_
#define SORDINO_ACCOUNTING_INTERNAL_TAIL_SPLIT_H_

#include <optional>
#include <span>
#include <vector>

#include "sordino/accounting/internal/contour/contour.h"
#include "sordino/base/quantity.h"

namespace sordino {

// The bound above on log E_Q[e^{-cL}], for some whole c up to 32; infinity for others, and for a
// pair that cannot be split.
double LogFloorMoment(const LossPair& pair, int c);
// The same where losses are cut off at -floor < 0, for every c >= 1; and Q(L < -floor) or more, 0
// for losses that have a lower bound and are not cut off.
double LogCutFloorMoment(const LossPair& pair, double c, double floor);
double MassBelowFloor(const LossPair& pair, double floor);

class TailSplit {
 public:
  // Split for every epsilon up to `epsilon`; nullopt where a pair is none of those above or the
  // losses are too large.
  static std::optional<TailSplit> At(std::span<const CountedPair> pairs, double epsilon);

  const std::vector<CountedPair>& body() const { return body_; }
  // The largest epsilon for which the split holds.
  double reach() const { return reach_; }
  // What the tails add to delta at epsilon, from below and from above; epsilon in [0, reach].
  Interval Added(double epsilon) const;

 private:
  std::vector<CountedPair> body_;
  double reach_ = 0;
  double log_ratio_ = 0;       // sum of T log((1 - p) / (1 - p'))
  double log_other_body_ = 0;  // sum of T log(1 - p')
  // The bound on R is e^{log_rest_ + (1 + rest_order_) epsilon} + e^epsilon rest_below_.
  double log_rest_ = 0;
  double rest_order_ = 0;
  double rest_below_ = 0;
};

}  // namespace sordino

#endif  // SORDINO_ACCOUNTING_INTERNAL_TAIL_SPLIT_H_
