// What preparation and run of a fit share.
#ifndef SORDINO_RUNS_INTERNAL_FIT_STEPS_H_
#define SORDINO_RUNS_INTERNAL_FIT_STEPS_H_

#include "sordino/runs/fit_run.h"

namespace sordino::internal {

// All methods, and the one that was asked for or is best by theory. The number of records is known.
void MakePlans(PreparedFit& fit);

// What the ledger is charged: that of the plan, or of the selection.
const Event& EventOf(const PreparedFit& fit);
double FailureOf(const PreparedFit& fit);

}  // namespace sordino::internal

#endif  // SORDINO_RUNS_INTERNAL_FIT_STEPS_H_
