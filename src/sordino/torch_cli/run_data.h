// Records for the model of a run: read as those that it was trained on.
#ifndef SORDINO_TORCH_CLI_RUN_DATA_H_
#define SORDINO_TORCH_CLI_RUN_DATA_H_

#include <vector>

#include "sordino/data/catalog.h"
#include "sordino/data/dataset.h"
#include "sordino/runs/run_folder.h"
#include "sordino/runs/train_settings.h"

namespace sordino {

// What was declared about the data of the run holds for the new ones too, unless flags say
// otherwise: the model knows no other shape, classes or normalisation. Throws Error with
// `nothing_given` where the flags name no data.
DataRequest RequestLike(const TrainedRun& run, const std::vector<GivenFlag>& flags,
                        const char* nothing_given);

// Throws Error for records of another kind than those of the run.
void CheckRecordsFit(const TrainedRun& run, const Dataset& data);

}  // namespace sordino

#endif  // SORDINO_TORCH_CLI_RUN_DATA_H_
