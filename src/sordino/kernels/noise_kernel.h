// The noise step on a GPU, as noise/device_noise.h calls it. Calls only put work on the stream, a
// cudaStream_t; their arguments travel with it, so nothing that they point to in the memory of the
// processor is read later. Errors are those of cudaGetLastError.
#ifndef SORDINO_KERNELS_NOISE_KERNEL_H_
#define SORDINO_KERNELS_NOISE_KERNEL_H_

#include <cstdint>

#include "sordino/kernels/correlated_block.h"
#include "sordino/kernels/grid_step.h"
#include "sordino/kernels/noised_tensors.h"
#include "sordino/random/indexed_draw.h"

namespace sordino::internal {

// Lies in the memory of the device.
struct DeviceNoiseState {
  ChaChaKey key;
  std::uint64_t draw;             // of the next launch
  std::uint32_t finished_blocks;  // of this launch
  GridStep step;
  MemoryView memory;
  double scale;  // of the table, in units of the last digit of draws
  IndexedTable table;
};

// Overwrites all of the state: draw 0 of the key, and no memory.
void StoreKey(DeviceNoiseState* state, const ChaChaKey& key, void* stream);
void StoreTable(DeviceNoiseState* state, const IndexedTable& table, double scale, void* stream);
void StoreMemory(DeviceNoiseState* state, const MemoryView& memory, void* stream);
// The number of the next draw becomes `draw`. With `only_raise` it stays what it is where that is
// larger.
void StoreStep(DeviceNoiseState* state, const GridStep& step, std::uint64_t draw, bool only_raise,
               void* stream);
// The noise step on these tensors; `remembers`: the state has a memory. After the last of the
// launches of a sum the number of the draw is one more. Stops the device when there is no table of
// the distribution.
void LaunchNoise(DeviceNoiseState* state, const NoisedTensors& tensors, bool remembers,
                 bool is_last, void* stream);
// The same, and a step of descent by the values, which are written nowhere.
void LaunchDescent(DeviceNoiseState* state, const NoisedTensors& tensors,
                   const DescentTarget& target, bool remembers, bool is_last, void* stream);

}  // namespace sordino::internal

#endif  // SORDINO_KERNELS_NOISE_KERNEL_H_
