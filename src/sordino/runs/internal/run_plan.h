// From completed settings to a plan, and to what a statement says of it before the first step.
#ifndef SORDINO_RUNS_INTERNAL_RUN_PLAN_H_
#define SORDINO_RUNS_INTERNAL_RUN_PLAN_H_

#include <optional>
#include <string>

#include "sordino/data/dataset.h"
#include "sordino/runs/statement.h"
#include "sordino/runs/train_config.h"
#include "sordino/training/privacy_plan.h"

namespace sordino::internal {

// With this noise multiplier where one is given (that of a run which is resumed). Throws Error
// where no noise meets the budget.
PrivacyPlan MakePlan(const TrainConfig& config, const DatasetDeclaration& declaration,
                     std::optional<double> noise);

RunPrivacy PrivacyOf(const TrainConfig& config);

// `model` is a sentence.
StatementFacts PlannedFacts(const TrainConfig& config, const DatasetDeclaration& declaration,
                            const PrivacyPlan& plan, std::string model);

}  // namespace sordino::internal

#endif  // SORDINO_RUNS_INTERNAL_RUN_PLAN_H_
