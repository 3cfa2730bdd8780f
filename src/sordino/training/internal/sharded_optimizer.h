// An optimizer whose state is divided among ranks (ZeRO, stage 1: Rajbhandari, Rasley, Ruwase, He,
// arXiv 1910.02054).
//
// The parameters, one after the other, are one vector of Size() equal shards. A rank keeps what
// the algorithm remembers of its own shard, makes the step of it, and gathers the new values of
// all. All algorithms work coordinate by coordinate, so where shards begin does not show. Averaged
// weights are those of all parameters, on rank 0.
#ifndef SORDINO_TRAINING_INTERNAL_SHARDED_OPTIMIZER_H_
#define SORDINO_TRAINING_INTERNAL_SHARDED_OPTIMIZER_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "sordino/distributed/communicator.h"
#include "sordino/gradients/loss_function.h"
#include "sordino/gradients/named_tensors.h"
#include "sordino/gradients/noised_value.h"
#include "sordino/optimizers/optimizer.h"

namespace sordino {

class ShardedOptimizer {
 public:
  // The parameters are all trained and each stands once. Throws Error where they are not all
  // float32 or all float64, and as Optimizer does.
  ShardedOptimizer(std::vector<NamedParameter> parameters, const OptimizerOptions& options,
                   std::int64_t steps, Communicator& communicator);

  // Collective: the noised gradients of this rank's shard (gradients/fixed_point_sum.h).
  void Step(const NoisedGradients& shard);
  // Collective: gradients without privacy.
  void StepNonPrivate(const at::Tensor& shard);

  // Collective: as that of an Optimizer of all parameters, on every rank, but for averages, which
  // rank 0 has.
  NamedTensors SaveState();
  // Every rank by itself, after the parameters were restored.
  void RestoreState(const NamedTensors& state, std::int64_t steps_done);

  // For averaged weights and the number of steps.
  Optimizer& whole() { return whole_; }

 private:
  void GatherShards();
  void ReadShard();
  std::vector<at::Tensor> Cut(const at::Tensor& flat) const;

  std::vector<NamedParameter> parameters_;
  Communicator& communicator_;
  bool projects_;
  at::Tensor flat_;   // all shards, where ranks exchange them
  at::Tensor shard_;  // a leaf that the algorithm works on, on the CPU
  Optimizer optimizer_;
  Optimizer whole_;
};

}  // namespace sordino

#endif  // SORDINO_TRAINING_INTERNAL_SHARDED_OPTIMIZER_H_
