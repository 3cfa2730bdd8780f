// The steps of a run on several ranks.
//
// Rank 0 leads: what it is asked for (a step, a saved state) it announces, and the other ranks,
// which serve, do their part of it. One step:
//
//   1. The batch is drawn by every rank from one source that all share, and cut into chunks
//      (gradients/chunks.h). Rank r computes chunks r, r + Size(), ...; dropout and augmentation
//      of a chunk are drawn from a stream of its own.
//   2. Sums of chunks are integers (gradients/fixed_point_sum.h); each rank gets the total of its
//      shard of the coordinates.
//   3. Rank 0 charges the step and announces it. No rank draws noise before it has heard that.
//   4. Each rank adds noise to its shard, once for all ranks: the total is noised as one process
//      would do it. The noise comes from a source of the rank's own. Where the clipping policy or
//      canaries need all noised shards, these are gathered.
//   5. Each rank makes the optimizer's step of its shard, and gathers the parameters of all.
//   6. Where held-out records are measured, each rank counts some of them. Rank 0 adds noise to the
//      sum, and tells the noised count and the noise of the following steps.
//
// All ranks have the coins of canaries and of held-out records, which they need to draw batches;
// scores of canaries are those of rank 0.
//
// So neither the batch, nor the sum, nor (in a seeded run) the noise depends on the number of
// ranks. What a rank cannot do it tells before the sums are added up, and all ranks stop with its
// sentence.
//
// A run without privacy, for comparisons, has one part of the batch for each rank, ordinary
// gradients, and neither a charge nor noise; its last bits depend on the number of ranks.
#ifndef SORDINO_TRAINING_INTERNAL_DISTRIBUTED_TRAINER_H_
#define SORDINO_TRAINING_INTERNAL_DISTRIBUTED_TRAINER_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sordino/clipping/norms_component.h"
#include "sordino/data/batch_loader.h"
#include "sordino/data/dataset.h"
#include "sordino/distributed/communicator.h"
#include "sordino/gradients/bounded_sum.h"
#include "sordino/gradients/loss_function.h"
#include "sordino/gradients/named_tensors.h"
#include "sordino/gradients/noised_value.h"
#include "sordino/optimizers/optimizer.h"
#include "sordino/training/adaptive_noise.h"
#include "sordino/training/internal/held_out_records.h"
#include "sordino/training/internal/run_canaries.h"
#include "sordino/training/internal/sharded_optimizer.h"
#include "sordino/training/privacy_plan.h"
#include "sordino/training/trainer.h"

namespace sordino {

class DistributedTrainer {
 public:
  // Collective. Parameters get the values that they have on rank 0. Throws Error for what several
  // ranks cannot do.
  DistributedTrainer(const PrivacyPlan& plan, std::vector<NamedParameter> parameters,
                     LossFunction losses, const Dataset& data, const OptimizerOptions& optimizer,
                     TrainerOptions options, bool clip_and_noise);
  // Rank 0 dismisses the others, unless they have stopped with it.
  ~DistributedTrainer();
  DistributedTrainer(const DistributedTrainer&) = delete;
  DistributedTrainer& operator=(const DistributedTrainer&) = delete;

  // As those of Trainer; on rank 0.
  void Step();
  NamedTensors SaveState();
  void RestoreState(const NamedTensors& state, std::int64_t steps_done);

  // The other ranks: until rank 0 has ended.
  void Serve();

  std::int64_t steps_done() const { return done_; }
  bool is_private() const { return is_noised_ && noise_source_.IsPrivate(); }
  const PrivacyPlan& plan() const { return plan_; }
  Optimizer& optimizer() { return optimizer_.whole(); }
  // As those of Trainer; on rank 0.
  CanaryScores canary_scores() const { return canaries_.Scores(); }
  std::vector<HeldOutMeasurement> measurements() const {
    return adaptive_ ? adaptive_->measurements() : std::vector<HeldOutMeasurement>();
  }

 private:
  struct Request {
    std::int64_t examples = 0;                       // of the batch of all ranks
    std::vector<std::unique_ptr<Generator>> models;  // of the chunks of this rank
    std::vector<std::int64_t> canaries;              // gradients among those that were drawn
  };

  void Announce(const std::string& what);
  std::vector<Chunk> Cut(std::int64_t examples) const;
  std::unique_ptr<Generator> SharedStream(std::int64_t step, std::uint32_t purpose);
  std::unique_ptr<HeldOutRecords> HoldOut(const Dataset& data);
  void RequestNext();
  Request TakeRequest();
  FixedPointSum SumOfOwnChunks(const Request& request, const ClippingPolicy& policy);
  std::vector<at::Tensor> GradientsOfOwnPart(const Request& request);
  bool WaitForCharge();
  NoisedGradients AfterNoise(NoisedGradients shard, const BoundedSum& counts, std::int64_t step);
  bool Measure(std::int64_t step);
  bool MakeStep();
  void MakeOrdinaryStep();
  NamedTensors GatherState();
  void ShareState(const NamedTensors& state, std::int64_t steps_done);
  Event ChargeOf(std::int64_t step) const;

  PrivacyPlan plan_;
  std::vector<NamedParameter> parameters_;
  LossFunction losses_;
  TrainerOptions options_;
  bool is_noised_;
  Communicator& communicator_;
  // Batches, dropout, augmentation, noise on counts, directions of estimated norms, held-out
  // records, coins of canaries. All ranks ask it for the same streams in the same order.
  RandomSource shared_source_;
  RandomSource noise_source_;
  std::unique_ptr<StepChunks> sums_;
  std::unique_ptr<ClippingState> clipping_;
  ShardedOptimizer optimizer_;
  std::optional<AdaptiveNoise> adaptive_;
  std::unique_ptr<HeldOutRecords> held_out_;  // null: there are none
  std::uint64_t records_;                     // that are trained on
  std::unique_ptr<BatchSampler> sampler_;
  RunCanaries canaries_;
  BatchLoader loader_;
  std::deque<Request> requests_;
  std::int64_t first_ = 0;  // the step that this trainer began with
  std::int64_t requested_ = 0;
  std::int64_t done_ = 0;
  bool is_broken_ = false;
};

}  // namespace sordino

#endif  // SORDINO_TRAINING_INTERNAL_DISTRIBUTED_TRAINER_H_
