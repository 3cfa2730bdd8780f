#include "sordino/ledger/ledger_text.h"

#include <fmt/format.h>

#include <cmath>

#include "sordino/accounting/failures.h"
#include "sordino/base/directed_text.h"

namespace sordino {

bool IsLimited(const Budget& budget) { return std::isfinite(budget.epsilon.value()); }

std::string BudgetText(const Budget& budget) {
  const char* change = "adding or removing";
  if (budget.adjacency == Adjacency::kReplaceOne) change = "replacing";
  if (budget.adjacency == Adjacency::kZeroOut) change = "emptying";
  const std::string limit =
      IsLimited(budget) ? fmt::format("epsilon {:g} at delta {:g} for all releases together",
                                      budget.epsilon.value(), budget.delta.value())
                        : fmt::format("no limit, counted at delta {:g}", budget.delta.value());
  return fmt::format("{}, {} one {}", limit, change, ProtectedUnitName(budget.unit));
}

std::string UsedText(double share) {
  if (!std::isfinite(share)) return "more than 100%";
  return fmt::format("{:.2f}%", std::ceil(share * 1e4 * (1 - 1e-12)) / 100);
}

std::string LeftText(BudgetFilter& filter) {
  const Budget& budget = filter.budget();
  if (!IsLimited(budget)) return "everything: there is no limit";
  if (filter.whole_run()) return "nothing for another run";
  const double gaussian = filter.LeftEpsilon();
  const double pure = filter.LeftPureEpsilon();
  std::string text;
  if (gaussian > 0) {
    text = fmt::format("one more Gaussian mechanism of epsilon {} at delta {:g}",
                       LowerText(gaussian), budget.delta.value());
  }
  if (pure > 0) {
    text += fmt::format("{}one more pure mechanism of epsilon {}", text.empty() ? "" : ", or ",
                        LowerText(pure));
  }
  return text.empty() ? "nothing" : text;
}

std::string RefusalText(Ledger& ledger, const RunDeclaration& run, const Verdict& verdict) {
  const Delta delta = ledger.budget().delta;
  return fmt::format(
      "the release costs epsilon {} at delta {:g} alone and the ledger '{}' refuses it, because "
      "{}; "
      "left is {}",
      UpperText(SpentEpsilon(run.plan, delta, run.failure).upper), delta.value(),
      ledger.file().string(), verdict.reason, LeftText(ledger.filter()));
}

std::string ChargedText(Ledger& ledger) {
  return fmt::format("charged to {}: {} of its budget is used, head {}", ledger.file().string(),
                     UsedText(ledger.filter().UsedShare()), ledger.head().hash);
}

}  // namespace sordino
