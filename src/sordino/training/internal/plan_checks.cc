#include "sordino/training/internal/plan_checks.h"

#include <fmt/format.h>

#include <cmath>
#include <string>
#include <string_view>

#include "sordino/base/error.h"

namespace sordino {
namespace {

constexpr std::int64_t kMostRecords = std::int64_t{1} << 40;
constexpr std::int64_t kMostRowsPerUser = 1000;

void Require(bool condition, const std::string& sentence) {
  if (!condition) throw Error(sentence);
}

// A schedule of a privacy quantity must stay positive: the factor of every step is looked at once.
void CheckSchedule(const Schedule& schedule, std::string_view what, std::int64_t steps) {
  if (schedule.IsConstant()) return;
  for (std::int64_t step = 0; step < steps; ++step) {
    Require(schedule.Factor(step, steps) > 0,
            fmt::format("the schedule '{}' of the {} reaches 0 at step {}; it must stay positive, "
                        "for example linear:0.1.",
                        schedule.ToString(), what, step));
  }
}

void CheckNumbers(const PlanOptions& o) {
  Require(
      o.steps >= 1 && o.steps <= kMostPlanSteps,
      fmt::format("the number of steps is {}; it must be from 1 to {}.", o.steps, kMostPlanSteps));
  Require(o.records >= 0 && o.records <= kMostRecords,
          fmt::format("the number of records is {}; it must be from 1 to 2^40.", o.records));
  Require(std::isfinite(o.batch) && o.batch > 0,
          fmt::format("the batch size is {}; it must be positive: give a batch, or a rate and the "
                      "number of records.",
                      o.batch));
  Require(o.rows_per_user >= 0 && o.rows_per_user <= kMostRowsPerUser,
          fmt::format("rows per user is {}; it must be from 1 to {}.", o.rows_per_user,
                      kMostRowsPerUser));
  Require(o.micro_batch >= 1,
          fmt::format("the micro-batch is {}; it must be at least 1.", o.micro_batch));
}

void CheckSampling(const PlanOptions& o) {
  const SamplerComponent& sampler = Samplers().Find(o.sampling.name);
  sampler.CheckPlan(internal::SamplingOf(o));
  Require(sampler.HasRateSchedule() || o.rate_schedule.IsConstant(),
          fmt::format("a schedule of the sampling rate needs {} sampling, and the sampling is {}.",
                      SamplersWith(&SamplerComponent::HasRateSchedule), sampler.name()));
}

void CheckCombinations(const PlanOptions& o) {
  const bool gaussian = Noises().Find(o.noise.name).IsGaussian();
  if (o.rows_per_user > 1) {
    Require(Samplers().Find(o.sampling.name).ProtectsUsers() &&
                o.adjacency != Adjacency::kReplaceOne && gaussian && o.micro_batch == 1,
            fmt::format("a guarantee for users with several rows needs Gaussian noise, {} sampling "
                        "without micro-batches, and the adjacency add-remove or zero-out; use "
                        "these, or one row per user.",
                        SamplersWith(&SamplerComponent::ProtectsUsers)));
  }
  if (o.clipping == ClippingKind::kGlobal) {
    Require(o.clip_threshold >= o.clip.value() && std::isfinite(o.clip_threshold),
            fmt::format("global clipping needs a threshold of at least the clipping norm {}, and "
                        "it is {}.",
                        o.clip.value(), o.clip_threshold));
  } else {
    Require(o.clip_threshold == 0, "a clipping threshold is for global clipping only.");
  }
  if (o.clipping == ClippingKind::kAdaptive) {
    Require(o.clip_schedule.IsConstant(),
            "adaptive clipping chooses its own norm; leave out the schedule of the clipping norm.");
    Require(gaussian,
            "adaptive clipping shares its noise between gradients and counts, which needs Gaussian "
            "noise.");
    Require(o.rows_per_user <= 1 && o.micro_batch == 1,
            "adaptive clipping counts records; use it without rows per user and micro-batches.");
  }
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
  return plan;
}

PlanOptions internal::Checked(PlanOptions options) {
  const SamplerComponent& sampler = Samplers().Checked(options.sampling);
  Noises().Checked(options.noise);
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
  CheckSchedule(options.noise_schedule, "noise", options.steps);
  CheckSchedule(options.clip_schedule, "clipping norm", options.steps);
  CheckSchedule(options.rate_schedule, "sampling rate", options.steps);
  if (options.clipping == ClippingKind::kAdaptive && options.count_noise == 0) {
    options.count_noise = options.batch / 20;
  }
  return options;
}

}  // namespace sordino
