// Whether data were read as the plan that a trainer is given assumes.
//
// Declarations are compared with declarations. How many records there are is compared with nothing:
// under add-remove a refusal that depends on it tells neighbours apart at no cost. Instead every
// plan covers any number:
//   - The sampler's event holds for any number of records (sampling/), and the sensitivity for
//     batches of any size (gradients/internal/rounding/long_steps.h).
//   - The divisor, the steps and the schedules are made of declared numbers.
#ifndef SORDINO_TRAINING_INTERNAL_DATA_CHECK_H_
#define SORDINO_TRAINING_INTERNAL_DATA_CHECK_H_

#include "sordino/data/dataset.h"
#include "sordino/training/privacy_plan.h"
#include "sordino/training/trainer.h"

namespace sordino::internal {

// Throws Error where they were not.
void CheckData(const PrivacyPlan& plan, const Dataset& data);

// Throws Error for what records of a program (ProgramRecords) cannot have.
void CheckProgram(const PrivacyPlan& plan, const TrainerOptions& options);

}  // namespace sordino::internal

#endif  // SORDINO_TRAINING_INTERNAL_DATA_CHECK_H_
