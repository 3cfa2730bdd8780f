// Noise that is lowered as a run goes, when private measurements on held-out records show little
// progress.
//
// Before its first step a trainer holds records out of training, each by a secret coin of its own.
// Every few steps it counts the held-out records that the model is right about, adds Gaussian
// noise, and compares: where the noised count does not exceed the best one so far by a declared
// gain, the noise of the following steps is multiplied by a factor below 1. A step then costs more
// of the budget, by one over the square of the factor, as in the adaptive budgets of Lee and Kifer
// (arXiv 1808.09501); they raise the budget where no private step lowers the objective.
//
// Privacy. The coins do not depend on the data, so neighbours (one record more or less) can be
// compared with equal coins for all other records, and differ by that record in one of the parts.
// The count changes by at most 1 (gradients/example_count.h), so a measurement is gaussian(s) for
// noise of standard deviation s, and a step is what it always is. Both are charged for every
// record, although no record is in both parts: coins may then be drawn anew when a run is resumed.
//
// The noise of a step depends on what was released before, and so does the number of steps: no
// theorem for steps that are fixed in advance applies. A filter decides instead
// (accounting/filter.h): what was charged never exceeds a budget that was fixed before, so the run
// is (epsilon, delta)-DP for the epsilon of that budget, whatever it chose and wherever it stopped.
#ifndef SORDINO_TRAINING_ADAPTIVE_NOISE_H_
#define SORDINO_TRAINING_ADAPTIVE_NOISE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "sordino/accounting/filter.h"
#include "sordino/base/quantity.h"
#include "sordino/noise/noise_process.h"
#include "sordino/training/privacy_plan.h"

namespace sordino {

// The part of delta that is kept back for failures, as a ledger does (ledger/budget_filter.h).
inline constexpr double kAdaptiveFailureShare = 0x1p-8;

// The filter of a run with this plan, whose noise is that of the first step: Gaussian for full
// batches, where it loses nothing, else Renyi at the order at which the most of its steps fit.
PrivacyFilter FilterOf(const PrivacyPlan& plan, Epsilon epsilon);

// The plan that begins with this noise, in which all measurements together take `share` of the
// filter's budget; options.held_out has its count noise replaced.
PrivacyPlan AdaptivePlan(const PlanOptions& options, double share, Epsilon epsilon, Delta delta,
                         NoiseMultiplier noise);
// The one with the least noise of which the filter admits all steps, as long as the noise is not
// lowered; nullopt where there is none.
std::optional<PrivacyPlan> AdaptivePlanForBudget(const PlanOptions& options, double share,
                                                 Epsilon epsilon, Delta delta);

struct NoiseRule {
  double factor = 0.7;  // of the noise, in (0, 1)
  double gain = 0;      // records by which a count must exceed the best one; at least 0
};

struct HeldOutMeasurement {
  std::int64_t step = 0;  // steps made before it
  double count = 0;       // noised: of held-out records that the model is right about
  double noise = 0;       // the multiplier of the steps after it
};

// Independent noise whose multiplier follows the counts.
class AdaptiveNoise : public NoiseProcess {
 public:
  // The source lives longer.
  AdaptiveNoise(const NoiseRule& rule, const PrivacyPlan& plan, RandomSource& source);

  // A noised count; they come in their order. The noise is not lowered where `admits`, if there is
  // one, says no to the lower one: the budget has no place for it.
  void Observe(double count, const std::function<bool(NoiseMultiplier)>& admits = {});
  NoiseMultiplier noise() const;  // of the next step
  const std::vector<HeldOutMeasurement>& measurements() const { return measurements_; }
  // The measurements. Those that are restored were made in another run of the same plan and rule;
  // throws Error for numbers that none has.
  NamedTensors Save() const override;
  void Restore(SavedTensors& saved, std::int64_t steps_done) override;

 private:
  NoiseRule rule_;
  std::int64_t every_;
  std::int64_t steps_;
  double first_noise_;
  std::vector<HeldOutMeasurement> measurements_;
};

}  // namespace sordino

#endif  // SORDINO_TRAINING_ADAPTIVE_NOISE_H_
