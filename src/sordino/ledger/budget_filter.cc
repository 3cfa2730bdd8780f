#include "sordino/ledger/budget_filter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "sordino/accounting/accountant.h"
#include "sordino/accounting/failures.h"
#include "sordino/accounting/filter.h"
#include "sordino/accounting/gaussian.h"
#include "sordino/accounting/gdp.h"
#include "sordino/accounting/renyi.h"
#include "sordino/base/check.h"
#include "sordino/base/error.h"

namespace sordino {
namespace {

// Pure epsilons are typed as decimals, and ten times 0.1 is 1 in decimals only: sums are compared
// after rounding to twelve digits.
constexpr double kDecimal = 1e-12;

using Counts = std::map<std::string, std::uint64_t>;

void Add(Counts& counts, const Event& event) {
  for (const auto& [release, count] : event.Flatten()) counts[release.ToString()] += count;
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
    found->second -= count;
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
  if (budget_.order) order_ = budget_.order->value();
}

double BudgetFilter::BestOrder(const Event& plan) {
  if (budget_.order) return budget_.order->value();
  const Delta delta = DeltaForEvents(budget_.delta, kFailureReserve);
  Counts counts;
  Add(counts, plan);
  double pure = 0;
  for (const auto& [text, count] : counts) pure += CostOf(text).pure;
  const bool plan_decides = std::isinf(pure) && RenyiInapplicable(plan).empty();
  const Event typical = plan_decides ? plan : Event::Gaussian(NoiseMultiplier(1), plan.adjacency());
  return PrivacyFilter::Renyi(budget_.epsilon, delta, typical).order();
}

BudgetFilter::Costs BudgetFilter::CostOf(const std::string& text) {
  if (const auto known = costs_.find(text); known != costs_.end()) return known->second;
  const Event event = Event::Parse(text);
  Costs costs;
  costs.pure = CertifiedEpsilon(event, -kInfinity).value.upper;
  costs.filter = kInfinity;
  if (budget_.filter == FilterKind::kGaussian) {
    const GdpResult gdp = GdpOf(event);
    if (gdp.reason.empty() && gdp.sound) costs.filter = gdp.mu * gdp.mu;
  } else if (order_ > 0) {
    RenyiCurve curve(event);
    costs.filter = curve(order_);
  } else {
    return costs;  // the order is not known yet
  }
  costs_.emplace(text, costs);
  return costs;
}

BudgetFilter::Costs BudgetFilter::Spent() {
  Costs spent;
  for (const auto& [text, count] : total_) {
    const Costs one = CostOf(text);
    spent.pure += static_cast<double>(count) * one.pure;
    spent.filter += static_cast<double>(count) * one.filter;
  }
  return spent;
}

double BudgetFilter::FilterBudget() const {
  if (budget_.delta.value() == 0) return 0;
  const Delta delta = DeltaForEvents(budget_.delta, kFailureReserve);
  if (budget_.filter == FilterKind::kGaussian) {
    return PrivacyFilter::Gaussian(budget_.epsilon, delta).Budget();
  }
  if (order_ == 0) return 0;
  return PrivacyFilter::Renyi(budget_.epsilon, delta, RenyiOrder(order_)).Budget();
}

// Whether everything charged so far and `event` together are within the pure rule or the filter.
Verdict BudgetFilter::Fits(const Event& event, double failure) {
  if (std::isinf(budget_.epsilon.value())) return {.admitted = true, .reason = ""};
  const double reserve = budget_.delta.value() * kFailureReserve;
  if (!FailuresArePaid(failure_ + failure, budget_.epsilon, reserve)) {
    return {.admitted = false,
            .reason = fmt::format("failures of probability {:.3g} (1 + e^epsilon) in all are more "
                                  "than the part of delta {:g} that is kept for them",
                                  failure_ + failure, budget_.delta.value())};
  }
  const Costs before = Spent();
  Costs after = before;
  Counts added;
  Add(added, event);
  for (const auto& [text, count] : added) {
    const Costs one = CostOf(text);
    after.pure += static_cast<double>(count) * one.pure;
    after.filter += static_cast<double>(count) * one.filter;
  }
  const double pure_budget = budget_.epsilon.value() * (1 + kDecimal);
  const double filter_budget = FilterBudget();
  if (after.pure <= pure_budget) return {.admitted = true, .reason = ""};
  // Written so that a cost that is not a number is not admitted.
  if (filter_budget > 0 && after.filter <= filter_budget) return {.admitted = true, .reason = ""};
  const double pure_share = after.pure / pure_budget;
  const double filter_share = filter_budget > 0 ? after.filter / filter_budget : kInfinity;
  const double share = std::min(pure_share, filter_share);
  if (std::isinf(share)) {
    return {.admitted = false,
            .reason = fmt::format("the {} cannot measure '{}'",
                                  budget_.delta.value() == 0
                                      ? "budget with delta 0 admits pure mechanisms only and"
                                      : fmt::format("{} filter", FilterName(budget_.filter)),
                                  event.ToString().substr(0, 200))};
  }
  const double used = std::min(before.pure / pure_budget,
                               filter_budget > 0 ? before.filter / filter_budget : kInfinity);
  return {.admitted = false,
          .reason = fmt::format("{:.4g} % of the budget of epsilon {:g} at delta {:g} would be "
                                "used, and {:.4g} % is already",
                                Percent(share), budget_.epsilon.value(), budget_.delta.value(),
                                Percent(used))};
}

RunTerms BudgetFilter::TermsFor(const Event& plan, double failure) {
  RunTerms terms;
  if (std::isinf(budget_.epsilon.value())) return terms;
  const bool has_order = budget_.filter == FilterKind::kRenyi && budget_.delta.value() > 0;
  if (has_order) terms.order = order_ > 0 ? order_ : BestOrder(plan);
  if (!runs_.empty()) return terms;
  // The first run: nothing was seen, so its plan may decide how it counts.
  BudgetFilter fresh(budget_);
  fresh.order_ = terms.order;
  if (fresh.Fits(plan, failure).admitted) return terms;
  terms.whole = SpentEpsilon(plan, budget_.delta, failure).upper <= budget_.epsilon.value();
  return terms;
}

Verdict BudgetFilter::AdmitsPlan(const Event& plan, double failure) {
  if (whole_) {
    return {.admitted = false, .reason = "the first run counts whole and leaves nothing"};
  }
  const RunTerms terms = TermsFor(plan, failure);
  if (terms.whole) return {.admitted = true, .reason = ""};
  BudgetFilter trial(*this);
  trial.order_ = terms.order;
  return trial.Fits(plan, failure);
}

void BudgetFilter::BeginRun(const std::string& run, const Event& plan, const RunTerms& terms,
                            double failure) {
  if (HasRun(run)) throw Error(fmt::format("the run {} begins twice", run));
  if (plan.adjacency() != budget_.adjacency) {
    throw Error(fmt::format("the run {} has another adjacency than the budget", run));
  }
  if (terms.whole && !runs_.empty()) {
    throw Error(fmt::format("the run {} counts whole and is not the first", run));
  }
  if (terms.order != 0 && order_ != 0 && terms.order != order_) {
    throw Error(fmt::format("the run {} has another Renyi order than those before it", run));
  }
  if (terms.order != 0) order_ = terms.order;
  Run begun;
  if (terms.whole) {
    Add(begun.planned, plan);
    whole_ = run;
    whole_failure_ = failure;
  }
  runs_.emplace(run, std::move(begun));
}

Verdict BudgetFilter::Admits(const std::string& run, const Event& event, double failure) {
  const auto found = runs_.find(run);
  if (found == runs_.end()) throw Error(fmt::format("the ledger has no run {}.", run));
  if (event.adjacency() != budget_.adjacency) {
    throw Error(
        fmt::format("a charge under {} adjacency was given to a ledger whose budget is for {}; "
                    "releases of the two cannot be added up.",
                    AdjacencyName(event.adjacency()), AdjacencyName(budget_.adjacency)));
  }
  if (!whole_) return Fits(event, failure);
  if (run != *whole_) {
    return {.admitted = false, .reason = "the first run counts whole and leaves nothing"};
  }
  const Run& whole = found->second;
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
  const auto found = runs_.find(run);
  if (found == runs_.end()) throw Error(fmt::format("the ledger has no run {}.", run));
  Add(found->second.charged, event);
  Add(total_, event);
  failure_ += failure;
}

void BudgetFilter::Return(const std::string& run, const Event& event, double failure) {
  const auto found = runs_.find(run);
  if (found == runs_.end()) throw Error(fmt::format("the ledger has no run {}.", run));
  if (!(failure <= failure_) || !Subtract(found->second.charged, event)) {
    throw Error(fmt::format("the run {} returns what was not charged to it.", run));
  }
  SORDINO_CHECK(Subtract(total_, event), "the charges of a run are not in the total");
  failure_ -= failure;
}

Event BudgetFilter::Total() const { return EventOf(total_, budget_.adjacency); }

Event BudgetFilter::TotalOf(const std::string& run) const {
  const auto found = runs_.find(run);
  if (found == runs_.end()) throw Error(fmt::format("the ledger has no run {}.", run));
  return EventOf(found->second.charged, budget_.adjacency);
}

Event BudgetFilter::CountedOf(const std::string& run) const {
  if (whole_ != run) return TotalOf(run);
  return EventOf(runs_.at(run).planned, budget_.adjacency);
}

double BudgetFilter::counted_failure() const {
  return whole_ ? std::max(whole_failure_, failure_) : failure_;
}

double BudgetFilter::UsedShare() {
  if (whole_) return 1;
  if (std::isinf(budget_.epsilon.value()) || total_.empty()) return 0;
  const Costs spent = Spent();
  const double filter_budget = FilterBudget();
  return std::min(spent.pure / budget_.epsilon.value(),
                  filter_budget > 0 ? spent.filter / filter_budget : kInfinity);
}

double BudgetFilter::LeftEpsilon() {
  if (whole_ || budget_.delta.value() == 0) return 0;
  if (total_.empty() || std::isinf(budget_.epsilon.value())) return budget_.epsilon.value();
  const double left = FilterBudget() - Spent().filter;
  if (!(left > 0)) return 0;
  // A Gaussian of mu has R(order) = order mu^2 / 2.
  const double mu = std::sqrt(budget_.filter == FilterKind::kGaussian ? left : 2 * left / order_);
  return GaussianEpsilon(mu, std::log(budget_.delta.value()));
}

double BudgetFilter::LeftPureEpsilon() {
  if (whole_) return 0;
  const Costs spent = Spent();
  const double by_sum = std::max(0.0, budget_.epsilon.value() - spent.pure);
  const double left = FilterBudget() - spent.filter;
  if (std::isinf(by_sum) || order_ == 0 || !(left > 0)) return by_sum;
  // The largest epsilon whose divergence at the order is what the filter has left.
  double low = 0;
  double high = budget_.epsilon.value();
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    RenyiCurve curve(Event::Pure(Epsilon(middle), budget_.adjacency));
    (curve(order_) <= left ? low : high) = middle;
  }
  return std::max(by_sum, low);
}

}  // namespace sordino
