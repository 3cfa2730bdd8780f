#include <cuda_runtime.h>

#include "sordino/kernels/internal/fused_kernels.cuh"
#include "sordino/kernels/internal/fused_launch.h"

namespace sordino {

cudaError_t LaunchNorms(const RowsSource& source, const FusedPlan& plan, FusedPrecision precision,
                        const FusedWork& work, cudaStream_t stream) {
  return LaunchChoice<FusedOutput::kNorms>(RowsChoices(), plan.choice, source, precision, work,
                             plan.norms.chunks, stream);
}

}  // namespace sordino
