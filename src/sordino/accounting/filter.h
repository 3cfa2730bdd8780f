// Privacy filters and odometers for steps that are chosen as one goes.
//
// Composition theorems for steps fixed in advance do not cover a run that chooses its next step
// (noise, rate, or whether to stop) from what it has seen. A filter does: it is told each step
// before that step runs and admits it only while the whole stays inside the budget.
//
//   Renyi     Fix an order alpha beforehand. If the steps' R_t(alpha), each bounded given the
//             past, sum to at most B on every path, the whole run has R(alpha) <= B (Feldman and
//             Zrnic 2021, arXiv 2008.11193; Lecuyer 2021, arXiv 2103.01379). B is
//             what the tight conversion of (epsilon, delta) leaves at alpha. The order may not
//             depend on the run, so it is taken from a typical step that is named in advance.
//   zCDP      The same holds at every order at once for sum rho_t <= rho, with the largest rho
//             that converts to (epsilon, delta).
//   Gaussian  sum mu_t^2 <= mu^2 keeps a run of Gaussians mu-GDP with no loss (Smith and Thakurta
//             2022, arXiv 2210.17520; Koskela et al. 2022), with the exact curve for mu.
//
// A step that is refused is not charged, and smaller ones may still be admitted. Charges are added
// up rounding away from zero, so that a step too small for the last digit of the sum counts too.
// All steps of a filter or odometer are of one adjacency: guarantees under different ones do not
// add up, and a step under another one than the first throws Error.
#ifndef SORDINO_ACCOUNTING_FILTER_H_
#define SORDINO_ACCOUNTING_FILTER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

#include "sordino/accounting/event.h"
#include "sordino/base/quantity.h"

namespace sordino {

class PrivacyFilter {
 public:
  enum class Kind : std::uint8_t { kRenyi, kZcdp, kGaussian };

  // delta in (0, 1), epsilon finite. Throws Error otherwise.
  static PrivacyFilter Renyi(Epsilon epsilon, Delta delta, RenyiOrder order);
  // The order at which the most copies of `typical` fit into the budget.
  static PrivacyFilter Renyi(Epsilon epsilon, Delta delta, const Event& typical);
  static PrivacyFilter Zcdp(Epsilon epsilon, Delta delta);
  static PrivacyFilter Gaussian(Epsilon epsilon, Delta delta);

  // Whether the step still fits. A step that the filter cannot measure does not fit.
  bool Admits(const Event& step);
  // Charges the step if it fits, and says whether it did.
  bool Charge(const Event& step);

  // In the filter's own unit: R(order), rho or mu^2.
  double Spent() const { return spent_; }
  double Budget() const { return budget_; }
  // The epsilon, at the filter's delta, of the budget used so far. It is a guarantee for a run
  // whose stopping point does not depend on what it saw; for reports at any time, see
  // PrivacyOdometer.
  double SpentEpsilon() const;
  Kind kind() const { return kind_; }
  double order() const { return order_; }  // kRenyi only

 private:
  PrivacyFilter(Kind kind, Epsilon epsilon, Delta delta, double order, double budget);
  double CostOf(const Event& step);

  Kind kind_;
  double epsilon_;
  double log_delta_;
  double order_;
  double budget_;
  double spent_ = 0;
  std::optional<Adjacency> adjacency_;             // of the first step that was charged
  std::unordered_map<std::string, double> costs_;  // by the step's text
};

// Reports how much was spent, at any time and as often as wanted, in a run that may look at the
// reports and stop when it likes (Rogers et al. 2016; Feldman and Zrnic 2021, section 4.2). With E
// the report at the end of the run, for neighbours with output laws P and Q and every set S
//   P[S] <= E_Q[e^E 1_S] + delta,
// which is (epsilon, delta)-DP where E never exceeds epsilon. It is a ladder of filters, with
// budgets growing by a fixed factor, each with its share of delta: rung j has 6 / (pi^2 (j + 1)^2)
// of it, and the report is the epsilon of the rung that the spend has reached. Runs that end on
// rung j are not changed by the filter of that rung, so P[S, rung j] <= e^{E_j} Q[S, rung j] +
// delta_j; add over j. The unit is zCDP's rho, or R at a fixed order.
class PrivacyOdometer {
 public:
  // In zCDP. delta in (0, 1).
  explicit PrivacyOdometer(Delta delta);
  // In Renyi divergence at a fixed order.
  PrivacyOdometer(Delta delta, RenyiOrder order);

  // Throws Error for a step that the odometer cannot measure.
  void Charge(const Event& step);
  // An epsilon that holds at the odometer's delta.
  double Epsilon() const;
  double Spent() const { return spent_; }

 private:
  double log_delta_;
  double order_;  // 0 for zCDP
  double spent_ = 0;
  std::optional<Adjacency> adjacency_;  // of the first step
};

}  // namespace sordino

#endif  // SORDINO_ACCOUNTING_FILTER_H_
