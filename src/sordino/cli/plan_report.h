// A plan of 'sordino plan' and how it is shown: as text, as JSON, as a picture and as a file.
#ifndef SORDINO_CLI_PLAN_REPORT_H_
#define SORDINO_CLI_PLAN_REPORT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sordino/report/plan_picture.h"
#include "sordino/theory/convergence.h"
#include "sordino/theory/momentum.h"
#include "sordino/theory/published_bounds.h"

namespace sordino {

// Longer schedules are not listed.
inline constexpr std::int64_t kMaxScheduleSteps = 1'000'000;

// R, and where it came from.
struct PlanBudget {
  double value = 1;
  bool given = false;                 // else noise is in units of 1 / sqrt(R)
  std::optional<double> epsilon;      // that it was made for
  std::optional<double> zcdp_budget;  // what zero-concentrated privacy would allow
};

struct Plan {
  ConvergenceProblem problem;
  PlanBudget budget;
  Horizon uniform;
  Horizon dynamic;
  std::optional<MomentumProblem> momentum;
  std::optional<MomentumProblem::Best> momentum_best;
  std::optional<std::int64_t> steps;  // asked for
  std::int64_t schedule_steps = 0;
  std::vector<double> influence;  // empty where there are too many steps to list
  std::vector<double> noise;
  std::vector<PublishedBound> table;

  double UniformBound(std::int64_t at) const {
    return momentum ? momentum->UniformBound(at) : problem.UniformBound(static_cast<double>(at));
  }
  double DynamicBound(std::int64_t at) const {
    return momentum ? momentum->DynamicBound(at) : problem.DynamicBound(static_cast<double>(at));
  }
};

// One JSON object, or a text for people, with a line break at the end.
std::string PlanJson(const Plan& plan);
std::string PlanText(const Plan& plan);
PlanPicture PictureOf(const Plan& plan);
// The noise of every step (schedules/schedule_table.h). Throws Error where there are too many.
std::string ScheduleFileOf(const Plan& plan);

}  // namespace sordino

#endif  // SORDINO_CLI_PLAN_REPORT_H_
