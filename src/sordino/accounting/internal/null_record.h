// A full truncated Poisson batch under zero-out: the record against its null stand-in.
//
// In a full batch (dominating_pair.h) the record or its null stand-in enters with probability r and
// pushes a record of contribution v out. The centres are w0 without it, w1 = w0 - v + x with it and
// w1' = w0 - v with the null, so |w1 - w0| <= 2, |w1 - w1'| <= 1 and |w1' - w0| <= 1. By advanced
// joint convexity (arXiv 1807.01647, theorem 2) and the convexity of the hockey-stick divergence,
// with beta = e^{eps' - eps} and delta_s the profile of a Gaussian of shift s,
//   delta(eps') <= r ((1 - beta) delta_2(eps) + beta delta_1(eps))   at e^eps' = 1 + r (e^eps - 1)
// from the record to the null, and r delta_1(eps) from the null to the record, both for eps >= 0.
#ifndef SORDINO_ACCOUNTING_INTERNAL_NULL_RECORD_H_
#define SORDINO_ACCOUNTING_INTERNAL_NULL_RECORD_H_

#include "sordino/accounting/loss_pair.h"

namespace sordino {

// The positive losses of the first bound: atoms of a pair whose profile is at or above it for
// eps' >= 0, and mass at infinity. The rest of the mass is not in it.
LossPair LossesAgainstNull(double sigma, double rate);

// The same losses with the roles of the record and the null exchanged: negative, and what was at
// infinity is absent.
LossPair MirroredLosses(const LossPair& pair);

}  // namespace sordino

#endif  // SORDINO_ACCOUNTING_INTERNAL_NULL_RECORD_H_
