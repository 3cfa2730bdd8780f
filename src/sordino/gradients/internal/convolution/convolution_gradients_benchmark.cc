// Every convolution of the `mnist` and `cifar10` models of the peers' benchmark (arXiv 2010.09063)
// and a depthwise one at batch 256, beside libtorch's own weight gradient of the whole batch in the
// same run.
//
// Counters: gflops (ours, 2 * positions * weights an example, whatever was really computed),
// libtorch_gflops, and `speedup`, libtorch's time over ours.
#include <ATen/core/Tensor.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/randn_like.h>
#include <ATen/ops/zeros.h>
#include <benchmark/benchmark.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sordino/gradients/internal/convolution/convolution_gradients.h"
#include "sordino/kernels/example_layout.h"

namespace sordino {
namespace {

constexpr std::int64_t kBatch = 256;

struct Layer {
  const char* name;
  std::int64_t in, out, kernel, stride, padding, size;
  std::int64_t groups = 1;
};

constexpr std::array kLayers = {
    Layer{"mnist/1_16_k8_s2_p3_28x28", 1, 16, 8, 2, 3, 28},
    Layer{"mnist/16_32_k4_s2_13x13", 16, 32, 4, 2, 0, 13},
    Layer{"cifar10/3_32_32x32", 3, 32, 3, 1, 1, 32},
    Layer{"cifar10/32_32_32x32", 32, 32, 3, 1, 1, 32},
    Layer{"cifar10/32_64_16x16", 32, 64, 3, 1, 1, 16},
    Layer{"cifar10/64_64_16x16", 64, 64, 3, 1, 1, 16},
    Layer{"cifar10/64_128_8x8", 64, 128, 3, 1, 1, 8},
    Layer{"cifar10/128_128_8x8", 128, 128, 3, 1, 1, 8},
    Layer{"cifar10/128_256_4x4", 128, 256, 3, 1, 1, 4},
    Layer{"cifar10/256_10_4x4", 256, 10, 3, 1, 1, 4},
    Layer{"resnet18/512_512_2x2", 512, 512, 3, 1, 1, 2},
    Layer{"depthwise/64_64_16x16", 64, 64, 3, 1, 1, 16, 64},
};

struct Operands {
  Convolution convolution;
  at::Tensor input, weight, output_gradient;
};

Operands Make(const Layer& layer) {
  Operands operands;
  operands.convolution = {{layer.out, layer.in / layer.groups, layer.kernel, layer.kernel},
                          {layer.stride, layer.stride},
                          {layer.padding, layer.padding},
                          {1, 1},
                          false,
                          layer.groups};
  operands.input = at::randn({kBatch, layer.in, layer.size, layer.size});
  operands.weight = at::randn(operands.convolution.weight);
  const Convolution& c = operands.convolution;
  operands.output_gradient =
      at::randn_like(at::convolution(operands.input, operands.weight, {}, c.stride, c.padding,
                                     c.dilation, false, {0, 0}, c.groups));
  return operands;
}

template <typename Work>
double Seconds(const Work& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

template <typename Work>
void Compare(benchmark::State& state, const Operands& operands, const Work& work) {
  const Convolution& c = operands.convolution;
  const auto libtorch = [&] {
    benchmark::DoNotOptimize(at::convolution_backward(
        operands.output_gradient, operands.input, operands.weight, at::OptionalIntArrayRef(),
        c.stride, c.padding, c.dilation, false, {0, 0}, c.groups, {false, true, false}));
  };
  libtorch();
  work();
  double ours = 0;
  double theirs = 0;
  for (auto _ : state) {
    const double seconds = Seconds(work);
    state.SetIterationTime(seconds);
    ours += seconds;
    theirs += Seconds(libtorch);
  }
  const at::Tensor& gradient = operands.output_gradient;
  const auto iterations = static_cast<double>(state.iterations());
  const double flops = 2e-9 * iterations * static_cast<double>(kBatch) *
                       static_cast<double>(gradient.size(2) * gradient.size(3)) *
                       static_cast<double>(operands.weight.numel());
  state.counters["gflops"] = flops / ours;
  state.counters["libtorch_gflops"] = flops / theirs;
  state.counters["speedup"] = theirs / ours;
}

void GradientsWithNorms(benchmark::State& state, const Layer& layer) {
  const Operands operands = Make(layer);
  const at::Tensor squared = at::zeros({kBatch}, at::kDouble);
  Compare(state, operands, [&] {
    benchmark::DoNotOptimize(ConvolutionGradients(
        operands.convolution, operands.input, operands.output_gradient, {1, kBatch, 1}, squared));
  });
}

void Norms(benchmark::State& state, const Layer& layer) {
  const Operands operands = Make(layer);
  const at::Tensor squared = at::zeros({kBatch}, at::kDouble);
  Compare(state, operands, [&] {
    AddConvolutionSquaredNorms(operands.convolution, operands.input, operands.output_gradient,
                               {1, kBatch, 1}, squared);
  });
}

void WeightedSum(benchmark::State& state, const Layer& layer) {
  const Operands operands = Make(layer);
  const at::Tensor factors = at::full({kBatch}, 0.3, at::kDouble);
  Compare(state, operands, [&] {
    benchmark::DoNotOptimize(WeightedConvolutionGradient(
        operands.convolution, operands.input, operands.output_gradient, {1, kBatch, 1}, factors));
  });
}

const bool kRegistered = [] {
  for (const Layer& layer : kLayers) {
    const std::string name = layer.name;
    for (const auto& [what, work] :
         {std::pair("/gradients", &GradientsWithNorms), std::pair("/norms", &Norms),
          std::pair("/sum", &WeightedSum)}) {
      benchmark::RegisterBenchmark((name + what).c_str(), work, layer)
          ->UseManualTime()
          ->Unit(benchmark::kMillisecond);
    }
  }
  return true;
}();

}  // namespace
}  // namespace sordino
