// Batches in the order of the records, without sampling: for streams, and for rounds whose order is
// given. In a pass of b = 1 / rate steps, step t takes the records from floor(t n / b) to
// floor((t + 1) n / b), for the declared number n; then the next pass takes the same batches. So a
// record is in one step of each pass, always the same, and rests for b - 1 steps.
//
// The event of a pass is that of one release: the steps of a pass have disjoint records. Noise that
// is correlated over more than b steps has one event for the whole run (noise/gaussian.cc).
//
// Who is in which batch is public. Dropping a record would move all later ones to other batches, so
// neighbours differ in the content of one record: replace-one or zero-out. A place without a record
// adds nothing, and records beyond the declared number are in no batch.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "sordino/sampling/internal/random_batch_size.h"
#include "sordino/sampling/sampler.h"

namespace sordino {
namespace {

std::int64_t BatchesOf(const SamplingPlan& plan) {
  return std::max<std::int64_t>(1, std::llround(1 / plan.rate->value()));
}

class OrderedBatches : public BatchSampler {
 public:
  OrderedBatches(const SamplingPlan& plan, std::uint64_t records)
      : batches_(static_cast<std::uint64_t>(BatchesOf(plan))),
        declared_(static_cast<std::uint64_t>(plan.records)),
        records_(records) {}
  std::vector<std::uint64_t> Batch(std::int64_t step, Generator&) override {
    const std::uint64_t turn = static_cast<std::uint64_t>(step) % batches_;
    const std::uint64_t first = std::min(Begin(turn), records_);
    const std::uint64_t last = std::min(Begin(turn + 1), records_);
    std::vector<std::uint64_t> batch(last - first);
    std::iota(batch.begin(), batch.end(), first);
    return batch;
  }

 private:
  // n is at most 2^40 and turn at most n.
  std::uint64_t Begin(std::uint64_t turn) const {
    const std::uint64_t whole = declared_ / batches_;
    const std::uint64_t rest = declared_ % batches_;
    return whole * turn + std::min(turn, rest);
  }

  std::uint64_t batches_;
  std::uint64_t declared_;
  std::uint64_t records_;
};

class Ordered : public SamplerComponent {
 public:
  Ordered()
      : SamplerComponent({.name = "ordered",
                          .help = "batches in the order of the records, not drawn: for streams"}) {}

  void CheckPlan(const SamplingPlan& plan) const override {
    using internal::Require;
    Require(plan.records > 0 && plan.rate.has_value(),
            "batches in order need the number of records; declare it.");
    Require(
        plan.adjacency != Adjacency::kAddRemove,
        "batches in order are accounted under zero-out and replace-one only, because dropping a "
        "record would move all later ones to other batches, and the adjacency is add-remove; "
        "use zero-out.");
    Require(
        plan.noise_is_constant,
        "batches in order are accounted for steps of equal noise, and the noise has a schedule; "
        "leave it out, or use Poisson sampling.");
    Require(plan.rows_per_user <= 1,
            fmt::format("batches in order are accounted for one row per user, and users have up to "
                        "{}; declare one row per user, or use Poisson sampling.",
                        plan.rows_per_user));
    Require(plan.micro_batch == 1,
            fmt::format("micro-batches of {} need fixed-size or full batches, and these are "
                        "batches in order; use one of those.",
                        plan.micro_batch));
  }

  Adjacency DefaultAdjacency() const override { return Adjacency::kZeroOut; }
  bool HasWholeEpochs() const override { return true; }
  // The whole number of batches nearest to records / batch; they share the records.
  void CompleteRate(SamplingPlan& plan) const override {
    internal::CompleteBatchOrRate(plan);
    if (!plan.rate.has_value()) return;
    const auto batches = static_cast<double>(BatchesOf(plan));
    plan.rate = SamplingRate(1 / batches);
    plan.batch = static_cast<double>(plan.records) / batches;
  }

  bool IsSecret() const override { return false; }
  std::int64_t MaxBatch(const SamplingPlan& plan) const override {
    return (plan.records - 1) / BatchesOf(plan) + 1;
  }
  SamplingRate Rate(const SamplingPlan& plan, std::int64_t) const override { return *plan.rate; }
  std::int64_t Separation(const SamplingPlan& plan) const override { return BatchesOf(plan); }
  std::int64_t StepsPerEvent(const SamplingPlan& plan) const override { return BatchesOf(plan); }
  Event StepEvent(const SamplingPlan&, std::int64_t, const Event& release) const override {
    return release;
  }
  std::unique_ptr<BatchSampler> Make(const SamplingPlan& plan, std::uint64_t records,
                                     RandomSource&) const override {
    return std::make_unique<OrderedBatches>(plan, records);
  }

  std::string Description(const SamplingPlan& plan) const override {
    return fmt::format("{} batches of {:.6g} records in their order, again in every pass",
                       BatchesOf(plan), plan.batch);
  }
  std::string Statement() const override {
    return "Records were taken in their order, each in one batch of every pass. Which batch is "
           "public. A pass counts whole, also where the run stopped inside it.";
  }
};

}  // namespace

const SamplerComponent& OrderedSampler() {
  static const Ordered component;
  return component;
}

}  // namespace sordino
