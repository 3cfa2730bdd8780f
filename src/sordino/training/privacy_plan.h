// Sampler, clipping, noise and accounting event in one value.
//
// A plan is made of public numbers only, before the data are seen. The trainer draws its batches,
// clips, adds noise and divides by what the plan says, and the event that is charged comes from the
// same numbers, so what is trained and what is accounted cannot drift apart.
//
// One step of Algorithm 1 (Abadi et al., arXiv 1607.00133), at step t:
//   batch    by the sampler, rate q_t = rate * rate_schedule(t)
//   sum      sum over the batch of gradients clipped to C_t = clip * clip_schedule(t)
//   noise    standard deviation z_t U_t, z_t = noise * noise_schedule(t), for the unit U_t below
//   mean     divided by the expected batch size, a public constant
// An empty batch is a step like any other: noise is added, and it is charged.
//
// The sampler, the noise and the clipping policy are components (base/component.h); each file has
// its share of the argument. The unit of the noise multiplier is that of accounting/event.h: the
// distance of neighbouring sums (C under add-remove and zero-out, 2C under replace-one), or C for a
// Gaussian event of Poisson sampling under every adjacency; times 1 + the rounding that the clipper
// declares and that of the noise's grid.
//
// Held-out records (held_out): every record is held out of training by a coin of its own, and after
// some steps the number of held-out records of which something is true is released with noise
// (adaptive_noise.h). A record is in one part, and is charged as if it were in both.
//
// Users with up to k rows (rows_per_user = k): the guarantee is for a user, by the event that the
// sampler has for them. Refused where it has none.
//
// The number of records is a declaration, and nothing is compared with it: every event and every
// sensitivity covers any number (training/internal/data_check.h).
//
// Failures that have a probability. A batch of random size may be larger than LargestBatch()
// (probability below 2^-80 a step for the declared number of records), and noise is not quite that
// which is accounted (noise/gaussian.cc, for up to 2^36 parameters). Estimated norms fail with a
// probability of their own (clipping/norms_jl.cc). A mechanism within tau in total variation of one
// that is (epsilon, delta)-DP is (epsilon, delta + (1 + e^epsilon) tau)-DP: Epsilon() pays out of
// delta.
#ifndef SORDINO_TRAINING_PRIVACY_PLAN_H_
#define SORDINO_TRAINING_PRIVACY_PLAN_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sordino/accounting/event.h"
#include "sordino/base/component.h"
#include "sordino/base/quantity.h"
#include "sordino/clipping/clipping_component.h"
#include "sordino/clipping/norms_component.h"
#include "sordino/gradients/clipper.h"
#include "sordino/noise/noise_component.h"
#include "sordino/sampling/sampler_component.h"
#include "sordino/schedules/schedule.h"

namespace sordino {

inline constexpr std::int64_t kMaxPlanSteps = 1'000'000'000;
// More than this changes little of the noise.
inline constexpr double kLargeEpsilon = 16;

// Private measurements of progress (adaptive_noise.h).
struct HeldOutPlan {
  double share = 0;                // of the records, in (0, 1)
  std::int64_t every = 0;          // steps from one measurement to the next
  NoiseMultiplier count_noise{1};  // standard deviation on a count of records
};

struct PlanOptions {
  Choice sampling = "poisson";  // sampling/sampler_component.h
  // Expected (Poisson, allocation) or exact (fixed-size) number of records in a batch, and the
  // divisor of the sum; for a full batch it is the number of records. A public constant.
  double batch = 0;
  // Poisson: q. Left out, it is batch / records. Allocation: 1 / t; left out, t is the whole number
  // nearest to records / batch, and the batch becomes records / t.
  std::optional<SamplingRate> rate;
  // Number of records as a public constant; 0: not declared (Poisson and allocation with a rate).
  std::int64_t records = 0;
  std::int64_t steps = 0;
  Adjacency adjacency = Adjacency::kAddRemove;
  Choice clipping = "flat";  // clipping/clipping_component.h
  ClipNorm clip{1};
  Choice norms = "automatic";  // clipping/norms_component.h
  Choice noise = "gaussian";   // noise/noise_component.h
  Schedule noise_schedule = {};
  Schedule clip_schedule = {};
  Schedule rate_schedule = {};
  std::int64_t rows_per_user = 0;  // 0: the unit is a record
  std::int64_t micro_batch = 1;    // more: fixed-size or full batches, not under add-remove
  std::optional<HeldOutPlan> held_out = {};
};

// What is released of several runs of a plan.
struct ReleaseOfRuns {
  // What all of them together cost, from the event of one; empty: there is one, and it is released.
  std::function<Event(Event run)> event = {};
  double runs = 1;     // expected
  double failure = 0;  // probability of what is not in the event, beside that of each run

  Event EventOf(Event run) const { return event ? event(std::move(run)) : run; }
  double Failure(double of_run) const { return failure + runs * of_run; }
};

class PrivacyPlan {
 public:
  // The noise multiplier is given. Throws Error for options that contradict each other.
  PrivacyPlan(const PlanOptions& options, NoiseMultiplier noise, Delta delta);
  // What noise leaves open until there is a budget, chosen: options for the constructor. (The
  // correlation 'auto'.)
  static PlanOptions Chosen(PlanOptions options, sordino::Epsilon epsilon, Delta delta);
  // The least noise that spends at most epsilon, of the options that Chosen gives; nullopt when
  // none does. A budget so large that delta does not pay for failures at it is held to the epsilon
  // up to which it does, if that is at least kLargeEpsilon. The budget is that of what is released:
  // with several runs the plan is that of each.
  static std::optional<PrivacyPlan> ForBudget(const PlanOptions& options, sordino::Epsilon epsilon,
                                              Delta delta, const ReleaseOfRuns& released = {});

  const PlanOptions& options() const { return options_; }
  NoiseMultiplier noise() const { return noise_; }
  Delta delta() const { return delta_; }
  std::int64_t steps() const { return options_.steps; }
  // The same plan with another noise multiplier.
  PrivacyPlan WithNoise(NoiseMultiplier noise) const;

  const SamplerComponent& sampler() const { return *sampler_; }
  // What the sampler draws batches for.
  const SamplingPlan& sampling() const { return sampling_; }
  const NoiseComponent& noise_kind() const { return *noise_kind_; }
  const NormsComponent& norms() const { return *norms_; }

  // How many steps an event is of, by the noise and the sampler: the t of random allocation,
  // else 1.
  std::int64_t StepsPerEvent() const;
  // What the gradients of step t release (of an allocation: those of its epoch).
  Event GradientEvent(std::int64_t step) const;
  // Whether held-out records are measured after step t, and what that releases. Not after the last
  // step: nothing would follow from it.
  bool MeasuresAfter(std::int64_t step) const;
  Event MeasurementEvent() const;
  std::int64_t Measurements(std::int64_t steps) const;  // after the first `steps` steps
  // What step t releases, its measurement included, and what the first `steps` steps release
  // together.
  Event StepEvent(std::int64_t step) const;
  // The rule of charging, for a run that began with step `first` or was resumed there: the first
  // step of an event pays for all of it, and so does step `first`, whose batches are of a new
  // allocation and whose noise is of a new process; other steps pay nothing. It is paid before the
  // noise of the step is drawn.
  bool BeginsCharge(std::int64_t step, std::int64_t first) const;
  Event ChargeOf(std::int64_t step, std::int64_t first) const;
  Event EventOf(std::int64_t steps) const;
  Event EventOf(std::int64_t first, std::int64_t last) const;  // steps [first, last)
  Event event() const { return EventOf(options_.steps); }
  // Probability of what is not in the event, over so many steps (accounting/failures.h), rounded up
  // to whole epochs of an allocation.
  double Failure(std::int64_t steps) const;
  // Certified epsilon of the first `steps` steps at delta().
  Interval Epsilon(std::int64_t steps) const;

  NoiseMultiplier StepNoise(std::int64_t step) const;
  // What of it is on the gradients: all, but for adaptive clipping, whose counts of `groups`
  // clipping groups take a share (clipping/adaptive.h).
  NoiseMultiplier GradientNoise(std::int64_t step, std::int64_t groups) const;
  // The unit of the noise over the sensitivity of a BoundedSum: 1/2 for Poisson sampling under
  // replace-one, whose Gaussian event counts in C while neighbouring sums are 2C apart; else 1.
  double UnitShare() const;
  SamplingRate StepRate(std::int64_t step) const;  // as it is drawn and as it is accounted
  ClipNorm StepClip(std::int64_t step) const;
  ClipNorm SmallestClip() const;  // of all steps
  // What a step divides the noised sum by: the expected number of micro-batches, whose gradients
  // are means over their records.
  double Divisor(std::int64_t step) const;
  // A public constant that the clipper's rounding is proven for; larger batches are summed record
  // by record (gradients/clipper.h).
  std::int64_t LargestBatch() const;

  // What the noise of a run remembers of earlier steps.
  NoiseMemory Memory() const;
  // The noise of a run, drawn from this source, which lives longer.
  std::unique_ptr<NoiseProcess> StartNoise(RandomSource& source) const;

  // The clipping policy in a run, and what computes its clipped sums. Throws Error where one of
  // them does not fit the parameters.
  std::unique_ptr<ClippingState> StartClipping(const std::vector<NamedParameter>& parameters) const;
  // Of a run that clips and adds no noise. Throws Error for a policy that learns from noised
  // values.
  std::unique_ptr<ClippingState> StartClippingWithoutNoise(
      const std::vector<NamedParameter>& parameters) const;
  std::unique_ptr<StepClipper> StartSums(std::vector<NamedParameter> parameters,
                                         const GradientOptions& gradients) const;

  // The sums of several processes.
  std::unique_ptr<StepChunks> StartChunks(const std::vector<NamedParameter>& parameters,
                                          const GradientOptions& gradients) const;

  // What the clipper is asked for: adjacency, micro-batch, the largest batch and what rounding may
  // add to the sensitivity, 1 % for batches of any size.
  SumOptions Sum() const;
  // "Poisson sampling at rate 0.00853, ..." for people.
  std::string Description() const;
  std::string DescriptionWithoutNoise() const;

 private:
  NoiseTerms Terms() const;  // they live as long as the plan
  std::string DescriptionWith(const std::string& noise) const;
  std::int64_t RecordedBatch() const;
  // The step whose noise is largest: what takes a share of it leaves least there.
  std::int64_t LargestNoiseStep() const;

  PlanOptions options_;  // completed
  SamplingPlan sampling_;
  const SamplerComponent* sampler_;
  const NoiseComponent* noise_kind_;
  const ClippingComponent* clipping_;
  const NormsComponent* norms_;
  NoiseMultiplier noise_;
  Delta delta_;
};

}  // namespace sordino

#endif  // SORDINO_TRAINING_PRIVACY_PLAN_H_
