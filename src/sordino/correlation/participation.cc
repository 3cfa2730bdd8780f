#include "sordino/correlation/participation.h"

#include <fmt/format.h>

#include <algorithm>

#include "sordino/base/error.h"

namespace sordino {

std::int64_t Participation::Fitting() const {
  return std::min(count, (steps - 1) / separation + 1);
}

void Participation::Check() const {
  if (steps < 1 || steps > kMaxCorrelatedSteps) {
    throw Error(fmt::format("correlated noise over {} steps; give a number of steps from 1 to {}.",
                            steps, kMaxCorrelatedSteps));
  }
  if (separation < 1) {
    throw Error(fmt::format(
        "the separation of two participations is {}; give at least 1, which is every step.",
        separation));
  }
  if (count < 1) {
    throw Error(fmt::format("{} participations; give at least 1.", count));
  }
}

}  // namespace sordino
