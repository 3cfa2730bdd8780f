// Random allocation (accounting/allocation.h): in each epoch of t = 1 / rate steps every record is
// in one batch, chosen uniformly and independently of all others. The event is that of the whole
// epoch, so an epoch is charged when its first step is made. The size of one batch is distributed
// as with Poisson sampling at rate 1 / t.
//
// The records are allocated anew for each epoch, from a stream of the epoch: a private source never
// gives the same one twice, also not after a run was resumed inside an epoch; then the batches that
// are left are those of a new allocation, which is charged whole.
#include <fmt/format.h>

#include <cmath>

#include "sordino/accounting/allocation.h"
#include "sordino/sampling/internal/random_batch_size.h"
#include "sordino/sampling/sampler.h"

namespace sordino {
namespace {

class AllocatedBatches : public BatchSampler {
 public:
  AllocatedBatches(std::int64_t batches, std::uint64_t records, RandomSource& random)
      : batches_(batches), records_(records), random_(random) {}

  std::vector<std::uint64_t> Batch(std::int64_t step, Generator&) override {
    const std::int64_t epoch = step / batches_;
    if (epoch != epoch_) {
      const auto stream = random_.Stream(
          {.step = static_cast<std::uint64_t>(epoch), .rank = 0, .tensor = kAllocationStream});
      allocation_ = SampleAllocation(*stream, static_cast<std::uint64_t>(batches_), records_);
      epoch_ = epoch;
    }
    return allocation_[static_cast<std::size_t>(step % batches_)];
  }

 private:
  std::int64_t batches_;
  std::uint64_t records_;
  RandomSource& random_;
  std::vector<std::vector<std::uint64_t>> allocation_;
  std::int64_t epoch_ = -1;  // of the allocation
};

class Allocation : public SamplerComponent {
 public:
  Allocation()
      : SamplerComponent({.name = "allocation",
                          .help = "each record in one of the 1 / `rate` batches of every epoch"}) {}

  // What random allocation was proven for (accounting/allocation.h).
  void CheckPlan(const SamplingPlan& plan) const override {
    using internal::Require;
    Require(plan.rate.has_value(),
            "random allocation needs its number of batches: declare the number of records (which "
            "makes it public), or give the rate, one over the number of batches.");
    const std::int64_t batches = AllocationBatches(*plan.rate);
    Require(static_cast<double>(batches) <= kMaxAllocationBatches,
            fmt::format("random allocation was given {} batches an epoch; give a larger batch or "
                        "rate, so that they are at most {:g}.",
                        batches, kMaxAllocationBatches));
    Require(plan.adjacency != Adjacency::kReplaceOne,
            "random allocation is accounted under add-remove and zero-out only, because no bound "
            "is proven for replacing a record; use one of these, or Poisson sampling.");
    Require(plan.noise_is_gaussian,
            "random allocation is accounted for Gaussian noise only, and the noise is another one; "
            "use Gaussian noise, or Poisson sampling.");
    Require(plan.noise_is_constant,
            "random allocation is accounted for steps of equal noise, and the noise has a "
            "schedule; leave it out, or use Poisson sampling.");
    Require(plan.rows_per_user <= 1,
            fmt::format("random allocation is accounted for one row per user, and users have up to "
                        "{}; declare one row per user, or use Poisson sampling.",
                        plan.rows_per_user));
    Require(plan.micro_batch == 1,
            fmt::format("micro-batches of {} with random allocation have no bounded sensitivity (a "
                        "record in another batch moves all later ones); use fixed-size or full "
                        "batches.",
                        plan.micro_batch));
  }

  bool HasRate() const override { return true; }
  bool HasWholeEpochs() const override { return true; }
  // The whole number of batches nearest to records / batch; they share the records.
  void CompleteRate(SamplingPlan& plan) const override {
    const bool was_given = plan.rate.has_value();
    internal::CompleteBatchOrRate(plan);
    if (was_given || !plan.rate.has_value()) return;
    const auto records = static_cast<double>(plan.records);
    const double batches = std::round(records / plan.batch);
    plan.rate = SamplingRate(1 / batches);
    plan.batch = records / batches;
  }

  double OverflowProbability() const override { return internal::RandomOverflow(); }
  std::int64_t MaxBatch(const SamplingPlan& plan) const override {
    return internal::MaxRandomBatch(plan, plan.rate->value());
  }
  SamplingRate Rate(const SamplingPlan& plan, std::int64_t) const override { return *plan.rate; }
  std::int64_t StepsPerEvent(const SamplingPlan& plan) const override {
    return AllocationBatches(*plan.rate);
  }
  Event StepEvent(const SamplingPlan& plan, std::int64_t, const Event& release) const override {
    return Event::Allocation(static_cast<std::uint64_t>(StepsPerEvent(plan)), release);
  }
  std::unique_ptr<BatchSampler> Make(const SamplingPlan& plan, std::uint64_t records,
                                     RandomSource& random) const override {
    return std::make_unique<AllocatedBatches>(StepsPerEvent(plan), records, random);
  }

  std::string Description(const SamplingPlan& plan) const override {
    return fmt::format(
        "random allocation of each record to one of {} batches an epoch (expected batch {:.6g})",
        StepsPerEvent(plan), plan.batch);
  }
  std::string Statement() const override {
    return "In every epoch each record was in exactly one batch, chosen uniformly and "
           "independently of all other records; the batches were drawn anew for each epoch. An "
           "epoch counts whole, also where the run stopped inside it.";
  }
};

}  // namespace

const SamplerComponent& AllocationSampler() {
  static const Allocation component;
  return component;
}

}  // namespace sordino
