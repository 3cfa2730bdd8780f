#include "sordino/training/internal/data_check.h"

#include <fmt/format.h>

#include "sordino/base/error.h"
#include "sordino/tables/data_error.h"

namespace sordino::internal {

void CheckData(const PrivacyPlan& plan, const Dataset& data, std::int64_t canaries) {
  const PlanOptions& options = plan.options();
  const bool number_is_public = options.adjacency != Adjacency::kAddRemove;
  const std::int64_t most = plan.MostRecords() - canaries;
  if (data.size() > most) {
    throw Error(
        fmt::format("the data hold more than the {} records that the plan was made for; "
                    "declare their number.",
                    most));
  }
  if (number_is_public && options.records > 0 && data.size() + canaries != options.records) {
    throw DataError(
        fmt::format(
            "the data do not hold the {} records that were declared; under {} the number is "
            "public and must be right.",
            options.records - canaries, AdjacencyName(options.adjacency)),
        fmt::format("they hold {}", data.size()));
  }
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
