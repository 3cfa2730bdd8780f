// What a run or a fit cannot be planned without and nobody gave, all of it at once.
#ifndef SORDINO_RUNS_MISSING_SETTINGS_H_
#define SORDINO_RUNS_MISSING_SETTINGS_H_

#include <string>
#include <string_view>
#include <vector>

#include "sordino/data/format_settings.h"
#include "sordino/runs/fit_run.h"
#include "sordino/runs/train_config.h"

namespace sordino {

// Throws Error for data that are not there. Reads no records.
std::vector<MissingSetting> MissingSettings(const TrainConfig& config);
std::vector<MissingSetting> MissingSettings(const FitSettings& settings);

// "2 settings are missing: the budget (--epsilon), and delta (--delta). This would work: sordino
// train ..."; `line` is the command line as it was given, to which the rest is added.
std::string MissingSentence(const std::vector<MissingSetting>& missing, std::string_view line);

}  // namespace sordino

#endif  // SORDINO_RUNS_MISSING_SETTINGS_H_
