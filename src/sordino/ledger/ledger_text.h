// What a ledger says to people: its budget, what is used and left of it, and why it refuses.
#ifndef SORDINO_LEDGER_LEDGER_TEXT_H_
#define SORDINO_LEDGER_LEDGER_TEXT_H_

#include <string>

#include "sordino/ledger/ledger.h"

namespace sordino {

// Whether there is anything to refuse.
bool IsLimited(const Budget& budget);
// "epsilon 8 at delta 1e-05 for all releases together, adding or removing one record"
std::string BudgetText(const Budget& budget);
// "12.35%", rounded up.
std::string UsedText(double share);
// "one more Gaussian mechanism of epsilon 0.5 at delta 1e-05", "nothing", ...
std::string LeftText(BudgetFilter& filter);
// What was refused, and why: "the release costs epsilon 0.5 at delta 1e-05 alone and the ledger
// 'visits.db' refuses it, because ...; left is ...".
std::string RefusalText(Ledger& ledger, const RunDeclaration& run, const Verdict& verdict);
// "charged to visits.db: 12.35% of its budget is used, head 5c1e..."
std::string ChargedText(Ledger& ledger);

}  // namespace sordino

#endif  // SORDINO_LEDGER_LEDGER_TEXT_H_
