#include "sordino/cli/ledger_forecast.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "sordino/cli/ledger_report.h"
#include "sordino/cli/report_json.h"

namespace sordino {

std::string ForecastText(BudgetFilter after) {
  return fmt::format("{} of its budget would be used{}, and left would be {}",
                     UsedText(after.UsedShare()),
                     after.whole_run() ? ", because the run counts whole" : "", LeftText(after));
}

nlohmann::ordered_json ForecastJson(BudgetFilter after) {
  return {
      {"used", NumberJson(after.UsedShare())},
      {"whole", after.whole_run().has_value()},
      {"left",
       {{"gaussian",
         {{"epsilon", NumberJson(after.LeftEpsilon())}, {"delta", after.budget().delta.value()}}},
        {"pure", {{"epsilon", NumberJson(after.LeftPureEpsilon())}}}}}};
}

std::string WholeHint(const Verdict& verdict) {
  return verdict.needs_whole ? "; give --whole if that is meant" : "";
}

}  // namespace sordino
