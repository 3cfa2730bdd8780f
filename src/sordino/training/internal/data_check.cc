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

void CheckProgram(const PrivacyPlan& plan, const TrainerOptions& options) {
  const char* what = nullptr;
  if (plan.options().rows_per_user > 0) what = "several rows a user";
  if (plan.options().held_out) what = "adaptive noise, which holds records out,";
  if (options.canary_records) what = "canaries that are records";
  if (options.communicator != nullptr) what = "a run of several processes";
  if (what == nullptr) return;
  throw Error(fmt::format(
      "{} needs a dataset that Sordino has read, and the records are those of a program; leave it "
      "out.",
      what));
}

}  // namespace sordino::internal
