// What `sordino fit` says: as one JSON object and as tables for people.
#ifndef SORDINO_TORCH_CLI_FIT_REPORT_H_
#define SORDINO_TORCH_CLI_FIT_REPORT_H_

#include <nlohmann/json.hpp>

#include "sordino/runs/fit_run.h"

namespace sordino {

nlohmann::ordered_json FitOutcomeJson(const FitOutcome& outcome);
void PrintFitOutcome(const FitOutcome& outcome);

// What each method would do. Nothing of it comes from the data.
nlohmann::ordered_json FitPlansJson(const PreparedFit& fit);
void PrintFitPlans(const PreparedFit& fit);

}  // namespace sordino

#endif  // SORDINO_TORCH_CLI_FIT_REPORT_H_
