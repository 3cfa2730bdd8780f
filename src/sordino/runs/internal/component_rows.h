// Rows of the settings that come from registries.
#ifndef SORDINO_RUNS_INTERNAL_COMPONENT_ROWS_H_
#define SORDINO_RUNS_INTERNAL_COMPONENT_ROWS_H_

#include <string>
#include <string_view>
#include <vector>

#include "sordino/base/component.h"
#include "sordino/runs/train_settings.h"

namespace sordino::internal {

// A row for the choice between components, and one for each of their options.
std::vector<Setting> ComponentRows(std::string_view section, std::string_view key,
                                   std::string_view flag, const ComponentList& components,
                                   Choice& (*choice)(TrainConfig&));

// "0.5 for sgd, 0.01 for adagrad, 0.001 for adam and adamw"
std::string LearningRateHelp();

}  // namespace sordino::internal

#endif  // SORDINO_RUNS_INTERNAL_COMPONENT_ROWS_H_
