// How the batch of a step is drawn, and what that does to privacy: a component that owns its event,
// the unit of its noise, its largest batch and its draws.
//
// A new one is a file that defines a class derived from SamplerComponent and a function that
// returns it, and a line in sampler_list.inc.
#ifndef SORDINO_SAMPLING_SAMPLER_COMPONENT_H_
#define SORDINO_SAMPLING_SAMPLER_COMPONENT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sordino/accounting/event.h"
#include "sordino/base/component.h"
#include "sordino/base/quantity.h"
#include "sordino/random/generator.h"
#include "sordino/random/random_source.h"
#include "sordino/schedules/schedule.h"

namespace sordino {

// What a sampler needs to know of a plan; public numbers (training/privacy_plan.h).
struct SamplingPlan {
  double batch = 0;                  // expected or exact; the divisor of the sum
  std::optional<SamplingRate> rate;  // of samplers that have one
  std::int64_t records = 0;          // 0: not declared
  std::int64_t steps = 0;
  Adjacency adjacency = Adjacency::kAddRemove;
  Schedule rate_schedule = {};
  std::int64_t rows_per_user = 0;
  std::int64_t micro_batch = 1;
  bool noise_is_gaussian = true;  // the event of a release is gaussian(z)
  bool noise_is_constant = true;  // z is the same in every step
  // Over how many steps what a record adds to one is protected by the same draws; 1 for independent
  // noise.
  std::int64_t noise_bands = 1;
  OptionValues options = {};  // of the sampler

  // How many records are expected at most: the declared number, or, where only the rate was
  // declared, twice what the declared batch and rate make. The data may hold more or fewer.
  std::int64_t MaxRecords() const;
};

// The batches of a run. Steps are asked for in their order.
class BatchSampler {
 public:
  virtual ~BatchSampler() = default;
  // Indices of records. What is drawn for the step alone comes from `stream`.
  virtual std::vector<std::uint64_t> Batch(std::int64_t step, Generator& stream) = 0;
};

class SamplerComponent : public Component {
 public:
  using Component::Component;

  // Throws Error for what the event below does not cover.
  virtual void CheckPlan(const SamplingPlan& plan) const = 0;

  // What may be given, and what follows from it.
  virtual bool HasRate() const { return false; }
  virtual bool HasRateSchedule() const { return false; }
  virtual Adjacency DefaultAdjacency() const { return Adjacency::kAddRemove; }
  // The batch, where the number of records decides it.
  virtual std::optional<double> BatchOf(double records) const;
  // The rate of a batch, where no rate was given and the number of records is public; a sampler
  // whose epochs have a whole number of batches changes the batch with it.
  virtual void CompleteRate(SamplingPlan& plan) const { static_cast<void>(plan); }
  // Whether it does that.
  virtual bool HasWholeEpochs() const { return false; }

  // Whether who is in a batch has to stay secret.
  virtual bool IsSecret() const { return true; }
  // No batch of MaxRecords() records is larger, but with this probability a step. Where the
  // probability is 0 all batches of the declared number of records have one size; else the size is
  // random, and private.
  virtual std::int64_t MaxBatch(const SamplingPlan& plan) const = 0;
  virtual double OverflowProbability() const { return 0; }
  // The probability that a record is in the batch of a step, as it is drawn and as it is accounted.
  virtual SamplingRate Rate(const SamplingPlan& plan, std::int64_t step) const = 0;

  // No record is in two steps that are fewer steps apart; 1: it may be in all of them. 0: it may
  // be, and the draws are fresh in every step, which noise that is correlated between steps does
  // not cover.
  virtual std::int64_t Separation(const SamplingPlan& plan) const;
  // How many steps have one event together.
  virtual std::int64_t StepsPerEvent(const SamplingPlan& plan) const;
  // The event of a step (or of those steps) that makes `release` of its batch.
  virtual Event StepEvent(const SamplingPlan& plan, std::int64_t step,
                          const Event& release) const = 0;
  // Likewise for users with up to plan.rows_per_user > 1 rows and Gaussian noise. Samplers whose
  // ProtectsUsers() is true have it.
  virtual bool ProtectsUsers() const { return false; }
  virtual Event UserEvent(const SamplingPlan& plan, std::int64_t step, NoiseMultiplier noise) const;
  // The unit of the noise multiplier over the distance of neighbouring sums: 1, or 1/2 where the
  // event counts in half of it.
  virtual double UnitShare(const SamplingPlan& plan) const;

  // The event above holds for any number of records, whatever was declared.
  virtual std::unique_ptr<BatchSampler> Make(const SamplingPlan& plan, std::uint64_t records,
                                             RandomSource& random) const = 0;

  // "Poisson sampling at rate 0.01 (expected batch 600)"
  virtual std::string Description(const SamplingPlan& plan) const = 0;
  // A paragraph of the statement; empty where there is nothing to add.
  virtual std::string Statement() const { return ""; }
};

const Registry<SamplerComponent>& Samplers();

// The names of those that have something, for a sentence: "poisson or allocation".
std::string SamplersWith(bool (SamplerComponent::*property)() const);

}  // namespace sordino

#endif  // SORDINO_SAMPLING_SAMPLER_COMPONENT_H_
