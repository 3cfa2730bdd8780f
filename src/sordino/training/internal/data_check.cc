#include "sordino/training/internal/data_check.h"

#include <fmt/format.h>

#include "sordino/base/error.h"

namespace sordino::internal {

void CheckData(const PrivacyPlan& plan, const Dataset& data) {
  const PlanOptions& options = plan.options();
  if (options.rows_per_user != 0 && data.declaration.rows_per_user != options.rows_per_user) {
    throw Error(
        fmt::format("the plan is for users with at most {} rows and the data were read with "
                    "a limit of {}; declare the same in both.",
                    options.rows_per_user, data.declaration.rows_per_user));
  }
  if (data.declaration.rows_per_user > 1 && options.rows_per_user == 0) {
    throw Error(
        fmt::format("a user has up to {} rows in the data and the plan protects single "
                    "records; declare the rows per user in the plan.",
                    data.declaration.rows_per_user));
  }
}

}  // namespace sordino::internal
