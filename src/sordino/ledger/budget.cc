#include "sordino/ledger/budget.h"

#include <array>

#include "sordino/base/error.h"
#include "sordino/base/known_name.h"

namespace sordino {
namespace {

constexpr std::array<std::string_view, 2> kUnits = {"record", "user"};       // by kind
constexpr std::array<std::string_view, 2> kFilters = {"renyi", "gaussian"};  // by kind

}  // namespace

std::string_view ProtectedUnitName(ProtectedUnit unit) {
  return kUnits[static_cast<std::size_t>(unit)];
}

ProtectedUnit ParseProtectedUnit(std::string_view name) {
  return static_cast<ProtectedUnit>(IndexOfName("the protected unit", name, kUnits));
}

std::string_view FilterName(FilterKind kind) { return kFilters[static_cast<std::size_t>(kind)]; }

FilterKind ParseFilter(std::string_view name) {
  return static_cast<FilterKind>(IndexOfName("the filter", name, kFilters));
}

void CheckBudget(const Budget& budget) {
  CheckRange("the budget's epsilon", budget.epsilon.value(), 0, true, kInfinity, false);
  CheckRange("the budget's delta", budget.delta.value(), 0, false, 1, true);
  CheckRange("the share of delta for losses", budget.loss_share, 0, false, 0.5, false);
  if (budget.delta.value() == 0 && budget.filter == FilterKind::kGaussian) {
    throw Error(
        "the filter is 'gaussian' and delta is 0, with which no Gaussian noise is private; give a "
        "positive delta, or leave the filter out.");
  }
  if (budget.order && (budget.filter != FilterKind::kRenyi || budget.delta.value() == 0)) {
    throw Error(
        "a Renyi order was given for a budget that has no Renyi filter; leave the order out, or "
        "use the filter 'renyi' and a positive delta.");
  }
}

}  // namespace sordino
