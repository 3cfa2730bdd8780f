// The noise step of training beside what an ordinary framework would do: add randn to every tensor.
#include <ATen/Functions.h>
#include <benchmark/benchmark.h>

#include "sordino/gradients/testing/forged_values.h"
#include "sordino/noise/gradient_noise.h"

namespace sordino {
namespace {

BoundedSum SumOf(std::int64_t coordinates) {
  return ForgedSum(
      {.gradients = {at::zeros({coordinates}, at::kFloat)}, .sensitivity = L2Sensitivity(1)});
}

void GridNoise(benchmark::State& state) {
  const BoundedSum sum = SumOf(state.range(0));
  RandomSource source;
  StepNoise noise;
  for (auto unused : state) {
    benchmark::DoNotOptimize(AddNoise(sum, noise, source));
    ++noise.step;
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

void TorchRandn(benchmark::State& state) {
  const BoundedSum sum = SumOf(state.range(0));
  for (auto unused : state) {
    at::Tensor noised = at::randn_like(sum.gradients[0]).mul_(1.5).add_(sum.gradients[0]);
    benchmark::DoNotOptimize(noised.div_(256));
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

BENCHMARK(GridNoise)->Arg(26'010)->Arg(1 << 20)->UseRealTime();
BENCHMARK(TorchRandn)->Arg(26'010)->Arg(1 << 20)->UseRealTime();

}  // namespace
}  // namespace sordino
