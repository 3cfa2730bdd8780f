// What must hold of an experiment whatever file it comes from.
#ifndef SORDINO_EXPERIMENTS_INTERNAL_EXPERIMENT_CHECK_H_
#define SORDINO_EXPERIMENTS_INTERNAL_EXPERIMENT_CHECK_H_

#include "sordino/experiments/experiment.h"

namespace sordino::internal {

// Throws Error: names are there, distinct and can be those of files, axes have no label twice,
// pictures use what their part has and leave no axis open, and the grid has at most kMaxCells
// cells.
void CheckExperiment(const Experiment& experiment);

}  // namespace sordino::internal

#endif  // SORDINO_EXPERIMENTS_INTERNAL_EXPERIMENT_CHECK_H_
