#include "sordino/training/step_sampler.h"

#include <numeric>

#include "sordino/data/sampler.h"

namespace sordino::internal {

StepSampler::StepSampler(const PrivacyPlan& plan, std::uint64_t records, RandomSource& random)
    : plan_(plan), records_(records), random_(random) {}

std::vector<std::uint64_t> StepSampler::Batch(std::int64_t step, Generator& stream) {
  switch (plan_.options().sampling) {
    case SamplingKind::kPoisson:
      return SamplePoisson(stream, plan_.StepRate(step), records_);
    case SamplingKind::kFixedSize:
      return SampleFixedSize(stream, static_cast<std::uint64_t>(plan_.options().batch), records_);
    case SamplingKind::kAllocation:
      return AllocatedBatch(step);
    case SamplingKind::kFullBatch:
      break;
  }
  std::vector<std::uint64_t> all(records_);
  std::iota(all.begin(), all.end(), std::uint64_t{0});
  return all;
}

std::vector<std::uint64_t> StepSampler::AllocatedBatch(std::int64_t step) {
  const std::int64_t batches = plan_.StepsPerEvent();
  const std::int64_t epoch = step / batches;
  if (epoch != epoch_) {
    const auto stream = random_.Stream(
        {.step = static_cast<std::uint64_t>(epoch), .rank = 0, .tensor = kAllocationStream});
    allocation_ = SampleAllocation(*stream, static_cast<std::uint64_t>(batches), records_);
    epoch_ = epoch;
  }
  return allocation_[static_cast<std::size_t>(step % batches)];
}

}  // namespace sordino::internal
