#include "sordino/runs/internal/adaptive_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "sordino/base/error.h"

namespace sordino {
namespace {

// Of adaptive noise: a tenth of the records and of the budget, and ten measurements.
constexpr double kDefaultNoiseFactor = 0.7;
constexpr double kDefaultValidationShare = 0.1;
constexpr double kDefaultValidationBudget = 0.1;
constexpr double kDefaultValidationGain = 0.01;
constexpr std::int64_t kDefaultMeasurements = 10;

void CheckAdaptive(const TrainConfig& config, const DatasetDeclaration& declaration) {
  if (!config.privacy.epsilon || config.run.non_private) {
    throw Error(
        "--noise-schedule adaptive ends a run when its budget is spent; give --epsilon, and "
        "neither --noise nor --non-private.");
  }
  if (config.run.canaries > 0) {
    throw Error(
        "--canaries audit steps that are fixed in advance, and --noise-schedule adaptive has none; "
        "leave one of them out.");
  }
  if (declaration.target) {
    throw Error(fmt::format(
        "--noise-schedule adaptive counts right predictions, and '{}' is a number without classes; "
        "give another schedule.",
        declaration.target->name));
  }
}

}  // namespace

void internal::CompleteAdaptive(TrainConfig& config, const DatasetDeclaration& declaration) {
  PrivacySettings& privacy = config.privacy;
  if (!config.HasAdaptiveNoise()) {
    const std::pair<bool, std::string_view> given[] = {
        {privacy.noise_factor.has_value(), "--noise-factor"},
        {privacy.validation_share.has_value(), "--validation-share"},
        {privacy.validation_every.has_value(), "--validation-every"},
        {privacy.validation_budget.has_value(), "--validation-budget"},
        {privacy.validation_gain.has_value(), "--validation-gain"}};
    for (const auto& [is_given, flag] : given) {
      if (is_given) {
        throw Error(
            fmt::format("{} is for --noise-schedule adaptive; add that, or leave it out.", flag));
      }
    }
    if (privacy.noise_schedule.ends_with(",adaptive")) {
      throw Error(
          "adaptive noise has no warm-up, because it only falls; give --noise-schedule adaptive "
          "alone.");
    }
    return;
  }
  CheckAdaptive(config, declaration);
  privacy.noise_factor = privacy.noise_factor.value_or(kDefaultNoiseFactor);
  privacy.validation_share = privacy.validation_share.value_or(kDefaultValidationShare);
  privacy.validation_budget = privacy.validation_budget.value_or(kDefaultValidationBudget);
  privacy.validation_gain = privacy.validation_gain.value_or(kDefaultValidationGain);
  const std::int64_t steps = *config.training.steps;
  privacy.validation_every =
      privacy.validation_every.value_or(std::max<std::int64_t>(1, steps / kDefaultMeasurements));
  CheckRange("--noise-factor", *privacy.noise_factor, 0, true, 1, true);
  CheckRange("--validation-share", *privacy.validation_share, 0, true, 1, true);
  CheckRange("--validation-budget", *privacy.validation_budget, 0, true, 1, true);
  CheckRange("--validation-gain", *privacy.validation_gain, 0, false, 1, false);
  CheckRange("--validation-every", static_cast<double>(*privacy.validation_every), 1, false,
             static_cast<double>(steps), true);
}

NoiseRule NoiseRuleOf(const TrainConfig& config, const PrivacyPlan& plan) {
  // As many as the declared numbers say: the actual number is private.
  const double records = plan.options().records > 0
                             ? static_cast<double>(plan.options().records)
                             : plan.options().batch / plan.StepRate(0).value();
  const PrivacySettings& privacy = config.privacy;
  return {.factor = *privacy.noise_factor,
          .gain = *privacy.validation_gain * *privacy.validation_share * records};
}

}  // namespace sordino
