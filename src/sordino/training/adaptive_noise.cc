#include "sordino/training/adaptive_noise.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>

#include "sordino/accounting/failures.h"
#include "sordino/accounting/gdp.h"
#include "sordino/base/error.h"
#include "sordino/gradients/saved_tensors.h"

namespace sordino {
namespace {

constexpr double kLeastNoise = 1e-3;
constexpr double kMostNoise = 1e7;
constexpr double kNoiseTolerance = 1e-7;
// What rounding may add to the sum of all measurements.
constexpr double kRoundingMargin = 1e-9;
constexpr const char* kHeldOutCounts = "held_out.counts";
constexpr const char* kHeldOutNoises = "held_out.noises";

bool IsGaussian(const Event& step) {
  const GdpResult gdp = GdpOf(step);
  return gdp.sound && gdp.reason.empty() && std::isfinite(gdp.mu);
}

// A Gaussian of standard deviation s costs 1 / s^2 of a Gaussian filter and order / (2 s^2) of a
// Renyi filter.
NoiseMultiplier CountNoise(const PrivacyFilter& filter, double share, std::int64_t measurements) {
  const double unit = filter.kind() == PrivacyFilter::Kind::kGaussian ? 1 : filter.order() / 2;
  const double each = share * filter.Budget() / static_cast<double>(measurements);
  return NoiseMultiplier(std::sqrt(unit / each) * (1 + kRoundingMargin));
}

}  // namespace

PrivacyFilter FilterOf(const PrivacyPlan& plan, Epsilon epsilon) {
  const Delta delta = DeltaForEvents(plan.delta(), kAdaptiveFailureShare);
  const Event step = plan.GradientEvent(0);
  return IsGaussian(step) ? PrivacyFilter::Gaussian(epsilon, delta)
                          : PrivacyFilter::Renyi(epsilon, delta, step);
}

PrivacyPlan AdaptivePlan(const PlanOptions& options, double share, Epsilon epsilon, Delta delta,
                         NoiseMultiplier noise) {
  CheckRange("--validation-budget", share, 0, true, 1, true);
  const PrivacyPlan any_counts(options, noise, delta);  // checks the options
  PlanOptions complete = options;
  complete.held_out->count_noise =
      CountNoise(FilterOf(any_counts, epsilon), share, any_counts.Measurements(any_counts.steps()));
  return {complete, noise, delta};
}

std::optional<PrivacyPlan> AdaptivePlanForBudget(const PlanOptions& options, double share,
                                                 Epsilon epsilon, Delta delta) {
  const auto plan_of = [&](double noise) {
    return AdaptivePlan(options, share, epsilon, delta, NoiseMultiplier(noise));
  };
  const auto fits = [&](double noise) {
    const PrivacyPlan plan = plan_of(noise);
    return FilterOf(plan, epsilon).Admits(plan.event());
  };
  const double failure = plan_of(1).Failure(options.steps);
  if (!FailuresArePaid(failure, epsilon, delta.value() * kAdaptiveFailureShare)) {
    return std::nullopt;
  }
  double high = 1;
  while (!fits(high)) {
    high *= 2;
    if (high > kMostNoise) return std::nullopt;
  }
  double low = high / 2;
  while (low > kLeastNoise && fits(low)) low /= 2;
  while (high - low > kNoiseTolerance * high) {
    const double middle = 0.5 * (low + high);
    (fits(middle) ? high : low) = middle;
  }
  // A little above, so that the sum of the steps, one after the other, fits too.
  return plan_of(high * (1 + kNoiseTolerance));
}

AdaptiveNoise::AdaptiveNoise(const NoiseRule& rule, const PrivacyPlan& plan, RandomSource& source)
    : NoiseProcess({}, source),
      rule_(rule),
      every_(plan.options().held_out->every),
      steps_(plan.steps()),
      first_noise_(plan.noise().value()) {
  CheckRange("--noise-factor", rule.factor, 0, true, 1, true);
  CheckRange("the gain of held-out records", rule.gain, 0, false, kInfinity, true);
}

NoiseMultiplier AdaptiveNoise::noise() const {
  return NoiseMultiplier(measurements_.empty() ? first_noise_ : measurements_.back().noise);
}

void AdaptiveNoise::Observe(double count, const std::function<bool(NoiseMultiplier)>& admits) {
  double best = -kInfinity;
  for (const HeldOutMeasurement& one : measurements_) best = std::max(best, one.count);
  const bool progressed = measurements_.empty() || count >= best + rule_.gain;
  const double lower = noise().value() * rule_.factor;
  const bool lowers = !progressed && (!admits || admits(NoiseMultiplier(lower)));
  const auto made = static_cast<std::int64_t>(measurements_.size()) + 1;
  measurements_.push_back(
      {.step = made * every_, .count = count, .noise = lowers ? lower : noise().value()});
}

NamedTensors AdaptiveNoise::Save() const {
  const auto count = static_cast<std::int64_t>(measurements_.size());
  const at::Tensor counts = at::empty({count}, at::kDouble);
  const at::Tensor noises = at::empty({count}, at::kDouble);
  for (std::size_t i = 0; i < measurements_.size(); ++i) {
    counts.mutable_data_ptr<double>()[i] = measurements_[i].count;
    noises.mutable_data_ptr<double>()[i] = measurements_[i].noise;
  }
  return {{kHeldOutCounts, counts}, {kHeldOutNoises, noises}};
}

void AdaptiveNoise::Restore(SavedTensors& saved, std::int64_t steps_done) {
  const std::int64_t made = std::min(steps_done, steps_ - 1) / every_;
  const at::Tensor counts = saved.Take(kHeldOutCounts, {made}, at::kDouble).contiguous();
  const at::Tensor noises = saved.Take(kHeldOutNoises, {made}, at::kDouble).contiguous();
  for (std::int64_t i = 0; i < made; ++i) {
    const double count = counts.const_data_ptr<double>()[i];
    const double now = noises.const_data_ptr<double>()[i];
    const double last = noise().value();
    if (!std::isfinite(count) || (now != last && now != last * rule_.factor)) {
      throw Error(
          "the saved noise is not that of this run; resume with the settings it began with.");
    }
    measurements_.push_back({.step = (i + 1) * every_, .count = count, .noise = now});
  }
}

}  // namespace sordino
