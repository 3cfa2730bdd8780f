#include "sordino/training/plan_checks.h"

#include <fmt/format.h>

#include <cmath>
#include <string>
#include <string_view>

#include "sordino/accounting/allocation.h"
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

// What random allocation was proven for (accounting/allocation.h).
void CheckAllocation(const PlanOptions& o) {
  Require(o.rate.has_value(),
          "random allocation needs its number of batches: declare the number of records (which "
          "makes it public), or give the rate, one over the number of batches.");
  const std::int64_t batches = AllocationBatches(*o.rate);
  Require(static_cast<double>(batches) <= kMostAllocationBatches,
          fmt::format("random allocation was given {} batches an epoch; give a larger batch or "
                      "rate, so that they are at most {:g}.",
                      batches, kMostAllocationBatches));
  Require(o.adjacency != Adjacency::kReplaceOne,
          "random allocation is accounted under add-remove and zero-out only, because no bound is "
          "proven for replacing a record; use one of these, or Poisson sampling.");
  Require(o.noise == NoiseKind::kGaussian,
          "random allocation is accounted for Gaussian noise only, and the noise is Laplace noise; "
          "use Gaussian noise, or Poisson sampling.");
  Require(o.noise_schedule.IsConstant(),
          "random allocation is accounted for steps of equal noise, and the noise has a schedule; "
          "leave it out, or use Poisson sampling.");
  Require(o.rows_per_user <= 1,
          fmt::format("random allocation is accounted for one row per user, and users have up to "
                      "{}; declare one row per user, or use Poisson sampling.",
                      o.rows_per_user));
  Require(o.micro_batch == 1,
          fmt::format("micro-batches of {} with random allocation have no bounded sensitivity (a "
                      "record in another batch moves all later ones); use fixed-size or full "
                      "batches.",
                      o.micro_batch));
}

void CheckSampling(const PlanOptions& o) {
  switch (o.sampling) {
    case SamplingKind::kAllocation:
      CheckAllocation(o);
      break;
    case SamplingKind::kPoisson:
      Require(o.rate.has_value(),
              "Poisson sampling needs its rate: declare the number of records (which makes it "
              "public), or give the rate.");
      Require(o.rate->value() > 0, "the sampling rate is 0; it must be positive.");
      Require(o.micro_batch == 1,
              fmt::format("micro-batches of {} with Poisson sampling have no bounded sensitivity "
                          "(a record that is not drawn moves all later ones); use fixed-size or "
                          "full batches.",
                          o.micro_batch));
      return;
    case SamplingKind::kFixedSize:
      Require(o.records > 0, "fixed-size batches need the number of records; declare it.");
      Require(o.adjacency == Adjacency::kReplaceOne,
              fmt::format("fixed-size batches are accounted under replace-one only, and the "
                          "adjacency is {}; use replace-one, or Poisson sampling.",
                          AdjacencyName(o.adjacency)));
      Require(o.batch == std::floor(o.batch) && o.batch <= static_cast<double>(o.records),
              fmt::format("the batch is {}; with fixed-size batches it must be a whole number of "
                          "the {} records.",
                          o.batch, o.records));
      break;
    case SamplingKind::kFullBatch:
      Require(o.records > 0, "full batches need the number of records; declare it.");
      break;
  }
  Require(o.rate_schedule.IsConstant(),
          fmt::format("a schedule of the sampling rate needs Poisson sampling, and the sampling is "
                      "{}.",
                      SamplingName(o.sampling)));
}

void CheckCombinations(const PlanOptions& o) {
  if (o.rows_per_user > 1) {
    Require(o.sampling != SamplingKind::kFixedSize && o.adjacency != Adjacency::kReplaceOne &&
                o.noise == NoiseKind::kGaussian && o.micro_batch == 1,
            "a guarantee for users with several rows needs Gaussian noise, Poisson or full batches "
            "without micro-batches, and the adjacency add-remove or zero-out; use these, or one "
            "row per user.");
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
    Require(o.noise == NoiseKind::kGaussian,
            "adaptive clipping shares its noise between gradients and counts, which needs Gaussian "
            "noise.");
    Require(o.rows_per_user <= 1 && o.micro_batch == 1,
            "adaptive clipping counts records; use it without rows per user and micro-batches.");
  }
}

// Batch and rate, where one follows from the other.
void CompleteRate(PlanOptions& options) {
  const auto records = static_cast<double>(options.records);
  if (options.rate.has_value() && options.batch == 0) {
    options.batch = options.rate->value() * records;
  } else if (!options.rate.has_value() && options.batch > 0) {
    Require(options.batch <= records,
            fmt::format("the batch of {} is larger than the {} records; give at most that many, "
                        "or use full batches.",
                        options.batch, options.records));
    options.rate = SamplingRate(options.batch / records);
    if (options.sampling == SamplingKind::kAllocation) {
      // The whole number of batches nearest to it; they share the records.
      const double batches = std::round(records / options.batch);
      options.rate = SamplingRate(1 / batches);
      options.batch = records / batches;
    }
  }
}

}  // namespace

PlanOptions internal::Checked(PlanOptions options) {
  if (options.sampling == SamplingKind::kFullBatch && options.batch == 0) {
    options.batch = static_cast<double>(options.records);
  }
  const bool has_rate =
      options.sampling == SamplingKind::kPoisson || options.sampling == SamplingKind::kAllocation;
  if (has_rate && options.records > 0) CompleteRate(options);
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
