#include "sordino/ledger/budget_filter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "sordino/accounting/failures.h"
#include "sordino/accounting/filter.h"
#include "sordino/accounting/gaussian.h"
#include "sordino/accounting/renyi.h"
#include "sordino/base/check.h"
#include "sordino/base/error.h"
#include "sordino/base/exact_count.h"

namespace sordino {
namespace {

// Pure epsilons are typed as decimals, and ten times 0.1 is 1 in decimals only: sums are compared
// after rounding to twelve digits.
constexpr double kDecimal = 1e-12;

using Counts = std::map<std::string, std::uint64_t>;

void Add(Counts& counts, const Event& event) {
  for (const auto& [release, count] : event.Flatten()) {
    std::uint64_t& sum = counts[release.ToString()];
    sum = SaturatingSum(sum, count);
  }
}

// False, and unchanged, where `event` is not in it.
bool Subtract(Counts& counts, const Event& event) {
  Counts part;
  Add(part, event);
  for (const auto& [text, count] : part) {
    const auto found = counts.find(text);
    if (found == counts.end() || found->second < count) return false;
  }
  for (const auto& [text, count] : part) {
    const auto found = counts.find(text);
    found->second = SaturatingDifference(found->second, count);
    if (found->second == 0) counts.erase(found);
  }
  return true;
}

Event EventOf(const Counts& counts, Adjacency adjacency) {
  std::vector<std::pair<Event, std::uint64_t>> parts;
  for (const auto& [text, count] : counts) parts.emplace_back(Event::Parse(text), count);
  return parts.empty() ? Event::None(adjacency) : Event::Compose(std::move(parts), adjacency);
}

double Percent(double share) { return std::min(100 * share, 1e6); }

}  // namespace

BudgetFilter::BudgetFilter(const Budget& budget) : budget_(budget) {
  CheckBudget(budget_);
  if (budget_.order) sums_.order = budget_.order->value();
}

BudgetFilter::BudgetFilter(const Budget& budget, Sums sums)
    : budget_(budget), sums_(std::move(sums)) {
  CheckBudget(budget_);
}

std::optional<std::string> BudgetFilter::whole_run() const {
  return CountsWhole() ? std::optional(sums_.whole) : std::nullopt;
}

const BudgetFilter::Run& BudgetFilter::RunOf(const std::string& run) const {
  const auto found = runs_.find(run);
  if (found == runs_.end()) throw Error(fmt::format("the ledger has no run {}.", run));
  return found->second;
}

BudgetFilter::Run& BudgetFilter::RunOf(const std::string& run) {
  return const_cast<Run&>(std::as_const(*this).RunOf(run));
}

double BudgetFilter::BestOrder(const Event& plan) {
  if (budget_.order) return budget_.order->value();
  RenyiCurve curve(budget_.loss_share > 0 ? KeptPartOf(plan).event : plan);
  double best = 0;
  double best_left = 0;
  double most_copies = 0;
  const auto consider = [&](double order) {
    const double budget = FilterBudget(order);
    const double cost = curve(order);
    // Of a Gaussian: mu^2 / 2.
    const double left = (budget - cost) / order;
    const double copies = budget / cost;
    if (left > best_left || (best_left == 0 && copies > most_copies)) {
      best = order;
      best_left = std::max(left, 0.0);
      most_copies = copies;
    }
  };
  for (double t = -6; t <= 12; t += 0.25) consider(1 + std::exp(t));
  for (double width = 0.125; width > 0.005; width /= 2) {
    const double t = std::log(best > 0 ? best - 1 : 1);
    consider(1 + std::exp(t - width));
    consider(1 + std::exp(t + width));
  }
  if (best > 0) return best;
  // The filter cannot measure the plan.
  const Delta delta = DeltaForEvents(budget_.delta, kFailureReserve + budget_.loss_share);
  const Event typical = Event::Gaussian(NoiseMultiplier(1), plan.adjacency());
  return PrivacyFilter::Renyi(budget_.epsilon, delta, typical).order();
}

ReleaseCosts BudgetFilter::CostOf(const Event& release) {
  std::string text = release.ToString();
  if (const auto known = costs_.find(text); known != costs_.end()) return known->second;
  const ReleaseCosts costs = CostsOf(release, budget_, sums_.order);
  constexpr std::size_t kMaxRemembered = 4096;
  if (costs_.size() >= kMaxRemembered) costs_.clear();
  costs_.emplace(std::move(text), costs);
  return costs;
}

// By the reserve or as a loss, whichever takes the smaller part of what is kept for it. It depends
// on the charge alone.
void BudgetFilter::AddFailure(Sums& sums, const Event& event, double failure) const {
  if (failure == 0) return;
  sums.failure.Add(failure);
  constexpr double kNegligible = 0x1p-20;
  const double by_reserve =
      (1 + std::exp(budget_.epsilon.value())) * failure / (budget_.delta.value() * kFailureReserve);
  if (LossBudget() > 0 && std::isfinite(budget_.epsilon.value()) && by_reserve > kNegligible) {
    const double loss = FailureLoss(KeptPartOf(event).event, failure);
    if (loss / LossBudget() < by_reserve) {
      sums.loss.Add(loss);
      return;
    }
  }
  sums.reserved.Add(failure);
}

void BudgetFilter::AddTo(Sums& sums, const Event& event, double failure) {
  for (const auto& [release, count] : event.Flatten()) {
    const ReleaseCosts one = CostOf(release);
    sums.releases = SaturatingSum(sums.releases, count);
    sums.pure.Add(one.pure, count);
    sums.filter.Add(one.filter, count);
    sums.loss.Add(one.loss, count);
  }
  AddFailure(sums, event, failure);
}

double BudgetFilter::FilterBudget(double order) const {
  if (budget_.delta.value() == 0) return 0;
  const Delta delta = DeltaForEvents(budget_.delta, kFailureReserve + budget_.loss_share);
  if (budget_.filter == FilterKind::kGaussian) {
    return PrivacyFilter::Gaussian(budget_.epsilon, delta).Budget();
  }
  if (order == 0) return 0;
  return PrivacyFilter::Renyi(budget_.epsilon, delta, RenyiOrder(order)).Budget();
}

// Whether everything charged so far and `event` together are within the pure rule or the filter.
Verdict BudgetFilter::Fits(const Event& event, double failure) {
  Sums after = sums_;
  AddTo(after, event, failure);
  if (std::max(after.releases, event.TotalCount()) > kMaxExactCount) {
    return {.admitted = false,
            .reason = "more than 2^53 releases in all cannot be counted; use fewer"};
  }
  if (std::isinf(budget_.epsilon.value())) return {.admitted = true, .reason = ""};
  const double reserve = budget_.delta.value() * kFailureReserve;
  if (!FailuresArePaid(after.reserved.Value(), budget_.epsilon, reserve)) {
    return {.admitted = false,
            .reason = fmt::format("failures of probability {:.3g} (1 + e^epsilon) in all are more "
                                  "than the part of delta {:g} that is kept for them",
                                  after.reserved.Value(), budget_.delta.value())};
  }
  if (after.loss.Value() > LossBudget()) {
    return {.admitted = false,
            .reason = fmt::format(
                "its approximate releases and failures have a delta of {:.4g} with all others, and "
                "{:.4g} of the budget's delta {:g} is kept for them; use a smaller delta",
                after.loss.Value(), LossBudget(), budget_.delta.value())};
  }
  const double pure_budget = budget_.epsilon.value() * (1 + kDecimal);
  const double filter_budget = FilterBudget(sums_.order);
  const double pure = after.pure.Value();
  const double filter = after.filter.Value();
  if (pure <= pure_budget) return {.admitted = true, .reason = ""};
  // Written so that a cost that is not a number is not admitted.
  if (filter_budget > 0 && filter <= filter_budget) return {.admitted = true, .reason = ""};
  const double pure_share = pure / pure_budget;
  const double filter_share = filter_budget > 0 ? filter / filter_budget : kInfinity;
  const double share = std::min(pure_share, filter_share);
  if (std::isinf(share)) {
    return {.admitted = false,
            .reason = fmt::format("the {} cannot measure '{}'",
                                  budget_.delta.value() == 0
                                      ? "budget with delta 0 admits pure mechanisms only and"
                                      : fmt::format("{} filter", FilterName(budget_.filter)),
                                  event.ToString().substr(0, 200))};
  }
  const double used =
      std::min(sums_.pure.Value() / pure_budget,
               filter_budget > 0 ? sums_.filter.Value() / filter_budget : kInfinity);
  return {.admitted = false,
          .reason = fmt::format("{:.4g} % of the budget of epsilon {:g} at delta {:g} would be "
                                "used, and {:.4g} % is already",
                                Percent(share), budget_.epsilon.value(), budget_.delta.value(),
                                Percent(used))};
}

RunTerms BudgetFilter::TermsFor(const Event& plan, double failure, bool may_count_whole) {
  RunTerms terms;
  if (std::isinf(budget_.epsilon.value())) return terms;
  const bool has_order = budget_.filter == FilterKind::kRenyi && budget_.delta.value() > 0;
  if (has_order) terms.order = sums_.order > 0 ? sums_.order : BestOrder(plan);
  if (sums_.runs > 0) return terms;
  // The first run: nothing was seen, so its plan may decide how it counts.
  BudgetFilter fresh(budget_);
  fresh.sums_.order = terms.order;
  if (fresh.Fits(plan, failure).admitted || plan.TotalCount() > kMaxExactCount) return terms;
  const double own = SpentEpsilon(plan, budget_.delta, failure).upper;
  if (!(own <= budget_.epsilon.value())) return terms;
  terms.whole = may_count_whole || kWholeFactor * own >= budget_.epsilon.value();
  terms.needs_whole = !terms.whole;
  return terms;
}

Verdict BudgetFilter::AdmitsPlan(const Event& plan, double failure, const RunTerms& terms) {
  if (CountsWhole()) {
    return {.admitted = false, .reason = "the first run counts whole and leaves nothing"};
  }
  if (terms.whole) return {.admitted = true, .reason = ""};
  BudgetFilter trial(budget_, sums_);
  trial.sums_.order = terms.order;
  Verdict verdict = trial.Fits(plan, failure);
  if (terms.needs_whole) {
    verdict.needs_whole = true;
    verdict.reason += fmt::format(
        "; it could only count whole, which takes all of the budget of epsilon {:g} for its own "
        "epsilon of {:.4g} and leaves nothing",
        budget_.epsilon.value(), SpentEpsilon(plan, budget_.delta, failure).upper);
  }
  return verdict;
}

Verdict BudgetFilter::AdmitsPlan(const Event& plan, double failure) {
  return AdmitsPlan(plan, failure, TermsFor(plan, failure));
}

BudgetFilter BudgetFilter::After(const Event& plan, double failure, const RunTerms& terms) const {
  BudgetFilter after(budget_, sums_);
  const std::string name = "the run that is thought of";
  after.BeginRun(name, plan, terms, failure);
  after.Charge(name, plan, failure);
  return after;
}

void BudgetFilter::BeginRun(const std::string& run, const Event& plan, const RunTerms& terms,
                            double failure) {
  if (HasRun(run)) throw Error(fmt::format("the run {} begins twice", run));
  if (plan.adjacency() != budget_.adjacency) {
    throw Error(fmt::format("the run {} has another adjacency than the budget", run));
  }
  if (terms.whole && sums_.runs > 0) {
    throw Error(fmt::format("the run {} counts whole and is not the first", run));
  }
  if (terms.order != 0 && sums_.order != 0 && terms.order != sums_.order) {
    throw Error(fmt::format("the run {} has another Renyi order than those before it", run));
  }
  if (terms.order != 0 && sums_.order == 0) {
    sums_.order = terms.order;
    costs_.clear();
  }
  Run begun;
  if (terms.whole) {
    Add(begun.planned, plan);
    sums_.whole = run;
    sums_.whole_failure = failure;
  }
  runs_.emplace(run, std::move(begun));
  ++sums_.runs;
}

void BudgetFilter::Recall(const std::string& run, const Event& plan, const Event& charged) {
  if (HasRun(run) || runs_.size() >= sums_.runs) {
    throw Error(fmt::format("the run {} is not among those that were counted.", run));
  }
  Run begun;
  if (sums_.whole == run) Add(begun.planned, plan);
  Add(begun.charged, charged);
  runs_.emplace(run, std::move(begun));
}

Verdict BudgetFilter::Admits(const std::string& run, const Event& event, double failure) {
  const Run& whole = RunOf(run);
  if (event.adjacency() != budget_.adjacency) {
    throw Error(
        fmt::format("a charge under {} adjacency was given to a ledger whose budget is for {}; "
                    "releases of the two cannot be added up.",
                    AdjacencyName(event.adjacency()), AdjacencyName(budget_.adjacency)));
  }
  if (!CountsWhole()) return Fits(event, failure);
  if (run != sums_.whole) {
    return {.admitted = false, .reason = "the first run counts whole and leaves nothing"};
  }
  const auto count_in = [](const Counts& counts, const std::string& text) {
    const auto entry = counts.find(text);
    return entry == counts.end() ? 0 : entry->second;
  };
  Counts added;
  Add(added, event);
  const bool planned = std::all_of(added.begin(), added.end(), [&](const auto& release) {
    const std::uint64_t plan = count_in(whole.planned, release.first);
    const std::uint64_t charged = count_in(whole.charged, release.first);
    return charged <= plan && release.second <= plan - charged;
  });
  if (planned) return {.admitted = true, .reason = ""};
  return {.admitted = false,
          .reason = "the run counts whole, and all steps of its plan are charged"};
}

void BudgetFilter::Charge(const std::string& run, const Event& event, double failure) {
  Add(RunOf(run).charged, event);
  AddTo(sums_, event, failure);
}

void BudgetFilter::Return(const std::string& run, const Event& event, double failure) {
  if (!(failure <= sums_.failure.Value()) || !Subtract(RunOf(run).charged, event)) {
    throw Error(fmt::format("the run {} returns what was not charged to it.", run));
  }
  for (const auto& [release, count] : event.Flatten()) {
    const ReleaseCosts one = CostOf(release);
    sums_.releases = SaturatingDifference(sums_.releases, count);
    sums_.pure.Subtract(one.pure, count);
    sums_.filter.Subtract(one.filter, count);
    sums_.loss.Subtract(one.loss, count);
  }
  sums_.failure.Subtract(failure);
  // How a part of a failure was paid for is not known, so a loss stays.
  if (LossBudget() == 0) sums_.reserved.Subtract(failure);
  if (sums_.releases > 0) return;
  // Nothing is left of what the rounding of the sums may have.
  sums_.pure = {};
  sums_.filter = {};
}

Event BudgetFilter::Total() const {
  SORDINO_CHECK(runs_.size() == sums_.runs, "not all runs are known of which the total is asked");
  Counts total;
  for (const auto& [name, run] : runs_) {
    for (const auto& [text, count] : run.charged) total[text] = SaturatingSum(total[text], count);
  }
  return EventOf(total, budget_.adjacency);
}

Event BudgetFilter::TotalOf(const std::string& run) const {
  return EventOf(RunOf(run).charged, budget_.adjacency);
}

Event BudgetFilter::CountedOf(const std::string& run) const {
  if (sums_.whole != run) return TotalOf(run);
  return EventOf(RunOf(run).planned, budget_.adjacency);
}

double BudgetFilter::counted_failure() const {
  return CountsWhole() ? std::max(sums_.whole_failure, failure()) : failure();
}

double BudgetFilter::UsedShare() {
  if (CountsWhole()) return 1;
  if (std::isinf(budget_.epsilon.value()) || sums_.releases == 0) return 0;
  const double filter_budget = FilterBudget(sums_.order);
  const double by_rule =
      std::min(sums_.pure.Value() / budget_.epsilon.value(),
               filter_budget > 0 ? sums_.filter.Value() / filter_budget : kInfinity);
  return LossBudget() > 0 ? std::max(by_rule, sums_.loss.Value() / LossBudget()) : by_rule;
}

double BudgetFilter::LeftEpsilon() {
  if (CountsWhole() || budget_.delta.value() == 0) return 0;
  if (sums_.releases == 0 || std::isinf(budget_.epsilon.value())) return budget_.epsilon.value();
  const double left = FilterBudget(sums_.order) - sums_.filter.Value();
  if (!(left > 0)) return 0;
  // A Gaussian of mu has R(order) = order mu^2 / 2.
  const double mu =
      std::sqrt(budget_.filter == FilterKind::kGaussian ? left : 2 * left / sums_.order);
  return GaussianEpsilon(mu, std::log(budget_.delta.value()));
}

double BudgetFilter::LeftPureEpsilon() {
  if (CountsWhole()) return 0;
  const double by_sum = std::max(0.0, budget_.epsilon.value() - sums_.pure.Value());
  const double left = FilterBudget(sums_.order) - sums_.filter.Value();
  if (std::isinf(by_sum) || sums_.order == 0 || !(left > 0)) return by_sum;
  // The largest epsilon whose divergence at the order is what the filter has left.
  double low = 0;
  double high = budget_.epsilon.value();
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    RenyiCurve curve(Event::Pure(Epsilon(middle), budget_.adjacency));
    (curve(sums_.order) <= left ? low : high) = middle;
  }
  return std::max(by_sum, low);
}

}  // namespace sordino
