// What a dataset may cost, all releases together, and what it protects.
#ifndef SORDINO_LEDGER_BUDGET_H_
#define SORDINO_LEDGER_BUDGET_H_

#include <cstdint>
#include <optional>
#include <string_view>

#include "sordino/base/quantity.h"

namespace sordino {

// Whose data neighbouring datasets differ by.
enum class ProtectedUnit : std::uint8_t { kRecord, kUser };
std::string_view ProtectedUnitName(ProtectedUnit unit);   // "record", "user"
ProtectedUnit ParseProtectedUnit(std::string_view name);  // the inverse; throws Error

// The filter that holds for runs that are chosen after others were seen (budget_filter.h).
enum class FilterKind : std::uint8_t { kRenyi, kGaussian };
std::string_view FilterName(FilterKind kind);   // "renyi", "gaussian"
FilterKind ParseFilter(std::string_view name);  // the inverse; throws Error

// The part of delta that new ledgers keep for losses (release_costs.h).
inline constexpr double kLossShare = 0x1p-4;

struct Budget {
  Epsilon epsilon{0};  // positive; infinite: charges are recorded and never refused
  Delta delta{0};      // [0, 1); 0 admits pure mechanisms only
  Adjacency adjacency = Adjacency::kAddRemove;
  ProtectedUnit unit = ProtectedUnit::kRecord;
  FilterKind filter = FilterKind::kRenyi;
  std::optional<RenyiOrder> order = {};  // kRenyi; left out: by the first run's plan
  // [0, 1/2]. Fixed when the ledger is made: a share that follows what was released would not be
  // covered. 0 in ledgers that were made before there was one.
  double loss_share = kLossShare;
};

// Throws Error for a budget that is out of range or contradicts itself.
void CheckBudget(const Budget& budget);

}  // namespace sordino

#endif  // SORDINO_LEDGER_BUDGET_H_
