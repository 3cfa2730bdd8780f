// Batches of fixed size: a uniform subset of `batch` of the records without replacement. The event
// is fixed(batch / records, release), under replace-one only, and its unit is the distance of
// neighbouring sums, 2C.
//
// Data of another number of records than was declared. Batches are drawn of as many places as there
// are records, and of no fewer than were declared; a place without a record adds nothing. A record
// has one place, so that it is in a batch with the probability that is accounted or less, and
// replacing it changes what one place adds. The number of records itself is the same for
// neighbours.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sordino/sampling/internal/random_batch_size.h"
#include "sordino/sampling/sampler.h"

namespace sordino {
namespace {

class FixedSizeBatches : public BatchSampler {
 public:
  FixedSizeBatches(const SamplingPlan& plan, std::uint64_t records)
      : batch_(static_cast<std::uint64_t>(plan.batch)),
        places_(std::max(records, static_cast<std::uint64_t>(plan.records))),
        records_(records) {}
  std::vector<std::uint64_t> Batch(std::int64_t, Generator& stream) override {
    std::vector<std::uint64_t> batch = SampleFixedSize(stream, batch_, places_);
    std::erase_if(batch, [&](std::uint64_t place) { return place >= records_; });
    return batch;
  }

 private:
  std::uint64_t batch_;
  std::uint64_t places_;
  std::uint64_t records_;
};

class FixedSize : public SamplerComponent {
 public:
  FixedSize()
      : SamplerComponent(
            {.name = "fixed", .help = "`batch` records without replacement, in random order"}) {}

  void CheckPlan(const SamplingPlan& plan) const override {
    internal::Require(plan.records > 0,
                      "fixed-size batches need the number of records; declare it.");
    internal::Require(
        plan.adjacency == Adjacency::kReplaceOne,
        fmt::format("fixed-size batches are accounted under replace-one only, and the adjacency is "
                    "{}; use replace-one, or Poisson sampling.",
                    AdjacencyName(plan.adjacency)));
    internal::Require(
        plan.batch == std::floor(plan.batch) && plan.batch <= static_cast<double>(plan.records),
        fmt::format("the batch is {}; with fixed-size batches it must be a whole number of the {} "
                    "records.",
                    plan.batch, plan.records));
  }

  Adjacency DefaultAdjacency() const override { return Adjacency::kReplaceOne; }
  std::int64_t MaxBatch(const SamplingPlan& plan) const override {
    return static_cast<std::int64_t>(plan.batch);
  }
  SamplingRate Rate(const SamplingPlan& plan, std::int64_t) const override {
    return SamplingRate(plan.batch / static_cast<double>(plan.records));
  }
  Event StepEvent(const SamplingPlan& plan, std::int64_t step,
                  const Event& release) const override {
    return Event::Fixed(Rate(plan, step), release);
  }
  std::unique_ptr<BatchSampler> Make(const SamplingPlan& plan, std::uint64_t records,
                                     RandomSource&) const override {
    return std::make_unique<FixedSizeBatches>(plan, records);
  }
  std::string Description(const SamplingPlan& plan) const override {
    return fmt::format("batches of {:.0f} of {} records without replacement", plan.batch,
                       plan.records);
  }
};

}  // namespace

const SamplerComponent& FixedSizeSampler() {
  static const FixedSize component;
  return component;
}

}  // namespace sordino
