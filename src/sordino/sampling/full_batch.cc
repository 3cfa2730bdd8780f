// Full batches: all records in every step, in their order. The event is that of the release; of a
// user with k rows the shift is k.
#include <fmt/format.h>

#include <numeric>

#include "sordino/sampling/internal/random_batch_size.h"

namespace sordino {
namespace {

class FullBatches : public BatchSampler {
 public:
  explicit FullBatches(std::uint64_t records) : records_(records) {}
  std::vector<std::uint64_t> Batch(std::int64_t, Generator&) override {
    std::vector<std::uint64_t> all(records_);
    std::iota(all.begin(), all.end(), std::uint64_t{0});
    return all;
  }

 private:
  std::uint64_t records_;
};

class FullBatch : public SamplerComponent {
 public:
  FullBatch() : SamplerComponent({.name = "full", .help = "all records in every step"}) {}

  void CheckPlan(const SamplingPlan& plan) const override {
    internal::Require(plan.records > 0, "full batches need the number of records; declare it.");
  }

  std::optional<double> BatchOf(double records) const override { return records; }
  bool IsSecret() const override { return false; }
  std::int64_t MaxBatch(const SamplingPlan& plan) const override { return plan.records; }
  SamplingRate Rate(const SamplingPlan&, std::int64_t) const override { return SamplingRate(1); }
  std::int64_t Separation(const SamplingPlan&) const override { return 1; }
  Event StepEvent(const SamplingPlan&, std::int64_t, const Event& release) const override {
    return release;
  }
  bool ProtectsUsers() const override { return true; }
  Event UserEvent(const SamplingPlan& plan, std::int64_t, NoiseMultiplier noise) const override {
    const auto k = static_cast<double>(plan.rows_per_user);
    return Event::Gaussian(NoiseMultiplier(noise.value() / k), plan.adjacency);
  }
  std::unique_ptr<BatchSampler> Make(const SamplingPlan&, std::uint64_t records,
                                     RandomSource&) const override {
    return std::make_unique<FullBatches>(records);
  }
  std::string Description(const SamplingPlan& plan) const override {
    return fmt::format("full batches of {} records", plan.records);
  }
};

}  // namespace

const SamplerComponent& FullBatchSampler() {
  static const FullBatch component;
  return component;
}

}  // namespace sordino
