#include <ATen/core/Tensor.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "sordino/gradients/internal/device/padded_copy.h"

namespace sordino {

bool HasPaddedCopy() { return true; }

void DevicePaddedCopy(const device::PaddedTensors& all, const at::Tensor& mask) {
  const c10::cuda::CUDAGuard guard(mask.device());
  device::LaunchPaddedCopy(all, c10::cuda::getCurrentCUDAStream().stream());
  C10_CUDA_CHECK(cudaGetLastError());
}

}  // namespace sordino
