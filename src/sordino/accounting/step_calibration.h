// The noise, the number of steps or the sampling rate of a mechanism that is made step by step
// (step_shape.h) within a budget: the searches of calibration.h, and their ends.
#ifndef SORDINO_ACCOUNTING_STEP_CALIBRATION_H_
#define SORDINO_ACCOUNTING_STEP_CALIBRATION_H_

#include <cstdint>
#include <optional>
#include <string>

#include "sordino/accounting/calibration.h"
#include "sordino/accounting/step_shape.h"
#include "sordino/base/quantity.h"

namespace sordino {

enum class StepUnknown : std::uint8_t { kNoise, kSteps, kRate };

struct StepBudget {
  Epsilon epsilon;
  Delta delta;
};

// What is not asked for is given; the rate only where records are sampled.
struct StepQuestion {
  StepUnknown unknown;
  StepShape shape;
  StepBudget budget;
  std::optional<NoiseMultiplier> noise;
  std::optional<SamplingRate> rate;
  std::optional<std::uint64_t> steps;
  // Only the best of several runs of all steps is released (best_of.h); not where steps are asked
  // for.
  std::optional<std::string> select = {};

  Event EventAt(NoiseMultiplier at_noise, SamplingRate at_rate, std::uint64_t at_steps) const;
  // Where nothing is sampled, every record enters every step.
  SamplingRate RateOrOne() const { return rate.value_or(SamplingRate(1)); }
};

struct StepAnswer {
  double value;     // the noise multiplier, the number of steps or the rate
  bool at_the_end;  // the search ended before the budget did
  Interval epsilon;
  std::optional<Event> event;  // nothing where no noise is needed
};

// An upper bound on the probability that one record takes part in any of the steps.
double TakesPart(const StepQuestion& question);
// Where the record is in no batch, neighbouring datasets release the same, so what is released
// differs with a probability of at most TakesPart, whatever the noise: any noise, and none, is
// (0, delta)-DP for a delta from there on.
bool AnyNoiseMeets(const StepQuestion& question);

// The least noise for so many steps.
std::optional<NoiseCalibration> LeastNoise(const StepQuestion& question, std::uint64_t steps);
// nullopt where nothing meets the budget.
std::optional<StepAnswer> SolveStep(const StepQuestion& question);
// The sentence for that.
std::string WhyNothingMeets(const StepQuestion& question);

}  // namespace sordino

#endif  // SORDINO_ACCOUNTING_STEP_CALIBRATION_H_
