// A plan of 'sordino plan noise' and how it is shown: as text, as JSON and as a picture.
#ifndef SORDINO_CLI_PLAN_NOISE_REPORT_H_
#define SORDINO_CLI_PLAN_NOISE_REPORT_H_

#include <string>

#include "sordino/correlation/noise_plan.h"

namespace sordino {

// One JSON object, or a text for people, with a line break at the end.
std::string NoisePlanJson(const NoisePlanQuestion& question, const NoisePlan& plan);
std::string NoisePlanText(const NoisePlanQuestion& question, const NoisePlan& plan);
// RMSE over that of independent noise against epsilon, a curve for each number of epochs. The plan
// has a budget.
std::string NoisePlanSvg(const NoisePlanQuestion& question, const NoisePlan& plan);

}  // namespace sordino

#endif  // SORDINO_CLI_PLAN_NOISE_REPORT_H_
