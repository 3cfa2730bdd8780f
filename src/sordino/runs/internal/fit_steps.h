// What preparation and run of a fit share.
#ifndef SORDINO_RUNS_INTERNAL_FIT_STEPS_H_
#define SORDINO_RUNS_INTERNAL_FIT_STEPS_H_

#include <memory>

#include "sordino/models/model.h"
#include "sordino/runs/fit_run.h"

namespace sordino::internal {

// All methods, and the one that was asked for or is best by theory. The number of records is known.
void MakePlans(PreparedFit& fit);

// What a fit is applied by: a linear layer of models/model.h, behind the features that were asked
// for.
std::string_view FitModelName(const FitSettings& settings);
std::unique_ptr<Model> MakeFitModel(const FitSettings& settings,
                                    const DatasetDeclaration& declaration);

// What the ledger is charged: that of the plan, or of the selection.
const Event& EventOf(const PreparedFit& fit);
double FailureOf(const PreparedFit& fit);

}  // namespace sordino::internal

#endif  // SORDINO_RUNS_INTERNAL_FIT_STEPS_H_
