// The batch of each step, by the sampler of the plan.
#ifndef SORDINO_TRAINING_STEP_SAMPLER_H_
#define SORDINO_TRAINING_STEP_SAMPLER_H_

#include <cstdint>
#include <vector>

#include "sordino/random/generator.h"
#include "sordino/training/gradient_noise.h"
#include "sordino/training/privacy_plan.h"

namespace sordino::internal {

// Steps are asked for in their order. The records are allocated anew for each epoch, from a stream
// of the epoch: a private source never gives the same one twice, also not after a run was resumed
// inside an epoch; then the batches that are left are those of a new allocation, which is charged
// whole.
class StepSampler {
 public:
  // `plan` and `random` outlive it.
  StepSampler(const PrivacyPlan& plan, std::uint64_t records, RandomSource& random);

  // What is drawn for the step alone comes from `stream`.
  std::vector<std::uint64_t> Batch(std::int64_t step, Generator& stream);

 private:
  std::vector<std::uint64_t> AllocatedBatch(std::int64_t step);

  const PrivacyPlan& plan_;
  std::uint64_t records_;
  RandomSource& random_;
  std::vector<std::vector<std::uint64_t>> allocation_;
  std::int64_t epoch_ = -1;  // of the allocation
};

}  // namespace sordino::internal

#endif  // SORDINO_TRAINING_STEP_SAMPLER_H_
