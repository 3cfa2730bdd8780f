// Whether data fit the plan that a trainer is given.
#ifndef SORDINO_TRAINING_INTERNAL_DATA_CHECK_H_
#define SORDINO_TRAINING_INTERNAL_DATA_CHECK_H_

#include <cstdint>

#include "sordino/data/dataset.h"
#include "sordino/training/privacy_plan.h"

namespace sordino::internal {

// Throws Error where they do not. The plan counts `canaries` that are data among the records.
void CheckData(const PrivacyPlan& plan, const Dataset& data, std::int64_t canaries);

}  // namespace sordino::internal

#endif  // SORDINO_TRAINING_INTERNAL_DATA_CHECK_H_
