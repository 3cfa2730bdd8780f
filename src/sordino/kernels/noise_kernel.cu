#include "sordino/kernels/noise_kernel.h"

#include <cuda_runtime.h>

namespace sordino::internal {
namespace {

constexpr int kThreads = 128;
constexpr int kBlocksPerProcessor = 8;

static_assert(sizeof(IndexedQuickTable) % sizeof(std::uint32_t) == 0);
// What a kernel may have as arguments, by default and at most.
static_assert(sizeof(NoisedTensors) + 2 * sizeof(DeviceNoiseState*) <= 4096);
static_assert(sizeof(NoisedTensors) + sizeof(DescentTarget) + 2 * sizeof(DeviceNoiseState*) <=
              32764);
static_assert(sizeof(IndexedTable) + sizeof(DeviceNoiseState*) <= 32764);

__global__ void StoreKeyKernel(DeviceNoiseState* state, ChaChaKey key) {
  state->key = key;
  state->draw = 0;
  state->finished_blocks = 0;
  state->step = {0, 0, kFinerBits};
  state->memory = {MemoryKind::kNone, 0, 0, 0, nullptr, nullptr, nullptr};
  state->scale = 0;
  // Nothing is accepted until there is a table.
  state->table.quick.bins = 0;
  for (IndexedQuickTable::Column& column : state->table.quick.column) column = {0, 0};
  state->table.quick.sure_below[0] = 0;
}

__global__ void StoreMemoryKernel(DeviceNoiseState* state, MemoryView memory) {
  state->memory = memory;
}

__global__ void StoreTableKernel(DeviceNoiseState* state,
                                 const __grid_constant__ IndexedTable table, double scale) {
  if (threadIdx.x == 0) state->scale = scale;
  const auto* from = reinterpret_cast<const std::uint64_t*>(&table);
  auto* to = reinterpret_cast<std::uint64_t*>(&state->table);
  static_assert(sizeof(IndexedTable) % sizeof(std::uint64_t) == 0);
  for (unsigned i = threadIdx.x; i < sizeof(IndexedTable) / sizeof(std::uint64_t);
       i += blockDim.x) {
    to[i] = from[i];
  }
}

__global__ void StoreStepKernel(DeviceNoiseState* state, GridStep step, std::uint64_t draw,
                                bool only_raise) {
  state->step = step;
  if (draw > state->draw || !only_raise) state->draw = draw;
}

// The last block of a launch counts the draw, when no block reads its number any more.
__device__ void CountDraw(DeviceNoiseState* state, std::uint64_t draw) {
  __syncthreads();
  if (threadIdx.x != 0) return;
  __threadfence();
  if (atomicAdd(&state->finished_blocks, 1U) != gridDim.x - 1) return;
  state->finished_blocks = 0;
  state->draw = draw + 1;
}

// Of the coordinates of a group, those of these tensors: a group that they share with another launch
// is remembered in parts.
__device__ void CorrelateGroup(const DeviceNoiseState& state, const NoisedTensors& tensors,
                               std::uint64_t draw, std::int64_t group,
                               std::int64_t (&draws)[kIndexedGroup]) {
  const std::int64_t begin = tensors.tensor[0].begin;
  const std::int64_t end = tensors.tensor[tensors.count - 1].end;
  const std::int64_t first = group * kIndexedGroup;
  const std::int64_t from = first < begin ? begin : first;
  const std::int64_t to = first + kIndexedGroup < end ? first + kIndexedGroup : end;
  CorrelateBlock<kIndexedGroup>(state.memory, static_cast<std::int64_t>(draw), state.scale, from,
                                static_cast<int>(to - from), draws + (from - first));
}

template <bool kRemembers, typename Target>
__global__ void __launch_bounds__(kThreads, kBlocksPerProcessor)
    NoiseKernel(DeviceNoiseState* state, const __grid_constant__ NoisedTensors tensors,
                bool is_last, const __grid_constant__ Target target) {
  __shared__ IndexedQuickTable quick;
  __shared__ ChaChaKey key;
  {
    const auto* from = reinterpret_cast<const std::uint32_t*>(&state->table.quick);
    auto* to = reinterpret_cast<std::uint32_t*>(&quick);
    for (unsigned i = threadIdx.x; i < sizeof(quick) / sizeof(std::uint32_t); i += kThreads) {
      to[i] = from[i];
    }
    if (threadIdx.x < 8) key.word[threadIdx.x] = state->key.word[threadIdx.x];
  }
  const std::uint64_t draw = state->draw;
  const GridStep step = state->step;
  __syncthreads();

  const std::int64_t first = tensors.tensor[0].begin / kIndexedGroup;
  const std::int64_t end = tensors.tensor[tensors.count - 1].end;
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * kThreads;
  for (std::int64_t group = first + blockIdx.x * std::int64_t{kThreads} + threadIdx.x;
       group * kIndexedGroup < end; group += stride) {
    std::int64_t draws[kIndexedGroup];
    // Else a sum without noise would be released.
    if (!DrawIndexedGroup(key, draw, static_cast<std::uint64_t>(group), quick, state->table,
                          draws)) {
      __trap();
    }
    if constexpr (kRemembers) CorrelateGroup(*state, tensors, draw, group, draws);
    ReleaseGroup(tensors, group, draws, step, target);
  }
  if (is_last) CountDraw(state, draw);
}

int BlocksFor(const NoisedTensors& tensors) {
  int device = 0;
  int processors = 1;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
  const std::int64_t first = tensors.tensor[0].begin / kIndexedGroup;
  const std::int64_t last = (tensors.tensor[tensors.count - 1].end - 1) / kIndexedGroup;
  const std::int64_t wanted = (last - first + kThreads) / kThreads;
  const std::int64_t most = static_cast<std::int64_t>(processors) * kBlocksPerProcessor;
  return static_cast<int>(wanted < most ? wanted : most);
}

cudaStream_t On(void* stream) { return static_cast<cudaStream_t>(stream); }

template <typename Target>
void Launch(DeviceNoiseState* state, const NoisedTensors& tensors, const Target& target,
            bool remembers, bool is_last, void* stream) {
  const int blocks = BlocksFor(tensors);
  if (remembers) {
    NoiseKernel<true><<<blocks, kThreads, 0, On(stream)>>>(state, tensors, is_last, target);
  } else {
    NoiseKernel<false><<<blocks, kThreads, 0, On(stream)>>>(state, tensors, is_last, target);
  }
}

}  // namespace

void StoreKey(DeviceNoiseState* state, const ChaChaKey& key, void* stream) {
  StoreKeyKernel<<<1, 1, 0, On(stream)>>>(state, key);
}

void StoreTable(DeviceNoiseState* state, const IndexedTable& table, double scale,
                void* stream) {
  StoreTableKernel<<<1, 256, 0, On(stream)>>>(state, table, scale);
}

void StoreMemory(DeviceNoiseState* state, const MemoryView& memory, void* stream) {
  StoreMemoryKernel<<<1, 1, 0, On(stream)>>>(state, memory);
}

void StoreStep(DeviceNoiseState* state, const GridStep& step, std::uint64_t draw, bool only_raise,
               void* stream) {
  StoreStepKernel<<<1, 1, 0, On(stream)>>>(state, step, draw, only_raise);
}

void LaunchNoise(DeviceNoiseState* state, const NoisedTensors& tensors, bool remembers,
                 bool is_last, void* stream) {
  Launch(state, tensors, NoisedTarget{}, remembers, is_last, stream);
}

void LaunchDescent(DeviceNoiseState* state, const NoisedTensors& tensors,
                   const DescentTarget& target, bool remembers, bool is_last,
                   void* stream) {
  Launch(state, tensors, target, remembers, is_last, stream);
}

}  // namespace sordino::internal
