#include "sordino/correlation/noise_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "sordino/accounting/calibration.h"
#include "sordino/base/error.h"

namespace sordino {
namespace {

constexpr std::array<double, 5> kEpsilonFactors = {0.25, 0.5, 1, 2, 4};
constexpr std::array<double, 2> kEpochs = {1, 10};
constexpr double kMostCellSteps = 50'000;

BandsQuestion QuestionOf(const SampledBudget& budget, std::int64_t steps, double epsilon) {
  return {.steps = steps, .rate = budget.rate, .epsilon = Epsilon(epsilon), .delta = budget.delta};
}

// Steps of the runs that are compared, with that of the question among them.
std::vector<std::int64_t> StepsOfCells(const NoisePlanQuestion& question) {
  std::vector<std::int64_t> all = {question.steps};
  for (const double epochs : kEpochs) {
    const double steps = std::round(epochs / question.budget->rate.value());
    if (steps <= kMostCellSteps) all.push_back(static_cast<std::int64_t>(steps));
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

Error NoNoise(const SampledBudget& budget) {
  return Error(fmt::format("no noise meets epsilon {:g} at delta {:g}; allow more.",
                           budget.epsilon.value(), budget.delta.value()));
}

SampledBudgetPlan PlanBudget(const NoisePlanQuestion& question, const Strategy& strategy,
                             const std::function<void(std::uint64_t, std::uint64_t)>& progress) {
  const SampledBudget& budget = *question.budget;
  const auto fixed = CalibrateNoise([](NoiseMultiplier noise) { return Event::Gaussian(noise); },
                                    budget.epsilon, budget.delta);
  std::optional<BandsChoice> sampled =
      ChooseBands(QuestionOf(budget, question.steps, budget.epsilon.value()));
  if (!fixed || !sampled) throw NoNoise(budget);
  SampledBudgetPlan plan{.sampled = *std::move(sampled),
                         .fixed_noise = fixed->noise.value(),
                         .fixed_rmse = fixed->noise.value() * strategy.Rmse(),
                         .cells = {}};
  const std::vector<std::int64_t> all_steps = StepsOfCells(question);
  std::uint64_t done = 0;
  for (const std::int64_t steps : all_steps) {
    for (const double factor : kEpsilonFactors) {
      progress(done++, all_steps.size() * kEpsilonFactors.size());
      const double epsilon = budget.epsilon.value() * factor;
      const bool known = steps == question.steps && factor == 1;
      const auto choice = known ? std::make_optional(plan.sampled)
                                : ChooseBands(QuestionOf(budget, steps, epsilon));
      if (!choice) continue;
      plan.cells.push_back({.epochs = static_cast<double>(steps) * budget.rate.value(),
                            .steps = steps,
                            .epsilon = epsilon,
                            .bands = choice->best.bands,
                            .ratio = choice->Ratio()});
    }
  }
  progress(done, done);
  return plan;
}

}  // namespace

Participation NoisePlanQuestion::Pattern() const {
  Participation pattern{.steps = steps, .separation = std::max<std::int64_t>(steps, 1), .count = 1};
  if (separation) {
    pattern.separation = *separation;
  } else if (budget && budget->rate.value() > 0) {
    const double epoch = std::floor(1 / budget->rate.value() * (1 + 1e-12));
    pattern.separation =
        static_cast<std::int64_t>(std::min(epoch, static_cast<double>(kMaxCorrelatedSteps)));
  } else if (participations && *participations > 0) {
    pattern.separation = std::max<std::int64_t>(steps / *participations, 1);
  }
  if (participations) pattern.count = *participations;
  if (!participations && (separation || budget)) {
    pattern.count = std::numeric_limits<std::int64_t>::max();
    pattern.Check();
    pattern.count = pattern.Fitting();
  }
  pattern.Check();
  return pattern;
}

std::vector<double> NoisePlan::Coefficients() const {
  if (!strategy->IsToeplitz()) return {};
  std::vector<double> column = strategy->Coefficients(strategy->participation().steps);
  column.resize(std::min(column.size(), static_cast<std::size_t>(strategy->Bands())));
  return column;
}

NoisePlan PlanNoise(const NoisePlanQuestion& question,
                    const std::function<void(std::uint64_t, std::uint64_t)>& progress) {
  const Participation pattern = question.Pattern();
  if (question.budget && !(question.budget->rate.value() > 0)) {
    throw Error("the sampling rate is 0; nobody would take part.");
  }
  NoisePlan plan;
  plan.strategy = question.strategy == "auto"
                      ? ChooseUnsampled(pattern)
                      : MakeStrategy(question.strategy, pattern, question.objective);
  plan.rmse = plan.strategy->Rmse();
  plan.max_error = plan.strategy->MaxError();
  plan.sensitivity = plan.strategy->Sensitivity();
  plan.independent_rmse = MakeStrategy("none", pattern)->Rmse();
  if (question.budget) plan.budget = PlanBudget(question, *plan.strategy, progress);
  return plan;
}

}  // namespace sordino
