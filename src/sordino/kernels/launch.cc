#include "sordino/kernels/launch.h"

#ifdef SORDINO_CUDA

#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

namespace sordino::kernels {

bool IsCapturing() {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  C10_CUDA_CHECK(cudaStreamIsCapturing(c10::cuda::getCurrentCUDAStream(), &status));
  return status != cudaStreamCaptureStatusNone;
}

void WaitForDevice() { C10_CUDA_CHECK(cudaDeviceSynchronize()); }

void* StreamOf(c10::Device device) {
  return c10::cuda::getCurrentCUDAStream(device.index()).stream();
}

void CheckLaunch() { C10_CUDA_CHECK(cudaGetLastError()); }

}  // namespace sordino::kernels

#else

namespace sordino::kernels {

bool IsCapturing() { return false; }
void WaitForDevice() {}

}  // namespace sordino::kernels

#endif
