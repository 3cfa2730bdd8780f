// What a ledger would make of a run, for --dry-run and for refusals.
#ifndef SORDINO_CLI_LEDGER_FORECAST_H_
#define SORDINO_CLI_LEDGER_FORECAST_H_

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "sordino/ledger/ledger.h"

namespace sordino {

// "3.21% of its budget would be used, and left would be ...". `after`: BudgetFilter::After.
std::string ForecastText(BudgetFilter after);
nlohmann::ordered_json ForecastJson(BudgetFilter after);

// "; give --whole if that is meant", or nothing.
std::string WholeHint(const Verdict& verdict);

}  // namespace sordino

#endif  // SORDINO_CLI_LEDGER_FORECAST_H_
