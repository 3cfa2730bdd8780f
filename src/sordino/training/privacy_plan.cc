#include "sordino/training/privacy_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "sordino/accounting/calibration.h"
#include "sordino/accounting/failures.h"
#include "sordino/base/check.h"
#include "sordino/base/error.h"
#include "sordino/noise/noise_process.h"
#include "sordino/training/internal/plan_checks.h"

namespace sordino {
namespace {

constexpr double kMaxParameters = 0x1p36;

}  // namespace

PrivacyPlan::PrivacyPlan(const PlanOptions& options, NoiseMultiplier noise, Delta delta)
    : options_(internal::Checked(options)),
      sampling_(internal::SamplingOf(options_)),
      sampler_(&Samplers().Find(options_.sampling.name)),
      noise_kind_(&Noises().Find(options_.noise.name)),
      clipping_(&ClippingPolicies().Find(options_.clipping.name)),
      norms_(&NormMethods().Find(options_.norms.name)),
      noise_(noise),
      delta_(delta) {
  // Refused here rather than at a step, when records were touched.
  static_cast<void>(GradientNoise(LargestNoiseStep(), 1));
}

PlanOptions PrivacyPlan::Chosen(PlanOptions options, sordino::Epsilon epsilon, Delta delta) {
  const NoiseComponent& noise = Noises().Checked(options.noise);
  if (!noise.IsOpen(options.noise.options)) return options;
  // What it chooses for does not depend on the choice.
  PlanOptions plain = options;
  plain.noise.options = {};
  plain = internal::Checked(plain);
  const SamplingPlan sampling = internal::SamplingOf(plain);
  options.noise.options =
      noise.Chosen(options.noise.options, {.sampler = Samplers().Find(plain.sampling.name),
                                           .sampling = sampling,
                                           .epsilon = epsilon,
                                           .delta = delta});
  return options;
}

std::optional<PrivacyPlan> PrivacyPlan::ForBudget(const PlanOptions& options,
                                                  sordino::Epsilon epsilon, Delta delta,
                                                  const ReleaseOfRuns& released) {
  const PlanOptions checked = internal::Checked(Chosen(options, epsilon, delta));
  if (checked.held_out) {
    throw Error(
        "noise that follows measurements on held-out records has no plan that is fixed in advance; "
        "use another noise schedule here.");
  }
  PlanOptions without_counts = checked;
  without_counts.clipping = "flat";
  const auto event_of = [&](NoiseMultiplier noise) {
    return released.EventOf(PrivacyPlan(without_counts, noise, delta).event());
  };
  const double failure = released.Failure(
      PrivacyPlan(without_counts, NoiseMultiplier(1), delta).Failure(checked.steps));
  for (const double share : kFailureShares) {
    const double paid = delta.value() * share;
    sordino::Epsilon target = epsilon;
    if (!FailuresArePaid(failure, target, paid)) {
      if (share != kFailureShares.back()) continue;
      target = LargestPaidEpsilon(failure, paid);
      if (target.value() < kLargeEpsilon) return std::nullopt;
    }
    const std::optional<NoiseCalibration> found =
        CalibrateNoise(event_of, target, DeltaForEvents(delta, share));
    if (!found.has_value()) return std::nullopt;
    return PrivacyPlan(checked, found->noise, delta);
  }
  return std::nullopt;
}

PrivacyPlan PrivacyPlan::WithNoise(NoiseMultiplier noise) const {
  PrivacyPlan changed = *this;
  changed.noise_ = noise;
  return changed;
}

bool PrivacyPlan::MeasuresAfter(std::int64_t step) const {
  return options_.held_out && (step + 1) % options_.held_out->every == 0 &&
         step + 1 < options_.steps;
}

std::int64_t PrivacyPlan::Measurements(std::int64_t steps) const {
  if (!options_.held_out) return 0;
  return std::min(steps, options_.steps - 1) / options_.held_out->every;
}

Event PrivacyPlan::MeasurementEvent() const {
  return Event::Gaussian(options_.held_out->count_noise, options_.adjacency);
}

Event PrivacyPlan::StepEvent(std::int64_t step) const {
  if (!MeasuresAfter(step)) return GradientEvent(step);
  return Event::Compose({GradientEvent(step), MeasurementEvent()}, options_.adjacency);
}

bool PrivacyPlan::BeginsCharge(std::int64_t step, std::int64_t first) const {
  return step == first || step % StepsPerEvent() == 0;
}

Event PrivacyPlan::ChargeOf(std::int64_t step, std::int64_t first) const {
  return BeginsCharge(step, first) ? StepEvent(step) : Event::None(options_.adjacency);
}

NoiseTerms PrivacyPlan::Terms() const {
  return {.sampler = *sampler_,
          .sampling = sampling_,
          .options = options_.noise.options,
          .multiplier = [this](std::int64_t step) { return StepNoise(step); }};
}

Event PrivacyPlan::GradientEvent(std::int64_t step) const {
  return noise_kind_->EventOf(Terms(), step, step + 1);
}

Event PrivacyPlan::EventOf(std::int64_t steps) const { return EventOf(0, steps); }

Event PrivacyPlan::EventOf(std::int64_t first, std::int64_t last) const {
  SORDINO_CHECK(0 <= first && first <= last && last <= options_.steps,
                "more steps than the plan has");
  if (first == last) return Event::None(options_.adjacency);
  Event steps = noise_kind_->EventOf(Terms(), first, last);
  const auto measured = static_cast<std::uint64_t>(Measurements(last) - Measurements(first));
  if (measured == 0) return steps;
  return Event::Compose({{std::move(steps), 1}, {MeasurementEvent(), measured}},
                        options_.adjacency);
}

std::int64_t PrivacyPlan::StepsPerEvent() const { return noise_kind_->StepsPerEvent(Terms()); }

NoiseMemory PrivacyPlan::Memory() const { return noise_kind_->Memory(Terms()); }

std::unique_ptr<NoiseProcess> PrivacyPlan::StartNoise(RandomSource& source) const {
  return noise_kind_->Start(Terms(), source);
}

double PrivacyPlan::Failure(std::int64_t steps) const {
  if (steps == 0) return 0;
  const std::int64_t events = (steps - 1) / StepsPerEvent() + 1;
  const auto whole = static_cast<double>(events * StepsPerEvent());
  const auto rows = static_cast<double>(std::max<std::int64_t>(1, options_.rows_per_user));
  const auto measured = static_cast<double>(Measurements(steps));
  return whole * sampler_->OverflowProbability() +
         noise_kind_->Distance(whole * kMaxParameters + measured) +
         norms_->Failure(whole, rows, kMaxParameters, options_.norms.options);
}

Interval PrivacyPlan::Epsilon(std::int64_t steps) const {
  if (steps == 0) return {0, 0};
  return SpentEpsilon(EventOf(steps), delta_, Failure(steps));
}

NoiseMultiplier PrivacyPlan::StepNoise(std::int64_t step) const {
  return NoiseMultiplier(noise_.value() * options_.noise_schedule.Factor(step, options_.steps));
}

std::int64_t PrivacyPlan::LargestNoiseStep() const {
  std::int64_t largest = 0;
  if (options_.noise_schedule.IsConstant()) return largest;
  for (std::int64_t step = 1; step < options_.steps; ++step) {
    if (StepNoise(step).value() > StepNoise(largest).value()) largest = step;
  }
  return largest;
}

NoiseMultiplier PrivacyPlan::GradientNoise(std::int64_t step, std::int64_t groups) const {
  return clipping_->GradientNoise(StepNoise(step), internal::ClippingTermsOf(options_),
                                  options_.clipping.options, groups);
}

std::unique_ptr<ClippingState> PrivacyPlan::StartClipping(
    const std::vector<NamedParameter>& parameters) const {
  auto state =
      clipping_->Start(internal::ClippingTermsOf(options_), options_.clipping.options, parameters);
  // With the groups of these parameters, before anything is charged.
  static_cast<void>(state->GradientNoise(StepNoise(LargestNoiseStep())));
  return state;
}

std::unique_ptr<ClippingState> PrivacyPlan::StartClippingWithoutNoise(
    const std::vector<NamedParameter>& parameters) const {
  auto state =
      clipping_->Start(internal::ClippingTermsOf(options_), options_.clipping.options, parameters);
  if (state->ReadsNoised()) {
    throw Error(
        fmt::format("the clipping '{}' learns from noised values, and a run without noise has "
                    "none; use another, such as flat or layerwise.",
                    clipping_->name()));
  }
  return state;
}

std::unique_ptr<StepClipper> PrivacyPlan::StartSums(std::vector<NamedParameter> parameters,
                                                    const GradientOptions& gradients) const {
  GradientOptions own = gradients;
  if (own.recorded_batch == 0) own.recorded_batch = RecordedBatch();
  return norms_->Start(std::move(parameters), own, Sum(), options_.norms.options);
}

// Poisson batches of more than three standard deviations above their mean take two parts.
std::int64_t PrivacyPlan::RecordedBatch() const {
  if (sampler_->OverflowProbability() == 0) return 0;  // all have one size
  constexpr double kDeviations = 3;
  constexpr std::int64_t kMultiple = 8;
  const double size = options_.batch + kDeviations * std::sqrt(options_.batch);
  const std::int64_t multiple = kMultiple * options_.micro_batch;
  return (static_cast<std::int64_t>(std::ceil(size)) / multiple + 1) * multiple;
}

std::unique_ptr<StepChunks> PrivacyPlan::StartChunks(const std::vector<NamedParameter>& parameters,
                                                     const GradientOptions& gradients) const {
  return norms_->StartChunks(parameters, gradients, Sum(), options_.norms.options);
}

double PrivacyPlan::UnitShare() const { return sampler_->UnitShare(sampling_); }

SamplingRate PrivacyPlan::StepRate(std::int64_t step) const {
  return sampler_->Rate(sampling_, step);
}

ClipNorm PrivacyPlan::StepClip(std::int64_t step) const {
  return ClipNorm(options_.clip.value() * options_.clip_schedule.Factor(step, options_.steps));
}

ClipNorm PrivacyPlan::SmallestClip() const {
  double smallest = StepClip(0).value();
  if (options_.clip_schedule.IsConstant()) return ClipNorm(smallest);
  for (std::int64_t step = 1; step < options_.steps; ++step) {
    smallest = std::min(smallest, StepClip(step).value());
  }
  return ClipNorm(smallest);
}

double PrivacyPlan::Divisor(std::int64_t step) const {
  const double trained = options_.held_out ? 1 - options_.held_out->share : 1;
  return options_.batch * trained * options_.rate_schedule.Factor(step, options_.steps) /
         static_cast<double>(options_.micro_batch);
}

std::int64_t PrivacyPlan::LargestBatch() const { return sampler_->MaxBatch(sampling_); }

SumOptions PrivacyPlan::Sum() const {
  SumOptions sum;
  sum.adjacency = options_.adjacency;
  sum.micro_batch = options_.micro_batch;
  sum.largest_batch = LargestBatch();
  return sum;
}

std::string PrivacyPlan::Description() const {
  return DescriptionWith(fmt::format("{} noise of multiplier {:.6g}",
                                     noise_kind_->Description(options_.noise.options),
                                     noise_.value()));
}

std::string PrivacyPlan::DescriptionWithoutNoise() const { return DescriptionWith("no noise"); }

std::string PrivacyPlan::DescriptionWith(const std::string& noise) const {
  std::string text = sampler_->Description(sampling_);
  text += ", " + clipping_->Description(internal::ClippingTermsOf(options_));
  const std::string norms = norms_->Description(options_.norms.options);
  if (!norms.empty()) text += ", " + norms;
  text += fmt::format(", {}, {} step{}", noise, options_.steps, options_.steps == 1 ? "" : "s");
  const auto scheduled = [&](std::string_view what, const Schedule& schedule) {
    if (!schedule.IsConstant()) text += fmt::format(", {} by {}", what, schedule.ToString());
  };
  scheduled("noise", options_.noise_schedule);
  scheduled("clipping norm", options_.clip_schedule);
  scheduled("sampling rate", options_.rate_schedule);
  if (options_.held_out) {
    const HeldOutPlan& held_out = *options_.held_out;
    text += fmt::format(
        "; a share of {:g} of the records is held out, and every {} steps a count of them is "
        "released with noise of standard deviation {:.6g}",
        held_out.share, held_out.every, held_out.count_noise.value());
  }
  if (options_.micro_batch > 1) {
    text += fmt::format(", micro-batches of {}", options_.micro_batch);
  }
  return text;
}

}  // namespace sordino
