// What `sordino train` and `sordino tune` print of a run.
#ifndef SORDINO_TORCH_CLI_TRAIN_REPORT_H_
#define SORDINO_TORCH_CLI_TRAIN_REPORT_H_

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sordino/runs/training_run.h"

namespace sordino {

using ReportRows = std::vector<std::vector<std::string>>;

nlohmann::ordered_json ResultJson(const RunResult& result, bool dry_run);

// `more` are rows beside those of every run.
void PrintResult(const RunResult& result, const ReportRows& more = {});
void PrintPlan(const RunResult& result, const ReportRows& more = {});

}  // namespace sordino

#endif  // SORDINO_TORCH_CLI_TRAIN_REPORT_H_
