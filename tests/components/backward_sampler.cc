// A sampler of a test: all records in every step, the last one first.
#include <algorithm>
#include <numeric>

#include "sordino/base/error.h"
#include "sordino/sampling/sampler_component.h"

namespace sordino {
namespace {

constexpr OptionSpec kTurns{.key = "backward-turns",
                            .flag = "--backward-turns",
                            .value_name = "N",
                            .help = "How often the order is turned",
                            .what = "the number of turns",
                            .type = OptionType::kWhole,
                            .fallback = std::int64_t{1},
                            .low = 1};
constexpr const OptionSpec* kBackwardOptions[] = {&kTurns};

class BackwardBatches : public BatchSampler {
 public:
  explicit BackwardBatches(std::uint64_t records) : records_(records) {}
  std::vector<std::uint64_t> Batch(std::int64_t, Generator&) override {
    std::vector<std::uint64_t> all(records_);
    std::iota(all.rbegin(), all.rend(), std::uint64_t{0});
    return all;
  }

 private:
  std::uint64_t records_;
};

class Backward : public SamplerComponent {
 public:
  Backward()
      : SamplerComponent({.name = "backward", .help = "of a test", .options = kBackwardOptions}) {}
  void CheckPlan(const SamplingPlan& plan) const override {
    if (plan.records == 0) throw Error("backward batches need the number of records; declare it.");
  }
  std::optional<double> BatchOf(double records) const override { return records; }
  std::int64_t MaxBatch(const SamplingPlan& plan) const override { return plan.records; }
  SamplingRate Rate(const SamplingPlan&, std::int64_t) const override { return SamplingRate(1); }
  Event StepEvent(const SamplingPlan&, std::int64_t, const Event& release) const override {
    return release;
  }
  std::unique_ptr<BatchSampler> Make(const SamplingPlan&, std::uint64_t records,
                                     RandomSource&) const override {
    return std::make_unique<BackwardBatches>(records);
  }
  std::string Description(const SamplingPlan& plan) const override {
    return "backward batches of " + std::to_string(plan.records) + " records";
  }
};

}  // namespace

const SamplerComponent& BackwardSampler() {
  static const Backward component;
  return component;
}

}  // namespace sordino
