// Compositions with few outcomes, written out: n copies of a pair with k losses have one outcome
// for each of the C(n + k - 1, k - 1) ways to give the copies to the losses, with a multinomial
// probability. What the smoothed engine cannot resolve (losses that are close together beside one
// that is far larger) is exact here.
#ifndef SORDINO_ACCOUNTING_INTERNAL_ENUMERATED_H_
#define SORDINO_ACCOUNTING_INTERNAL_ENUMERATED_H_

#include <optional>
#include <vector>

#include "sordino/accounting/internal/contour/contour.h"
#include "sordino/accounting/loss_pair.h"
#include "sordino/base/quantity.h"

namespace sordino {

class Enumerated {
 public:
  // Nothing where a loss is continuous or the outcomes are many.
  static std::optional<Enumerated> Of(const std::vector<CountedPair>& pairs);

  Interval Epsilon(double log_delta) const;
  Interval LogDelta(double epsilon) const;

 private:
  LossPair whole_;
  double mass_error_ = 0;  // of the logarithm of every probability
  double loss_error_ = 0;  // absolute, of every loss
};

}  // namespace sordino

#endif  // SORDINO_ACCOUNTING_INTERNAL_ENUMERATED_H_
