// Bulk Gaussian noise beside torch::randn on one core in one run:
//   build/release/bin/random_torch_benchmark
// TorchRandn makes a new tensor each time; TorchNormalInPlace and the noise here fill one that
// exists.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <benchmark/benchmark.h>

#include <cstdint>
#include <span>
#include <vector>

#include "sordino/random/generator.h"
#include "sordino/random/grid_noise.h"

namespace sordino {
namespace {

void TorchRandn(benchmark::State& state) {
  at::set_num_threads(1);
  for (auto _ : state) {
    at::Tensor noise = at::randn({state.range(0)}, at::kFloat);
    benchmark::DoNotOptimize(noise.data_ptr());
  }
  state.SetItemsProcessed(state.range(0) * state.iterations());
}
BENCHMARK(TorchRandn)->Arg(1 << 14)->Arg(1 << 20)->Arg(1 << 24);

void TorchNormalInPlace(benchmark::State& state) {
  at::set_num_threads(1);
  at::Tensor noise = at::empty({state.range(0)}, at::kFloat);
  for (auto _ : state) {
    noise.normal_();
    benchmark::DoNotOptimize(noise.data_ptr());
  }
  state.SetItemsProcessed(state.range(0) * state.iterations());
}
BENCHMARK(TorchNormalInPlace)->Arg(1 << 14)->Arg(1 << 20)->Arg(1 << 24);

void GridGaussianFill(benchmark::State& state) {
  SecureGenerator generator;
  const GridGaussian noise(1.0, GridPrecision::kFloat);
  std::vector<float> buffer(state.range(0));
  for (auto _ : state) {
    noise.Fill(generator, std::span<float>(buffer));
    benchmark::DoNotOptimize(buffer.data());
  }
  state.SetItemsProcessed(state.range(0) * state.iterations());
}
BENCHMARK(GridGaussianFill)->Arg(1 << 14)->Arg(1 << 20)->Arg(1 << 24);

}  // namespace
}  // namespace sordino
