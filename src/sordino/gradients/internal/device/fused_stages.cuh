// What the kernels of fused_product.h have in common.
#ifndef SORDINO_GRADIENTS_INTERNAL_DEVICE_FUSED_STAGES_CUH_
#define SORDINO_GRADIENTS_INTERNAL_DEVICE_FUSED_STAGES_CUH_

#include "sordino/gradients/internal/device/fused_tile.h"

namespace sordino {

__device__ __forceinline__ void Commit() { asm volatile("cp.async.commit_group;"); }

// Waits until all but the last stages - 2 groups of copies of this thread have arrived.
__device__ __forceinline__ void WaitForStage(int stages) {
  if (stages == 2) {
    asm volatile("cp.async.wait_group 0;" ::: "memory");
  } else if (stages == 3) {
    asm volatile("cp.async.wait_group 1;" ::: "memory");
  } else {
    asm volatile("cp.async.wait_group 2;" ::: "memory");
  }
}

// In every lane, always in the same order.
__device__ __forceinline__ double SumOfLanes(double sum) {
#pragma unroll
  for (int distance = kWarpLanes / 2; distance > 0; distance /= 2) {
    sum += __shfl_xor_sync(0xffffffffU, sum, distance);
  }
  return sum;
}

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_INTERNAL_DEVICE_FUSED_STAGES_CUH_
