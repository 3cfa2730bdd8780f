// Settings of the noise schedule 'adaptive' (training/adaptive_noise.h).
#ifndef SORDINO_RUNS_INTERNAL_ADAPTIVE_SETTINGS_H_
#define SORDINO_RUNS_INTERNAL_ADAPTIVE_SETTINGS_H_

#include "sordino/runs/train_config.h"

namespace sordino::internal {

// Fills in what was left out. Throws Error for what contradicts it, and for settings of adaptive
// noise where there is none.
void CompleteAdaptive(TrainConfig& config, const DatasetDeclaration& declaration);

}  // namespace sordino::internal

#endif  // SORDINO_RUNS_INTERNAL_ADAPTIVE_SETTINGS_H_
