#include "sordino/training/privacy_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include "sordino/accounting/calibration.h"
#include "sordino/accounting/failures.h"
#include "sordino/base/check.h"
#include "sordino/base/error.h"
#include "sordino/base/known_name.h"
#include "sordino/gradients/adaptive_clipping.h"
#include "sordino/random/bernoulli.h"
#include "sordino/training/plan_checks.h"

namespace sordino {
namespace {

constexpr std::array<std::string_view, 5> kClippingNames = {"flat", "layerwise", "global",
                                                            "automatic", "adaptive"};

constexpr double kOverflowProbability = 0x1p-80;  // of one Poisson batch
constexpr double kMostParameters = 0x1p36;

// The least m with P[Binomial(n, q) > m] <= 2^-80 for every n q = mean, by Chernoff's bound
// exp(-mean h(m / mean - 1)), h(u) = (1 + u) log(1 + u) - u.
std::int64_t PoissonQuantile(double mean) {
  const double wanted = -std::log(kOverflowProbability);
  const auto exponent = [&](double m) { return m * std::log(m / mean) - m + mean; };
  double low = mean;
  double high = mean + 1;
  while (exponent(high) < wanted) high += high - low;
  while (high - low > 0.5) {
    const double middle = (low + high) / 2;
    (exponent(middle) < wanted ? low : high) = middle;
  }
  return static_cast<std::int64_t>(std::ceil(high));
}

Event UserEvent(const PlanOptions& options, NoiseMultiplier noise, SamplingRate rate) {
  const auto k = static_cast<double>(options.rows_per_user);
  if (options.sampling == SamplingKind::kFullBatch) {
    return Event::Gaussian(NoiseMultiplier(noise.value() / k), options.adjacency);
  }
  // P[i of the k rows are drawn]; what is left after rounding goes to i = 0, the least shift, after
  // the others were rounded up.
  std::vector<std::pair<double, double>> parts;
  const double q = rate.value();
  double drawn = 0;
  for (std::int64_t i = 1; i <= options.rows_per_user; ++i) {
    const auto count = static_cast<double>(i);
    const double log_choose =
        std::lgamma(k + 1) - std::lgamma(count + 1) - std::lgamma(k - count + 1);
    const double log_rest = i == options.rows_per_user ? 0 : (k - count) * std::log1p(-q);
    const double probability =
        std::min(1 - drawn, std::exp(log_choose + count * std::log(q) + log_rest) * (1 + 1e-12));
    if (probability <= 0) continue;
    parts.emplace_back(count, probability);
    drawn += probability;
  }
  if (drawn < 1) parts.emplace_back(0, 1 - drawn);
  return Event::MixtureGaussian(noise, parts, options.adjacency);
}

// Everything that is not the event itself, over all steps.
double FailureProbability(const PlanOptions& options, double steps) {
  if (steps == 0) return 0;
  const bool size_is_random =
      options.sampling == SamplingKind::kPoisson || options.sampling == SamplingKind::kAllocation;
  const double overflow = size_is_random ? steps * kOverflowProbability : 0;
  // Discrete Laplace noise is exact.
  if (options.noise == NoiseKind::kLaplace) return overflow;
  return overflow + NoiseDistance(steps * kMostParameters);
}

}  // namespace

std::string_view ClippingName(ClippingKind kind) {
  return kClippingNames[static_cast<std::size_t>(kind)];
}

ClippingKind ParseClipping(std::string_view name) {
  return static_cast<ClippingKind>(IndexOfName("the clipping", name, kClippingNames));
}

PrivacyPlan::PrivacyPlan(const PlanOptions& options, NoiseMultiplier noise, Delta delta)
    : options_(internal::Checked(options)), noise_(noise), delta_(delta) {
  if (options_.clipping == ClippingKind::kAdaptive) {
    // Refused here rather than at the first step, when records were touched.
    for (const std::int64_t step : {std::int64_t{0}, options_.steps - 1}) {
      static_cast<void>(GradientNoise(step, 1));
    }
  }
}

std::optional<PrivacyPlan> PrivacyPlan::ForBudget(const PlanOptions& options,
                                                  sordino::Epsilon epsilon, Delta delta) {
  const PlanOptions checked = internal::Checked(options);
  PlanOptions without_counts = checked;
  without_counts.clipping = ClippingKind::kFlat;
  without_counts.clip_threshold = 0;
  const auto event_of = [&](NoiseMultiplier noise) {
    return PrivacyPlan(without_counts, noise, delta).event();
  };
  for (const double share : kFailureShares) {
    const double failure =
        PrivacyPlan(without_counts, NoiseMultiplier(1), delta).Failure(checked.steps);
    if (!FailuresArePaid(failure, epsilon, delta.value() * share)) continue;
    const std::optional<NoiseCalibration> found =
        CalibrateNoise(event_of, epsilon, DeltaForEvents(delta, share));
    if (!found.has_value()) return std::nullopt;
    return PrivacyPlan(checked, found->noise, delta);
  }
  return std::nullopt;
}

Event PrivacyPlan::StepEvent(std::int64_t step) const {
  const NoiseMultiplier noise = StepNoise(step);
  if (options_.rows_per_user > 1) {
    return UserEvent(
        options_, noise,
        options_.sampling == SamplingKind::kPoisson ? StepRate(step) : SamplingRate(1));
  }
  const Event release =
      options_.noise == NoiseKind::kGaussian
          ? Event::Gaussian(noise, options_.adjacency)
          : Event::Pure(sordino::Epsilon((1 / noise.value()) * (1 + 0x1p-50)), options_.adjacency);
  switch (options_.sampling) {
    case SamplingKind::kPoisson:
      return Event::Poisson(StepRate(step), release);
    case SamplingKind::kFixedSize:
      return Event::Fixed(StepRate(step), release);
    case SamplingKind::kAllocation:
      return Event::Allocation(static_cast<std::uint64_t>(StepsPerEvent()), release);
    case SamplingKind::kFullBatch:
      break;
  }
  return release;
}

Event PrivacyPlan::EventOf(std::int64_t steps) const { return EventOf(0, steps); }

Event PrivacyPlan::EventOf(std::int64_t first, std::int64_t last) const {
  SORDINO_CHECK(0 <= first && first <= last && last <= options_.steps,
                "more steps than the plan has");
  if (first == last) return Event::None(options_.adjacency);
  if (options_.sampling == SamplingKind::kAllocation) {
    const std::int64_t epochs = (last - 1) / StepsPerEvent() - first / StepsPerEvent() + 1;
    return Event::Repeat(StepEvent(0), static_cast<std::uint64_t>(epochs));
  }
  if (options_.noise_schedule.IsConstant() && options_.rate_schedule.IsConstant()) {
    return Event::Repeat(StepEvent(0), static_cast<std::uint64_t>(last - first));
  }
  // Steps of equal noise and rate are one group, so that long schedules stay small.
  std::map<std::pair<double, double>, std::pair<std::int64_t, std::uint64_t>> groups;
  for (std::int64_t step = first; step < last; ++step) {
    const double rate = options_.sampling == SamplingKind::kFullBatch ? 1 : StepRate(step).value();
    ++groups.try_emplace({StepNoise(step).value(), rate}, step, 0).first->second.second;
  }
  std::vector<std::pair<Event, std::uint64_t>> events;
  for (const auto& [key, group] : groups) {
    events.emplace_back(StepEvent(group.first), group.second);
  }
  return Event::Compose(std::move(events), options_.adjacency);
}

std::int64_t PrivacyPlan::StepsPerEvent() const {
  return options_.sampling == SamplingKind::kAllocation ? AllocationBatches(*options_.rate) : 1;
}

double PrivacyPlan::Failure(std::int64_t steps) const {
  const std::int64_t whole = (steps + StepsPerEvent() - 1) / StepsPerEvent() * StepsPerEvent();
  return FailureProbability(options_, static_cast<double>(whole));
}

Interval PrivacyPlan::Epsilon(std::int64_t steps) const {
  if (steps == 0) return {0, 0};
  return SpentEpsilon(EventOf(steps), delta_, Failure(steps));
}

NoiseMultiplier PrivacyPlan::StepNoise(std::int64_t step) const {
  return NoiseMultiplier(noise_.value() * options_.noise_schedule.Factor(step, options_.steps));
}

NoiseMultiplier PrivacyPlan::GradientNoise(std::int64_t step, std::int64_t groups) const {
  const NoiseMultiplier total = StepNoise(step);
  if (options_.clipping != ClippingKind::kAdaptive) return total;
  // One record adds 1/2 to the count of each group (adaptive_clipping.h); neighbours differ twice
  // as much under replace-one, of which the unit of a Poisson event is half.
  const bool twice = options_.adjacency == Adjacency::kReplaceOne;
  const double unit = std::sqrt(static_cast<double>(groups)) / 2 * (twice ? 2 : 1) * UnitShare();
  return GradientNoiseMultiplier(total, L2Sensitivity(unit), options_.count_noise);
}

double PrivacyPlan::UnitShare() const {
  // A pure event is that of the whole step under its adjacency, so Laplace noise counts in the
  // distance of neighbours.
  const bool counts_in_clips = options_.noise == NoiseKind::kGaussian;
  return counts_in_clips && options_.sampling == SamplingKind::kPoisson &&
                 options_.adjacency == Adjacency::kReplaceOne
             ? 0.5
             : 1;
}

SamplingRate PrivacyPlan::StepRate(std::int64_t step) const {
  switch (options_.sampling) {
    case SamplingKind::kPoisson: {
      const double factor = options_.rate_schedule.Factor(step, options_.steps);
      const double rate = options_.rate->value() * factor;
      if (rate > 1) {
        throw Error(
            fmt::format("the sampling rate {} times its schedule is {} at step {}; it must be at "
                        "most 1.",
                        options_.rate->value(), rate, step));
      }
      return EffectiveRate(SamplingRate(rate));
    }
    case SamplingKind::kFixedSize:
      return SamplingRate(options_.batch / static_cast<double>(options_.records));
    case SamplingKind::kAllocation:
      return *options_.rate;
    case SamplingKind::kFullBatch:
      break;
  }
  return SamplingRate(1);
}

ClipNorm PrivacyPlan::StepClip(std::int64_t step) const {
  return ClipNorm(options_.clip.value() * options_.clip_schedule.Factor(step, options_.steps));
}

double PrivacyPlan::Divisor(std::int64_t step) const {
  return options_.batch * options_.rate_schedule.Factor(step, options_.steps);
}

std::int64_t PrivacyPlan::LargestBatch() const {
  switch (options_.sampling) {
    case SamplingKind::kAllocation:  // of one batch: as Poisson sampling at a rate of 1 / t
    case SamplingKind::kPoisson: {
      double factor = 1;
      if (!options_.rate_schedule.IsConstant()) {
        for (std::int64_t step = 0; step < options_.steps; ++step) {
          factor = std::max(factor, options_.rate_schedule.Factor(step, options_.steps));
        }
      }
      const auto records = static_cast<double>(MostRecords());
      const double mean = std::min(1.0, options_.rate->value() * factor) * records;
      return std::min(MostRecords(), PoissonQuantile(mean));
    }
    case SamplingKind::kFixedSize:
      return static_cast<std::int64_t>(options_.batch);
    case SamplingKind::kFullBatch:
      break;
  }
  return options_.records;
}

SumOptions PrivacyPlan::Sum() const {
  SumOptions sum;
  sum.adjacency = options_.adjacency;
  sum.micro_batch = options_.micro_batch;
  sum.largest_batch = LargestBatch();
  // The result of a sum is rounded four times to float32, which may add 8 B 2^-24 for a batch of B;
  // half as much again is left to everything else.
  sum.rounding = std::max(sum.rounding, 12 * 0x1p-24 * static_cast<double>(sum.largest_batch));
  return sum;
}

std::int64_t PrivacyPlan::MostRecords() const {
  if (options_.records > 0) return options_.records;
  return static_cast<std::int64_t>(std::ceil(2 * options_.batch / options_.rate->value()));
}

std::string PrivacyPlan::Description() const {
  std::string text;
  switch (options_.sampling) {
    case SamplingKind::kPoisson:
      text = fmt::format("Poisson sampling at rate {:.6g} (expected batch {:.6g})",
                         options_.rate->value(), options_.batch);
      break;
    case SamplingKind::kFixedSize:
      text = fmt::format("batches of {:.0f} of {} records without replacement", options_.batch,
                         options_.records);
      break;
    case SamplingKind::kAllocation:
      text = fmt::format(
          "random allocation of each record to one of {} batches an epoch (expected batch {:.6g})",
          StepsPerEvent(), options_.batch);
      break;
    case SamplingKind::kFullBatch:
      text = fmt::format("full batches of {} records", options_.records);
      break;
  }
  text += fmt::format(", {} clipping at {:.6g}", ClippingName(options_.clipping),
                      options_.clip.value());
  text +=
      fmt::format(", {} noise of multiplier {:.6g}", NoiseKindName(options_.noise), noise_.value());
  text += fmt::format(", {} step{}", options_.steps, options_.steps == 1 ? "" : "s");
  const auto scheduled = [&](std::string_view what, const Schedule& schedule) {
    if (!schedule.IsConstant()) text += fmt::format(", {} by {}", what, schedule.ToString());
  };
  scheduled("noise", options_.noise_schedule);
  scheduled("clipping norm", options_.clip_schedule);
  scheduled("sampling rate", options_.rate_schedule);
  if (options_.micro_batch > 1) {
    text += fmt::format(", micro-batches of {}", options_.micro_batch);
  }
  return text;
}

}  // namespace sordino
