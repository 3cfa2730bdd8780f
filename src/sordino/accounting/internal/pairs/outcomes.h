// Finite lists of outcomes: the pairs of discrete mechanisms, and what sampling makes of them.
#ifndef SORDINO_ACCOUNTING_INTERNAL_OUTCOMES_H_
#define SORDINO_ACCOUNTING_INTERNAL_OUTCOMES_H_

#include <optional>
#include <vector>

#include "sordino/accounting/event.h"
#include "sordino/accounting/loss_pair.h"

namespace sordino {

// An outcome with the logarithms of its probability with the record (p) and without it (q), and
// their difference, the loss, which is formed on its own: at a tiny rate it is far smaller than the
// rounding of the logarithms.
struct Outcome {
  double log_p;
  double log_q;
  double loss;
};
using Outcomes = std::vector<Outcome>;

inline Outcome OutcomeOf(double log_q, double loss) { return {log_q + loss, log_q, loss}; }

LossPair FromOutcomes(const Outcomes& outcomes);
// The record's two roles exchanged.
Outcomes Swapped(Outcomes outcomes);
// Poisson sampling of a pair of outcomes: ((1-q)B + qA, B).
Outcomes SampleOutcomes(Outcomes outcomes, double q);

// The worst pair of any (epsilon, delta)-DP mechanism: randomised response with a chance delta of
// telling the truth (Kairouz, Oh, Viswanath 2015).
Outcomes ApproximateOutcomes(double epsilon, double delta);

// (1-q) f(x) + q f(x - shift) against (1-r) f(x) + r f(x + shift) for integer-valued noise f, the
// shift its sensitivity; nullopt where there are too many values.
std::optional<Outcomes> DiscreteGaussianOutcomes(double sigma, double sensitivity, double q,
                                                 double r);
std::optional<Outcomes> DiscreteLaplaceOutcomes(double scale, double sensitivity, double q,
                                                double r);

// The outcomes of an unsampled discrete mechanism, if it is one.
std::optional<Outcomes> OutcomesOf(const Event& event);

}  // namespace sordino

#endif  // SORDINO_ACCOUNTING_INTERNAL_OUTCOMES_H_
