// How many steps, and which noise in each, spend a budget best: what `sordino plan` shows, from the
// pieces of convergence.h, momentum.h and noise_schedule.h.
#ifndef SORDINO_THEORY_STEP_PLAN_H_
#define SORDINO_THEORY_STEP_PLAN_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "sordino/base/quantity.h"
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
// Throws Error for a delta outside of (0, 1) and where no noise meets the two.
PlanBudget PlanBudgetOf(Epsilon epsilon, Delta delta);

struct StepPlanOptions {
  std::optional<std::int64_t> steps = {};  // left out: the best number
  std::optional<double> momentum = {};
  std::optional<double> step_size = {};             // with momentum; left out, the largest
  std::optional<PublishedQuestion> published = {};  // steps and gamma follow from the plan
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

// Throws Error for a number of steps that is out of range or too large to have an influence, for a
// step size without momentum, and where no step is worth its noise.
Plan MakePlan(const ConvergenceProblem& problem, const PlanBudget& budget,
              const StepPlanOptions& options = {});

}  // namespace sordino

#endif  // SORDINO_THEORY_STEP_PLAN_H_
