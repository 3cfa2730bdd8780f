#include "sordino/training/internal/plan_checks.h"

#include <fmt/format.h>

#include <cmath>
#include <string>
#include <string_view>

#include "sordino/base/error.h"

namespace sordino {
namespace {

constexpr std::int64_t kMaxRecords = std::int64_t{1} << 40;
constexpr std::int64_t kMaxRowsPerUser = 1000;
constexpr double kMaxScheduleFactor = 1e9;

void Require(bool condition, const std::string& sentence) {
  if (!condition) throw Error(sentence);
}

// For what is proven for steps that release gaussian(z) of their sums.
bool HasIndependentGaussian(const PlanOptions& o) {
  const NoiseComponent& noise = Noises().Find(o.noise.name);
  return noise.IsGaussian() && noise.IsIndependent(o.noise.options);
}

// A schedule of a privacy quantity must stay positive: the factor of every step is looked at once.
void CheckSchedule(const Schedule& schedule, std::string_view what, std::int64_t steps) {
  schedule.CheckLength(what, steps);
  if (schedule.IsConstant()) return;
  for (std::int64_t step = 0; step < steps; ++step) {
    const double factor = schedule.Factor(step, steps);
    Require(factor > 0, fmt::format("the schedule '{}' of the {} reaches 0 at step {}; it must "
                                    "stay positive, for example linear:0.1.",
                                    schedule.ToString(), what, step));
    Require(factor <= kMaxScheduleFactor,
            fmt::format("the schedule '{}' of the {} multiplies it by {:g} at step {} of {}; it "
                        "may be at most {:g}: give fewer steps, or a schedule that is less steep.",
                        schedule.ToString(), what, factor, step, steps, kMaxScheduleFactor));
  }
}

void CheckNumbers(const PlanOptions& o) {
  Require(
      o.steps >= 1 && o.steps <= kMaxPlanSteps,
      fmt::format("the number of steps is {}; it must be from 1 to {}.", o.steps, kMaxPlanSteps));
  Require(o.records >= 0 && o.records <= kMaxRecords,
          fmt::format("the number of records is {}; it must be from 1 to 2^40.", o.records));
  Require(std::isfinite(o.batch) && o.batch > 0,
          fmt::format("the batch size is {}; it must be positive: give a batch, or a rate and the "
                      "number of records.",
                      o.batch));
  Require(o.rows_per_user >= 0 && o.rows_per_user <= kMaxRowsPerUser,
          fmt::format("rows per user is {}; it must be from 1 to {}.", o.rows_per_user,
                      kMaxRowsPerUser));
  Require(o.micro_batch >= 1,
          fmt::format("the micro-batch is {}; it must be at least 1.", o.micro_batch));
}

void CheckSampling(const PlanOptions& o) {
  const SamplerComponent& sampler = Samplers().Find(o.sampling.name);
  const SamplingPlan sampling = internal::SamplingOf(o);
  sampler.CheckPlan(sampling);
  Noises()
      .Find(o.noise.name)
      .CheckTerms({.sampler = sampler, .sampling = sampling, .options = o.noise.options});
  Require(sampler.HasRateSchedule() || o.rate_schedule.IsConstant(),
          fmt::format("a schedule of the sampling rate needs {} sampling, and the sampling is {}.",
                      SamplersWith(&SamplerComponent::HasRateSchedule), sampler.name()));
}

// The count of held-out records has the sensitivity 1, and every record is held out by a coin of
// its own, so that neighbours differ by one record in one part (adaptive_noise.h).
void CheckHeldOut(const PlanOptions& o) {
  if (!o.held_out) return;
  const HeldOutPlan& held_out = *o.held_out;
  Require(held_out.share > 0 && held_out.share < 1,
          fmt::format("the share of held-out records is {}; it must be above 0 and below 1.",
                      held_out.share));
  Require(held_out.every >= 1 && held_out.every < o.steps,
          fmt::format("held-out records are measured every {} steps, and the run has {}; measure "
                      "after at least 1 and fewer than all steps.",
                      held_out.every, o.steps));
  const SamplerComponent& sampler = Samplers().Find(o.sampling.name);
  Require(o.adjacency == Adjacency::kAddRemove &&
              sampler.StepsPerEvent(internal::SamplingOf(o)) == 1 && o.rows_per_user <= 1 &&
              HasIndependentGaussian(o),
          "measurements on held-out records need Gaussian noise, poisson or full sampling, the "
          "adjacency add-remove and one row per user; use these, or another noise schedule.");
  Require(o.noise_schedule.IsConstant(),
          fmt::format("the noise follows measurements on held-out records and the schedule '{}'; "
                      "give one of them.",
                      o.noise_schedule.ToString()));
}

void CheckCombinations(const PlanOptions& o) {
  const bool gaussian = HasIndependentGaussian(o);
  if (o.rows_per_user > 1) {
    Require(Samplers().Find(o.sampling.name).ProtectsUsers() &&
                o.adjacency != Adjacency::kReplaceOne && gaussian && o.micro_batch == 1,
            fmt::format("a guarantee for users with several rows needs Gaussian noise, {} sampling "
                        "without micro-batches, and the adjacency add-remove or zero-out; use "
                        "these, or one row per user.",
                        SamplersWith(&SamplerComponent::ProtectsUsers)));
  }
  NormMethods().Checked(o.norms).CheckMicroBatch(o.micro_batch);
  ClippingPolicies()
      .Checked(o.clipping)
      .CheckTerms(internal::ClippingTermsOf(o), o.clipping.options);
}

}  // namespace

SamplingPlan internal::SamplingOf(const PlanOptions& options) {
  SamplingPlan plan;
  plan.batch = options.batch;
  plan.rate = options.rate;
  plan.records = options.records;
  plan.steps = options.steps;
  plan.adjacency = options.adjacency;
  plan.rate_schedule = options.rate_schedule;
  plan.rows_per_user = options.rows_per_user;
  plan.micro_batch = options.micro_batch;
  plan.noise_is_gaussian = Noises().Find(options.noise.name).IsGaussian();
  plan.noise_is_constant = options.noise_schedule.IsConstant();
  plan.noise_bands = Noises().Find(options.noise.name).Bands(options.noise.options, options.steps);
  plan.options = options.sampling.options;
  return plan;
}

ClippingTerms internal::ClippingTermsOf(const PlanOptions& options) {
  ClippingTerms terms;
  terms.clip = options.clip;
  terms.clip_is_scheduled = !options.clip_schedule.IsConstant();
  terms.batch = options.batch;
  terms.adjacency = options.adjacency;
  terms.noise_is_gaussian = HasIndependentGaussian(options);
  terms.unit_share = Samplers().Find(options.sampling.name).UnitShare(SamplingOf(options));
  terms.rows_per_user = options.rows_per_user;
  terms.micro_batch = options.micro_batch;
  terms.norms_are_exact = NormMethods().Find(options.norms.name).AreExact();
  return terms;
}

PlanOptions internal::Checked(PlanOptions options) {
  const NoiseComponent& noise = Noises().Checked(options.noise);
  // Correlated noise needs records that rest: Poisson sampling is then from groups in turn.
  if (options.sampling.name == "poisson" && !noise.IsIndependent(options.noise.options)) {
    options.sampling.name = "cyclic";
  }
  const SamplerComponent& sampler = Samplers().Checked(options.sampling);
  if (options.batch == 0) {
    options.batch = sampler.BatchOf(static_cast<double>(options.records)).value_or(0);
  }
  if (options.records > 0) {
    SamplingPlan plan = SamplingOf(options);
    sampler.CompleteRate(plan);
    options.batch = plan.batch;
    options.rate = plan.rate;
  }
  CheckNumbers(options);
  CheckSampling(options);
  CheckCombinations(options);
  CheckHeldOut(options);
  CheckSchedule(options.noise_schedule, "noise", options.steps);
  CheckSchedule(options.clip_schedule, "clipping norm", options.steps);
  CheckSchedule(options.rate_schedule, "sampling rate", options.steps);
  return options;
}

}  // namespace sordino
