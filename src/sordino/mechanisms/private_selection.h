// The best of several private runs as one release, with a number of runs that nobody learns.
//
// A mechanism Q is run K times, K drawn in secret and at least 1, and the result of the best score
// is released; the score is a function of the result and of public data. Taking K fixed would cost
// K times epsilon. With the logarithmic distribution P(K = k) = (1 - gamma)^k / (k log(1/gamma)) it
// costs twice, whatever the mean of K is (Liu and Talwar, STOC 2019; Papernot and Steinke, arXiv
// 2110.03620, whose Theorem 2 with eta = 0 this is in the limit of pure epsilon).
//
// Theorem. If Q is (epsilon, delta)-DP then the selection is (2 epsilon, delta')-DP with
//
//     delta' = E[K] delta (1 + e^{2 epsilon}) / (1 + e^epsilon).
//
// Proof. First delta = 0. Let P and P' be the distributions of the results of Q on two neighbouring
// datasets, discrete without loss of generality, and let P(< s) be the probability of a score below
// s. Of results with the same best score the first one is released, so with f(x) = E[x^K] a result
// y of score s is released with the probability
//
//     P(y) / P(= s) (f(P(<= s)) - f(P(< s))) = P(y) mean of f'(X),  X uniform in [P(< s), P(<= s)].
//
// f(x) = log(1 - (1 - gamma) x) / log(gamma), so f'(x) is a constant over 1 - (1 - gamma) x =
// (1 - x) + gamma x. At X = P(< s) + u P(= s) this is P(> s) + (1 - u) P(= s) + gamma (P(< s) +
// u P(= s)): a sum of probabilities with weights that are not negative, which changes by a factor
// of at most e^epsilon from P to P' for every u; so does P(y). For delta > 0 there are P1 and P1',
// within delta / (1 + e^epsilon) of P and P' in total variation, that are epsilon-indistinguishable
// (Dwork and Roth, Lemma 3.17). The selections from P and P1 are within E[K] times that, so the
// selection from P is at most e^{2 epsilon} times that from P' and (1 + e^{2 epsilon}) E[K] delta /
// (1 + e^epsilon).
//
// How long the runs took tells K: it must not be shown.
#ifndef SORDINO_MECHANISMS_PRIVATE_SELECTION_H_
#define SORDINO_MECHANISMS_PRIVATE_SELECTION_H_

#include <cstdint>
#include <optional>

#include "sordino/accounting/event.h"
#include "sordino/base/quantity.h"
#include "sordino/random/generator.h"

namespace sordino {

inline constexpr double kMaxExpectedRuns = 1000;

// What is left for each run of a selection that spends epsilon and delta.
struct SelectionBudget {
  Epsilon run_epsilon{0};
  Delta run_delta{0};
  Event event = Event::None();  // of the selection
  double failure = 0;           // how far K is from its distribution, for the ledger
};
// Nothing where delta is too small to pay for the failure. Throws Error unless `expected_runs` lies
// in (1, kMaxExpectedRuns] and epsilon is positive and finite.
std::optional<SelectionBudget> PlanSelection(Epsilon epsilon, Delta delta, double expected_runs,
                                             Adjacency adjacency);

// The logarithmic distribution of a mean above 1.
class LogarithmicRuns {
 public:
  explicit LogarithmicRuns(double mean);
  double gamma() const { return gamma_; }
  double Probability(std::int64_t runs) const;
  // Within kDrawError of the distribution in total variation.
  std::int64_t Draw(Generator& generator) const;
  static constexpr double kDrawError = 0x1p-45;

 private:
  double gamma_;
};

}  // namespace sordino

#endif  // SORDINO_MECHANISMS_PRIVATE_SELECTION_H_
