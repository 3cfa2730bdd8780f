#include "sordino/accounting/filter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "sordino/accounting/gaussian.h"
#include "sordino/accounting/gdp.h"
#include "sordino/accounting/renyi.h"
#include "sordino/accounting/zcdp.h"
#include "sordino/base/check.h"
#include "sordino/base/error.h"

namespace sordino {
namespace {

// Budgets shrink by this much for the rounding of costs and of the conversion, and for that of sums
// that others form of costs (the ledger adds up to 2^29 of them).
constexpr double kRounding = 1e-7;
// The rungs of an odometer start here and grow by this factor.
constexpr double kFirstRung = 1e-8;
constexpr double kRungFactor = 1.1;

void CheckBudget(Epsilon epsilon, Delta delta) {
  CheckRange("the budget's epsilon", epsilon.value(), 0, false, kInfinity, true);
  CheckRange("the budget's delta", delta.value(), 0, true, 1, true);
}

// The largest R at the order that converts to epsilon at most.
double RenyiBudget(double epsilon, double log_delta, double order) {
  const double a = order - 1;
  const double overhead = std::log1p(-1 / order) - (log_delta + std::log(order)) / a;
  return std::max(0.0, (epsilon - overhead) * (1 - kRounding) - 1e-12 * std::abs(overhead));
}

double CostAtOrder(const Event& step, double order) {
  RenyiCurve curve(step);
  return curve(order);
}

// spent + cost, never below it.
double AddUp(double spent, double cost) {
  return cost == 0 ? spent : std::nextafter(spent + cost, kInfinity);
}

// A step that releases nothing is of any adjacency.
void CheckAdjacency(const std::optional<Adjacency>& first, const Event& step) {
  if (!first || *first == step.adjacency() || step.IsNone()) return;
  throw Error(fmt::format(
      "a step under {} was given to a filter or odometer that was charged under {}; the two do not "
      "add up, so use one filter for each adjacency.",
      AdjacencyName(step.adjacency()), AdjacencyName(*first)));
}

void KeepAdjacency(std::optional<Adjacency>& first, const Event& step) {
  if (!first && !step.IsNone()) first = step.adjacency();
}

}  // namespace

PrivacyFilter::PrivacyFilter(Kind kind, Epsilon epsilon, Delta delta, double order, double budget)
    : kind_(kind),
      epsilon_(epsilon.value()),
      log_delta_(std::log(delta.value())),
      order_(order),
      budget_(budget) {}

PrivacyFilter PrivacyFilter::Renyi(Epsilon epsilon, Delta delta, RenyiOrder order) {
  CheckBudget(epsilon, delta);
  return PrivacyFilter(Kind::kRenyi, epsilon, delta, order.value(),
                       RenyiBudget(epsilon.value(), std::log(delta.value()), order.value()));
}

PrivacyFilter PrivacyFilter::Renyi(Epsilon epsilon, Delta delta, const Event& typical) {
  CheckBudget(epsilon, delta);
  RenyiCurve curve(typical);
  if (!curve.reason().empty()) {
    throw Error(fmt::format("the typical step '{}' cannot be filtered: {}.", typical.ToString(),
                            curve.reason()));
  }
  const double log_delta = std::log(delta.value());
  double best_order = 2;
  double best_count = -1;
  const auto consider = [&](double order) {
    const double cost = curve(order);
    const double budget = RenyiBudget(epsilon.value(), log_delta, order);
    const double count = cost > 0 ? budget / cost : budget;
    if (count > best_count) {
      best_count = count;
      best_order = order;
    }
  };
  for (double t = -6; t <= 12; t += 0.5) consider(1 + std::exp(t));
  for (double width = 0.25; width > 0.01; width /= 2) {
    const double t = std::log(best_order - 1);
    consider(1 + std::exp(t - width));
    consider(1 + std::exp(t + width));
  }
  return Renyi(epsilon, delta, RenyiOrder(best_order));
}

PrivacyFilter PrivacyFilter::Zcdp(Epsilon epsilon, Delta delta) {
  CheckBudget(epsilon, delta);
  const double log_delta = std::log(delta.value());
  double low = 0;
  double high = epsilon.value() + 1;
  for (int i = 0; i < 100 && high - low > 1e-10 * high; ++i) {
    const double mid = 0.5 * (low + high);
    (ZcdpEpsilon(mid, log_delta).epsilon <= epsilon.value() ? low : high) = mid;
  }
  return PrivacyFilter(Kind::kZcdp, epsilon, delta, 0, low * (1 - kRounding));
}

PrivacyFilter PrivacyFilter::Gaussian(Epsilon epsilon, Delta delta) {
  CheckBudget(epsilon, delta);
  const double mu = GaussianMu(epsilon.value(), std::log(delta.value()));
  return PrivacyFilter(Kind::kGaussian, epsilon, delta, 0, mu * mu * (1 - kRounding));
}

double PrivacyFilter::CostOf(const Event& step) {
  std::string text = step.ToString();
  if (const auto known = costs_.find(text); known != costs_.end()) return known->second;
  double cost = kInfinity;
  switch (kind_) {
    case Kind::kRenyi:
      cost = CostAtOrder(step, order_);
      break;
    case Kind::kZcdp:
      cost = ZcdpOf(step).rho;
      break;
    case Kind::kGaussian: {
      const GdpResult gdp = GdpOf(step);
      if (gdp.reason.empty() && gdp.sound) cost = gdp.mu * gdp.mu;
      break;
    }
  }
  constexpr std::size_t kMaxRemembered = 4096;
  if (costs_.size() >= kMaxRemembered) costs_.clear();
  costs_.emplace(std::move(text), cost);
  return cost;
}

bool PrivacyFilter::Admits(const Event& step) {
  CheckAdjacency(adjacency_, step);
  return AddUp(spent_, CostOf(step)) <= budget_;
}

bool PrivacyFilter::Charge(const Event& step) {
  CheckAdjacency(adjacency_, step);
  const double after = AddUp(spent_, CostOf(step));
  if (!(after <= budget_)) return false;
  spent_ = after;
  KeepAdjacency(adjacency_, step);
  SORDINO_CHECK(spent_ <= budget_, "a filter passed its budget");
  return true;
}

double PrivacyFilter::SpentEpsilon() const {
  if (spent_ == 0) return 0;
  switch (kind_) {
    case Kind::kRenyi:
      return EpsilonFromRenyi(spent_, order_, log_delta_);
    case Kind::kZcdp:
      return ZcdpEpsilon(spent_, log_delta_).epsilon;
    case Kind::kGaussian:
      return GaussianEpsilon(std::sqrt(spent_), log_delta_);
  }
  return kInfinity;
}

PrivacyOdometer::PrivacyOdometer(Delta delta) : log_delta_(std::log(delta.value())), order_(0) {
  CheckRange("the odometer's delta", delta.value(), 0, true, 1, true);
}

PrivacyOdometer::PrivacyOdometer(Delta delta, RenyiOrder order)
    : log_delta_(std::log(delta.value())), order_(order.value()) {
  CheckRange("the odometer's delta", delta.value(), 0, true, 1, true);
}

void PrivacyOdometer::Charge(const Event& step) {
  CheckAdjacency(adjacency_, step);
  double cost = kInfinity;
  std::string reason;
  if (order_ == 0) {
    const ZcdpResult result = ZcdpOf(step);
    cost = result.rho;
    reason = result.reason;
  } else {
    RenyiCurve curve(step);
    reason = curve.reason();
    if (reason.empty()) cost = curve(order_);
  }
  if (reason.empty() && !(cost < kInfinity)) reason = "its cost is not finite";
  if (!reason.empty()) {
    throw Error(fmt::format("the odometer cannot measure '{}': {}.", step.ToString(), reason));
  }
  spent_ = AddUp(spent_, cost);
  KeepAdjacency(adjacency_, step);
}

double PrivacyOdometer::Epsilon() const {
  if (spent_ == 0) return 0;
  double rung = 0;
  double budget = kFirstRung;
  if (spent_ > kFirstRung) {
    rung = std::ceil(std::log(spent_ / kFirstRung) / std::log(kRungFactor));
    budget = kFirstRung * std::pow(kRungFactor, rung);
    while (budget < spent_ * (1 + kRounding)) {
      rung += 1;
      budget *= kRungFactor;
    }
  }
  const double share = std::log(6 / (std::numbers::pi * std::numbers::pi)) - 2 * std::log(rung + 1);
  const double log_delta = log_delta_ + share;
  return order_ == 0 ? ZcdpEpsilon(budget, log_delta).epsilon
                     : EpsilonFromRenyi(budget, order_, log_delta);
}

}  // namespace sordino
