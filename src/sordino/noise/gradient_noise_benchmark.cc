// The noise step of training beside what an ordinary framework would do: add randn to every tensor.
#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <benchmark/benchmark.h>

#include "sordino/gradients/testing/forged_values.h"
#include "sordino/noise/device_noise.h"
#include "sordino/noise/gradient_noise.h"

namespace sordino {
namespace {

BoundedSum SumOf(std::int64_t coordinates, at::Device device = at::kCPU) {
  return ForgedSum(
      {.gradients = {at::zeros({coordinates}, at::TensorOptions(device).dtype(at::kFloat))},
       .sensitivity = L2Sensitivity(1)});
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

// Whether there is a GPU with the kernel; else the benchmark says so.
bool HasDevice(benchmark::State& state) {
  if (at::getNumGPUs() > 0 && DeviceNoise::IsBuilt()) return true;
  state.SkipWithError("no CUDA device, or noise on a device is not built");
  return false;
}

void WaitForDevice() { at::detail::getCUDAHooks().deviceSynchronize(0); }

// As it is called in training, one step after another without waiting.
void DeviceStep(benchmark::State& state) {
  if (!HasDevice(state)) return;
  const BoundedSum sum = SumOf(state.range(0), at::Device(at::kCUDA, 0));
  RandomSource source;
  StepNoise noise;
  for (auto unused : state) {
    benchmark::DoNotOptimize(AddNoise(sum, noise, source));
    ++noise.step;
  }
  WaitForDevice();
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

// Launches alone, waited for once in sixteen.
void DeviceLaunch(benchmark::State& state) {
  if (!HasDevice(state)) return;
  constexpr std::int64_t kLaunches = 16;
  const BoundedSum sum = SumOf(state.range(0), at::Device(at::kCUDA, 0));
  const std::vector<at::Tensor> noised = {at::empty_like(sum.gradients[0])};
  RandomSource source;
  DeviceNoise noise(at::Device(at::kCUDA, 0), source);
  noise.SetStep({}, sum.sensitivity, state.range(0));
  for (auto unused : state) {
    for (std::int64_t i = 0; i < kLaunches; ++i) noise.Launch(sum.gradients, noised);
    WaitForDevice();
  }
  state.SetItemsProcessed(state.iterations() * kLaunches * state.range(0));
}

void DeviceRandn(benchmark::State& state) {
  if (!HasDevice(state)) return;
  const BoundedSum sum = SumOf(state.range(0), at::Device(at::kCUDA, 0));
  for (auto unused : state) {
    at::Tensor noised = at::randn_like(sum.gradients[0]).mul_(1.5).add_(sum.gradients[0]);
    benchmark::DoNotOptimize(noised.div_(256));
  }
  WaitForDevice();
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

BENCHMARK(GridNoise)->Arg(26'010)->Arg(1 << 20)->UseRealTime();
BENCHMARK(TorchRandn)->Arg(26'010)->Arg(1 << 20)->UseRealTime();
BENCHMARK(DeviceStep)->Arg(26'010)->Arg(1 << 20)->Arg(1 << 27)->UseRealTime();
BENCHMARK(DeviceLaunch)->Arg(26'010)->Arg(1 << 20)->Arg(1 << 27)->UseRealTime();
BENCHMARK(DeviceRandn)->Arg(26'010)->Arg(1 << 20)->Arg(1 << 27)->UseRealTime();

}  // namespace
}  // namespace sordino
