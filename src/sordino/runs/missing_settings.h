// What a run or a fit cannot be planned without and nobody gave, all of it at once.
#ifndef SORDINO_RUNS_MISSING_SETTINGS_H_
#define SORDINO_RUNS_MISSING_SETTINGS_H_

#include <vector>

#include "sordino/base/missing_setting.h"
#include "sordino/runs/fit_run.h"
#include "sordino/runs/train_config.h"
#include "sordino/runs/tuned_training.h"

namespace sordino {

// Throws Error for data that are not there. Reads no records.
std::vector<MissingSetting> MissingSettings(const TrainConfig& config);
std::vector<MissingSetting> MissingSettings(const FitSettings& settings);
std::vector<MissingSetting> MissingSettings(const TuneSettings& settings);

}  // namespace sordino

#endif  // SORDINO_RUNS_MISSING_SETTINGS_H_
