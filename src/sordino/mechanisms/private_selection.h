// The best of several private runs as one release, with a number of runs that nobody learns: how
// the number is drawn, and the plan for a run of which epsilon and delta alone are known. What the
// best of runs of an event costs is more exactly the event best-tnb or best-poisson
// (accounting/event.h).
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
#include "sordino/accounting/run_count.h"
#include "sordino/base/quantity.h"
#include "sordino/random/generator.h"

namespace sordino {

inline constexpr double kMaxExpectedRuns = 1000;
inline constexpr double kMaxPoissonRuns = 500;  // the chance of none is a normal number

// min(K, most) of a distribution of K: a number that can be drawn, and that a schedule of runs can
// be made for which does not tell it.
class SecretRuns {
 public:
  // Throws Error for a mean above kMaxExpectedRuns, or above kMaxPoissonRuns of a Poisson one.
  SecretRuns(const RunCount& count, std::int64_t most);
  // With the least `most` that K exceeds with at most this probability.
  static SecretRuns Within(const RunCount& count, double probability);

  const RunCount& count() const { return count_; }
  std::int64_t most() const { return most_; }
  // How far what is drawn is from K, in total variation: P(K > most), and the rounding of Draw.
  double Failure() const;
  std::int64_t Draw(Generator& generator) const;

 private:
  double First() const;                      // P(K = Least())
  double Next(double p, double runs) const;  // P(K = runs + 1) of p = P(K = runs)
  std::int64_t Least() const { return count_.IsPoisson() ? 0 : 1; }
  double Above(std::int64_t runs) const;  // P(K > runs), rounded up

  RunCount count_;
  std::int64_t most_;
};

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
// How often it makes a run: the logarithmic distribution of this mean.
SecretRuns SelectionRuns(double expected_runs);

}  // namespace sordino

#endif  // SORDINO_MECHANISMS_PRIVATE_SELECTION_H_
