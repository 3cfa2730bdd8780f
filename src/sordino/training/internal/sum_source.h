// The half of a step that depends on who computes it: clipped sums, and the update by noised ones.
//
// MeasuredSums is this process alone. It cuts a batch by the memory that examples took before.
//
// ChunkedSums is one of several ranks. A batch is cut into chunks by its size alone
// (gradients/chunks.h). Rank r computes chunks r, r + Size(), ...; dropout and augmentation of a
// chunk are drawn from a stream of its own. Sums of chunks are integers
// (gradients/fixed_point_sum.h), and each rank gets the total of its shard of the coordinates. It
// adds noise to the shard, once for all ranks, makes the optimizer's step of it, and gathers the
// parameters of all. So neither the batch, nor the sum, nor (in a seeded run) the noise depends on
// the number of ranks.
//
// A run without privacy, for comparisons, has ordinary gradients. On several ranks each has one
// part of the batch, and the last bits depend on the number of ranks. A run that clips without
// noise has the sums of a private one.
#ifndef SORDINO_TRAINING_INTERNAL_SUM_SOURCE_H_
#define SORDINO_TRAINING_INTERNAL_SUM_SOURCE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "sordino/data/record_source.h"
#include "sordino/distributed/communicator.h"
#include "sordino/gradients/bounded_sum.h"
#include "sordino/gradients/clipping_policy.h"
#include "sordino/gradients/loss_function.h"
#include "sordino/gradients/named_tensors.h"
#include "sordino/gradients/noised_value.h"
#include "sordino/noise/gradient_noise.h"
#include "sordino/noise/noise_process.h"
#include "sordino/optimizers/optimizer.h"
#include "sordino/random/random_source.h"
#include "sordino/training/internal/libtorch_seed.h"
#include "sordino/training/privacy_plan.h"
#include "sordino/training/trainer.h"

namespace sordino {

// What a source of sums is made of; references live longer.
struct SumSourceParts {
  const PrivacyPlan& plan;
  const TrainerOptions& options;
  const LossFunction& losses;
  bool clips;
  Communicator& communicator;
  RandomSource& shared;  // all ranks draw the same from it, in the same order
  NoiseProcess& noise;   // of this rank
  LibtorchDraws& draws;  // of this rank
};

class SumSource {
 public:
  explicit SumSource(const SumSourceParts& parts) : parts_(parts) {}
  virtual ~SumSource() = default;
  SumSource(const SumSource&) = delete;
  SumSource& operator=(const SumSource&) = delete;

  // Those that are trained, each once.
  virtual const std::vector<NamedParameter>& parameters() const = 0;
  // Of all parameters: for averaged weights and the number of updates.
  virtual Optimizer& optimizer() = 0;
  // Whether what it measured in a batch decides how it computes later ones.
  virtual bool LearnsFromBatches() const { return false; }

  // Before the first request: what batches are loaded from. It lives longer.
  void LoadFrom(RecordSource& records) { records_ = &records; }
  // The records of a step, to be made ready. `stream` is the one that they were drawn from.
  virtual void Request(std::int64_t step, std::vector<std::uint64_t> batch, Generator& stream) = 0;

  // Before the first charge: looks at the model with made-up records, where this process is alone.
  virtual void Look(const ClippingPolicy& policy, std::int64_t step) = 0;
  // This rank's part of the clipped sum over the batch that was requested first.
  virtual void Sum(const ClippingPolicy& policy, std::int64_t step) = 0;
  // Collective, once all ranks have their parts: the sum, without gradients where a rank has only a
  // shard of them. It lives until the update.
  virtual const BoundedSum& Total() = 0;
  // Collective: the sum with noise on it; what a rank has of it, or all of it on every rank.
  virtual NoisedGradients Noised(const StepNoise& noise, bool whole) = 0;
  // Collective: the update by what Noised has returned.
  virtual void Update(const NoisedGradients& gradients, bool whole) = 0;
  // Collective: both, where nobody else wants to see the noised gradients.
  virtual void NoiseAndUpdate(const StepNoise& noise) { Update(Noised(noise, false), false); }

  // Collective: the update by the sum itself, divided by this. Not private.
  virtual void UpdateWithoutNoise(double divisor) = 0;

  // The same without privacy. An empty batch makes no update.
  virtual void SumOrdinary(std::int64_t step) = 0;
  virtual void UpdateOrdinary() = 0;

  // Collective, and every rank by itself after the parameters were restored.
  virtual NamedTensors SaveOptimizer() = 0;
  virtual void RestoreOptimizer(const NamedTensors& state, std::int64_t updates) = 0;

 protected:
  const SumSourceParts& parts() const { return parts_; }
  RecordSource& records() { return *records_; }

 private:
  const SumSourceParts parts_;
  RecordSource* records_ = nullptr;
};

// Seeds libtorch's default generators. Throws Error where no parameter is trained.
std::unique_ptr<SumSource> MeasuredSums(const SumSourceParts& parts,
                                        std::vector<NamedParameter> parameters,
                                        const OptimizerOptions& optimizer);
// Collective: parameters get the values that they have on rank 0.
std::unique_ptr<SumSource> ChunkedSums(const SumSourceParts& parts,
                                       std::vector<NamedParameter> parameters,
                                       const OptimizerOptions& optimizer);

}  // namespace sordino

#endif  // SORDINO_TRAINING_INTERNAL_SUM_SOURCE_H_
