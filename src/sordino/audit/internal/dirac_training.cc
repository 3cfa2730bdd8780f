#include "sordino/audit/internal/dirac_training.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>

#include "sordino/data/dataset.h"

namespace sordino::internal {
namespace {

// What a row of a canary has of its size.
double FactorOf(World world, Adjacency adjacency) {
  if (world == World::kWith) return 1;
  return adjacency == Adjacency::kReplaceOne ? -1 : 0;
}

Dataset DataOf(const DiracTraining& training, World world, std::int64_t place) {
  const Adjacency adjacency = training.plan.adjacency;
  const bool missing = world == World::kWithout && adjacency == Adjacency::kAddRemove;
  const std::int64_t rows = missing ? 0 : training.rows;
  const std::int64_t block = rows + training.fillers;
  Dataset data;
  data.declaration.name = "canaries";
  data.declaration.kind = InputKind::kFeatures;
  data.declaration.shape = {training.canaries};
  data.declaration.classes = 2;
  data.declaration.rows_per_user = training.plan.rows_per_user;
  data.inputs = at::zeros({training.canaries, block, training.canaries}, at::kFloat);
  const double value = training.size * FactorOf(world, adjacency);
  for (std::int64_t row = 0; row < block; ++row) {
    data.inputs.select(1, (place + row) % block)
        .fill_diagonal_(row < rows ? value : training.filler_size);
  }
  data.inputs = data.inputs.view({training.canaries * block, training.canaries});
  data.labels = at::zeros({data.inputs.size(0)}, at::kLong);
  return data;
}

at::Tensor Weights(std::int64_t size) {
  return at::zeros({size}, at::kFloat).set_requires_grad(true);
}

}  // namespace

PrivacyPlan PlanOf(const DiracTraining& training, Delta delta) {
  PlanOptions options = training.plan;
  options.records = training.Records();
  return {options, training.noise, delta};
}

void TrainDiracs(const DiracTraining& training, World world, std::int64_t place,
                 std::optional<std::uint64_t> seed, const WatchStep& watch) {
  // Nothing that is drawn depends on delta.
  const PrivacyPlan plan = PlanOf(training, Delta(1e-2));
  const Dataset data = DataOf(training, world, place);
  const at::Tensor first = Weights(training.canaries);
  const at::Tensor second = Weights(training.canaries);
  const LossFunction losses = [&](const Batch& batch) {
    return at::matmul(batch[0], first) + at::matmul(batch[0], second);
  };
  TrainerOptions options;
  options.gradients = {.physical_batch = training.Records(), .probe = false, .checked_examples = 0};
  options.insecure_seed = seed;
  Trainer trainer(plan, {{"first.weight", first}, {"second.weight", second}}, losses, data,
                  {.learning_rate = 1}, options);
  for (std::int64_t step = 0; step < plan.steps(); ++step) {
    {
      // A step releases its update alone: weights begin at 0, so that float32 rounds it least.
      const at::NoGradGuard no_grad;
      first.zero_();
      second.zero_();
    }
    trainer.Step();
    const at::Tensor moved = at::stack({first.detach(), second.detach()}).to(at::kDouble);
    watch(trainer, moved * -plan.Divisor(step));
  }
}

}  // namespace sordino::internal
