// What `sordino plan noise` answers: how good a strategy is for a pattern of participation, and
// when correlated noise pays at a budget.
#ifndef SORDINO_CORRELATION_NOISE_PLAN_H_
#define SORDINO_CORRELATION_NOISE_PLAN_H_

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sordino/base/quantity.h"
#include "sordino/correlation/bands_choice.h"
#include "sordino/correlation/participation.h"
#include "sordino/correlation/strategy.h"

namespace sordino {

// In the order of CorrelationObjective.
inline constexpr std::array<std::string_view, 2> kObjectiveNames = {"rmse", "max-error"};

struct SampledBudget {
  Epsilon epsilon;
  Delta delta;
  SamplingRate rate;  // expected batch over records
};

struct NoisePlanQuestion {
  std::int64_t steps = 0;
  // Left out: steps of an epoch (one over the rate of the budget), or all steps.
  std::optional<std::int64_t> separation = {};
  // Left out: as many as fit with a budget or a separation, one without.
  std::optional<std::int64_t> participations = {};
  std::string strategy = "auto";  // or what MakeStrategy reads; "auto": ChooseUnsampled
  CorrelationObjective objective = CorrelationObjective::kRmse;
  std::optional<SampledBudget> budget = {};

  // Throws Error for numbers outside their ranges.
  Participation Pattern() const;
};

// The best number of bands for a run of so many epochs at an epsilon.
struct NoisePlanCell {
  double epochs;
  std::int64_t steps;
  double epsilon;
  std::int64_t bands;
  double ratio;  // RMSE over that of Poisson sampling with independent noise, both certified
};

struct SampledBudgetPlan {
  BandsChoice sampled;  // cyclic Poisson sampling
  // The strategy in its fixed order, which nobody samples: noise multiplier and RMSE at the budget.
  double fixed_noise;
  double fixed_rmse;
  std::vector<NoisePlanCell> cells;  // by epochs, then by epsilon
};

struct NoisePlan {
  std::unique_ptr<Strategy> strategy;
  double rmse;
  double max_error;
  double sensitivity;
  double independent_rmse;  // for the same pattern
  std::optional<SampledBudgetPlan> budget = {};

  // Those of C up to its last band; empty where the strategy is not Toeplitz.
  std::vector<double> Coefficients() const;
};

// Throws Error for what cannot be answered, and where no noise meets the budget. `progress` is
// called with what is done of the total, before each choice of bands and after the last.
NoisePlan PlanNoise(const NoisePlanQuestion& question,
                    const std::function<void(std::uint64_t done, std::uint64_t total)>& progress);

}  // namespace sordino

#endif  // SORDINO_CORRELATION_NOISE_PLAN_H_
