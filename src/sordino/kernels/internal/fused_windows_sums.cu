#include <cuda_runtime.h>

#include "sordino/kernels/internal/fused_kernels.cuh"
#include "sordino/kernels/internal/fused_launch.h"

namespace sordino {

cudaError_t LaunchSums(const WindowSource& source, const FusedPlan& plan, FusedPrecision precision,
                       const FusedWork& work, cudaStream_t stream) {
  return LaunchChoice<FusedOutput::kSums>(WindowChoices(), plan.choice, source, precision, work,
                            plan.sums.chunks, stream);
}

}  // namespace sordino
