// A full truncated Poisson batch under zero-out: the record against its null stand-in.
//
// In a full batch (dominating_pair.h) the record or its null stand-in enters with probability r and
// pushes a record of contribution v out. The centres are w0 without it, w1 = w0 - v + x with it and
// w1' = w0 - v with the null, so |w1 - w0| <= 2, |w1 - w1'| <= 1 and |w1' - w0| <= 1. By advanced
// joint convexity (arXiv 1807.01647, theorem 2), at u' = e^eps' = 1 + r (u - 1) and with beta =
// u' / u, the profile from the record to the null is
//   delta(eps') = r D_u(w1, (1 - beta) w0 + beta w1'),   D_u(A, B) the integral of (A - u B)_+.
// Splitting w1 into shares s and 1 - s bounds it, with delta_k that of a Gaussian of shift k, by
//   r (s delta_1(log(u beta / s)) + (1 - s) delta_2(log(u (1 - beta) / (1 - s))))
// for every s: s = beta is convexity, s = 1 compares with the null alone. The least of some shares
// is taken. From the null to the record both distances are one: r delta_1(log u). All for u >= 1.
#ifndef SORDINO_ACCOUNTING_INTERNAL_NULL_RECORD_H_
#define SORDINO_ACCOUNTING_INTERNAL_NULL_RECORD_H_

#include "sordino/accounting/effort.h"
#include "sordino/accounting/loss_pair.h"

namespace sordino {

// The positive losses of the first bound: atoms of a pair whose profile is at or above it for
// eps' >= 0, and mass at infinity. The rest of the mass is not in it.
LossPair LossesAgainstNull(double sigma, double rate, Effort effort);

// The same losses with the roles of the record and the null exchanged: negative, and what was at
// infinity is absent.
LossPair MirroredLosses(const LossPair& pair);

}  // namespace sordino

#endif  // SORDINO_ACCOUNTING_INTERNAL_NULL_RECORD_H_
