// Launches of the kernels of fused_product.h: one function for each kind of operands and result,
// each in a file of its own, because they take long to compile.
#ifndef SORDINO_KERNELS_INTERNAL_FUSED_LAUNCH_H_
#define SORDINO_KERNELS_INTERNAL_FUSED_LAUNCH_H_

#include <cuda_runtime.h>

#include <cstdint>

#include "sordino/kernels/fused_plan.h"
#include "sordino/kernels/fused_product.h"
#include "sordino/kernels/fused_rows.h"
#include "sordino/kernels/fused_windows.h"

namespace sordino {

// What is made of the product of an example.
enum class FusedOutput : std::uint8_t { kNorms, kSums, kGradients };

// What a launch is about, beside its operands.
struct FusedWork {
  int tiles_m = 1;
  int tiles_n = 1;
  int tiles = 1;  // of all groups
  int stages = 2;
  int stage_words = 0;
  int examples_per_block = 1;
  const double* factors = nullptr;  // of a sum
  // Norms: [examples, tiles, output warps]; sums: [chunks, groups * m, n].
  double* partial = nullptr;
  float* gradients = nullptr;  // [examples, groups * m, n]
};

cudaError_t LaunchNorms(const RowsSource& source, const FusedPlan& plan, FusedPrecision precision,
                        const FusedWork& work, cudaStream_t stream);
cudaError_t LaunchNorms(const WindowSource& source, const FusedPlan& plan, FusedPrecision precision,
                        const FusedWork& work, cudaStream_t stream);
cudaError_t LaunchGradients(const RowsSource& source, const FusedPlan& plan,
                            FusedPrecision precision, const FusedWork& work, cudaStream_t stream);
cudaError_t LaunchGradients(const WindowSource& source, const FusedPlan& plan,
                            FusedPrecision precision, const FusedWork& work, cudaStream_t stream);
cudaError_t LaunchSums(const RowsSource& source, const FusedPlan& plan, FusedPrecision precision,
                       const FusedWork& work, cudaStream_t stream);
cudaError_t LaunchSums(const WindowSource& source, const FusedPlan& plan, FusedPrecision precision,
                       const FusedWork& work, cudaStream_t stream);

}  // namespace sordino

#endif  // SORDINO_KERNELS_INTERNAL_FUSED_LAUNCH_H_
