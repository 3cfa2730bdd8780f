// Whether the next charge still fits into a dataset's budget.
//
// People choose their next run after seeing the last one, so composition theorems for steps fixed
// in advance do not apply to a ledger. A charge is admitted when, with it, at least one of these
// holds for everything that was charged, on the path that was taken:
//
//   pure      sum of pure epsilons <= epsilon. Basic composition holds for adaptively chosen
//             epsilons (Rogers, Roth, Ullman and Vadhan 2016, arXiv 1605.08294: the filter of
//             basic composition). It uses no delta. Sums are compared as decimals of twelve digits:
//             ten times 0.1 is 1.
//   filter    Renyi: sum R(alpha) <= B at one order alpha that no data had a say in (the adaptive
//             composition theorem of Feldman and Zrnic 2021, arXiv 2008.11193, and their Renyi
//             filter; Lecuyer 2021, arXiv 2103.01379), or Gaussian: sum mu^2 <= mu^2 (Smith and
//             Thakurta 2022, arXiv 2210.17520; Koskela et al. 2022). It uses delta.
//
// Both together are sound. Let S be any set of outcomes, P the part of it on paths that the pure
// rule admits, and F the rest of it, which the filter admits. Stopping a ledger where the pure rule
// ends changes nothing on P, so Pr[P] <= e^epsilon Pr'[P]; likewise Pr[F] <= e^epsilon Pr'[F] +
// delta; add.
//
//   whole     The first run of a ledger is chosen before anything was seen. When the rules above
//             do not admit its whole plan, but the exact composition of the plan is within
//             (epsilon, delta), the run may count whole: nothing but the steps of this plan, each
//             once, in any order, is ever charged. This is post-processing of the plan's releases,
//             drawn in advance, so exact composition holds however often the run is interrupted and
//             resumed. There is nothing left for another run, even if this one stops early: it may
//             have stopped because of the data. So it counts whole only if that was asked for, or
//             if the budget's epsilon is at most kWholeFactor times its own.
//
// Exact composition of what was charged so far, compared with the budget at each step, would not be
// a filter: the choice of when to stop can be worth more than the composed curve says (arXiv
// 2602.06756).
//
// alpha is that of the budget if it names one; else the one that leaves the largest part for a
// Gaussian mechanism after the first run's plan; if the plan fits at no order, the one at which the
// largest part of it fits.
//
// Delta has three parts. kFailureReserve of it pays for failures (accounting/failures.h) at
// (1 + e^epsilon) times their probability; the budget's loss_share pays for losses
// (release_costs.h), and for failures that are cheaper as losses; the filter has the rest. With b
// the sum of the probabilities of the former failures, A the run without them and s the losses:
//   P[S] <= A_P[S] + b <= e^epsilon A_Q[S] + delta_filter + s + b
//        <= e^epsilon (Q[S] + b) + delta_filter + s + b.
#ifndef SORDINO_LEDGER_BUDGET_FILTER_H_
#define SORDINO_LEDGER_BUDGET_FILTER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "sordino/accounting/event.h"
#include "sordino/ledger/budget.h"
#include "sordino/ledger/budget_sums.h"
#include "sordino/ledger/release_costs.h"

namespace sordino {

inline constexpr double kFailureReserve = 0x1p-8;
// A run may count whole without being asked to if the budget is at most this many times its
// epsilon.
inline constexpr double kWholeFactor = 1.2;

struct Verdict {
  bool admitted = false;
  std::string reason = {};   // why not: a clause without a full stop
  bool needs_whole = false;  // the charge would be admitted if the run were allowed to count whole
};

// How a run counts, fixed when it begins.
struct RunTerms {
  bool whole = false;
  double order = 0;  // of the ledger's filter from this run on; 0: none (Gaussian, or delta 0)
  // Nothing but counting whole admits the plan, and it was not asked for: the run may not begin.
  bool needs_whole = false;
};

class BudgetFilter {
 public:
  using Sums = BudgetSums;
  explicit BudgetFilter(const Budget& budget);
  // Continues from sums that another filter kept. It knows none of the runs before: Recall those
  // that are charged further or return something. Total() needs all of them.
  BudgetFilter(const Budget& budget, Sums sums);

  // The terms for a run of this plan if it began now. may_count_whole: the run may count whole
  // where nothing else admits it. An unadmitted plan has terms too: its first steps may still fit.
  RunTerms TermsFor(const Event& plan, double failure, bool may_count_whole = false);
  // Whether the whole plan would be admitted now under these terms.
  Verdict AdmitsPlan(const Event& plan, double failure, const RunTerms& terms);
  Verdict AdmitsPlan(const Event& plan, double failure);
  // As it would be with one more run of this plan, all of it charged.
  BudgetFilter After(const Event& plan, double failure, const RunTerms& terms) const;

  // `failure` is that of the whole plan.
  void BeginRun(const std::string& run, const Event& plan, const RunTerms& terms,
                double failure = 0);
  // A run that began before the sums were kept: its plan, and what was charged to it and not
  // returned, which is in the sums.
  void Recall(const std::string& run, const Event& plan, const Event& charged);
  // Whether `event` may be charged to the run, and the charge itself, which is not checked again.
  Verdict Admits(const std::string& run, const Event& event, double failure);
  void Charge(const std::string& run, const Event& event, double failure);
  // Takes back what was charged to the run and not released. Throws Error for what was not charged.
  void Return(const std::string& run, const Event& event, double failure);

  bool HasRun(const std::string& run) const { return runs_.count(run) != 0; }
  const Sums& sums() const { return sums_; }
  // Everything that was charged and not returned, as one event.
  Event Total() const;
  double failure() const { return sums_.failure.Value(); }
  // What was charged to a run and not returned.
  Event TotalOf(const std::string& run) const;
  // The same, except that a run that counts whole counts with its plan, whatever was charged of it
  // so far: the moment at which it stopped may have depended on what it had shown.
  Event Counted() const { return CountsWhole() ? CountedOf(sums_.whole) : Total(); }
  Event CountedOf(const std::string& run) const;
  double counted_failure() const;

  // The part of the budget that is used, by the rule that has used the least of it, or of what is
  // kept for losses where that is more: in [0, 1], or more for a ledger that was written by other
  // rules. 1 once a run counts whole.
  double UsedShare();
  // The epsilon, at the budget's delta, of one more Gaussian mechanism that would still be
  // admitted, and that of one more pure mechanism; 0 where none is.
  double LeftEpsilon();
  double LeftPureEpsilon();
  std::optional<std::string> whole_run() const;
  double order() const { return sums_.order; }  // 0 while none is fixed
  const Budget& budget() const { return budget_; }

 private:
  using Counts = std::map<std::string, std::uint64_t>;  // by the text of a release
  struct Run {
    Counts planned;  // of a run that counts whole
    Counts charged;
  };
  bool CountsWhole() const { return !sums_.whole.empty(); }
  Run& RunOf(const std::string& run);
  const Run& RunOf(const std::string& run) const;
  ReleaseCosts CostOf(const Event& release);
  void AddFailure(Sums& sums, const Event& event, double failure) const;
  void AddTo(Sums& sums, const Event& event, double failure);
  double FilterBudget(double order) const;
  double LossBudget() const { return budget_.delta.value() * budget_.loss_share; }
  double BestOrder(const Event& plan);
  Verdict Fits(const Event& event, double failure);

  Budget budget_;
  Sums sums_;
  std::map<std::string, Run> runs_;
  std::map<std::string, ReleaseCosts> costs_;  // by the text of a release, at the order of sums_
};

}  // namespace sordino

#endif  // SORDINO_LEDGER_BUDGET_FILTER_H_
