// Rare large losses, set apart exactly.
//
// Sparse sampling with little noise spreads the loss of a step over many orders of magnitude, and
// the epsilon that is asked for is far below the largest of them. A grid fine enough for the one is
// too short for the other. But a loss that is large enough needs no resolution at all. Split the
// outcomes of every step at a loss m into a body (L <= m) and a tail (L > m). Where all losses are
// at least b and m + (T - 1) b >= epsilon, a composition of T steps with a step in its tail has a
// loss of at least epsilon whatever the other steps do, and there (1 - e^{epsilon - L})_+ is the
// mass under P less e^epsilon times that under Q. With p and p' the masses of the tail under P and
// Q,
//   delta(epsilon) = E_P[(1 - e^{epsilon - L})_+; all steps in their bodies]
//                    + (1 - (1 - p)^T) - e^epsilon (1 - (1 - p')^T),
// and the same with products for different steps. The first term is a composition of bounded losses
// (measures of less than full mass), which the grid resolves; the second one is a closed form.
#ifndef SORDINO_ACCOUNTING_INTERNAL_TAIL_SPLIT_H_
#define SORDINO_ACCOUNTING_INTERNAL_TAIL_SPLIT_H_

#include <optional>
#include <span>
#include <vector>

#include "sordino/accounting/internal/contour.h"
#include "sordino/base/quantity.h"

namespace sordino {

class TailSplit {
 public:
  // Split for every epsilon up to `epsilon`; nullopt where a loss has no lower bound or no density.
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
};

}  // namespace sordino

#endif  // SORDINO_ACCOUNTING_INTERNAL_TAIL_SPLIT_H_
