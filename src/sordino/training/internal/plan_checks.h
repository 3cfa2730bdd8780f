// Which options of a plan go together.
#ifndef SORDINO_TRAINING_INTERNAL_PLAN_CHECKS_H_
#define SORDINO_TRAINING_INTERNAL_PLAN_CHECKS_H_

#include "sordino/training/privacy_plan.h"

namespace sordino::internal {

// With what follows from the others filled in: batch, rate. Throws Error for options that
// contradict each other and for what the accounting does not cover.
PlanOptions Checked(PlanOptions options);

// What the sampler has to know of them.
SamplingPlan SamplingOf(const PlanOptions& options);
// What the clipping policy has to know of them.
ClippingTerms ClippingTermsOf(const PlanOptions& options);

}  // namespace sordino::internal

#endif  // SORDINO_TRAINING_INTERNAL_PLAN_CHECKS_H_
