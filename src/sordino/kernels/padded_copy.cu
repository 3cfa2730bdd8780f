#include <cuda_runtime.h>

#include "sordino/kernels/padded_words.h"

namespace sordino::kernels {
namespace {

constexpr int kCopyThreads = 256;
constexpr std::int64_t kMostBlocks = 1024;

// Row y of the grid is tensor y, the last one the mask.
__global__ void PaddedCopyKernel(const __grid_constant__ PaddedTensors all) {
  const int k = static_cast<int>(blockIdx.y);
  const std::int64_t words = WordsOf(all, k);
  const std::int64_t stride = std::int64_t{gridDim.x} * kCopyThreads;
  for (std::int64_t at = std::int64_t{blockIdx.x} * kCopyThreads + threadIdx.x; at < words;
       at += stride) {
    CopyPadded(all, k, at);
  }
}

}  // namespace

void LaunchPaddedCopy(const PaddedTensors& all, void* stream) {
  std::int64_t most = 1;
  for (int k = 0; k <= all.count; ++k) most = WordsOf(all, k) > most ? WordsOf(all, k) : most;
  const std::int64_t blocks = (most + kCopyThreads - 1) / kCopyThreads;
  const dim3 grid(static_cast<unsigned>(blocks < kMostBlocks ? blocks : kMostBlocks),
                  static_cast<unsigned>(all.count + 1));
  PaddedCopyKernel<<<grid, kCopyThreads, 0, static_cast<cudaStream_t>(stream)>>>(all);
}

}  // namespace sordino::kernels
