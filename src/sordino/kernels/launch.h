// How kernels are launched.
//
// A launch is compiled where the program is built with a CUDA compiler (cmake/SordinoCuda.cmake),
// and nowhere else: other programs need no second form of a kernel. Whoever launches one asks
// kKernelsAreBuilt first.
#ifndef SORDINO_KERNELS_LAUNCH_H_
#define SORDINO_KERNELS_LAUNCH_H_

#include <ATen/core/Tensor.h>
#include <c10/core/DeviceGuard.h>

#include "sordino/base/check.h"

namespace sordino {

#ifdef SORDINO_CUDA
inline constexpr bool kKernelsAreBuilt = true;
#else
inline constexpr bool kKernelsAreBuilt = false;
#endif

namespace kernels {

// Whether what is put on the current stream is recorded instead of run.
bool IsCapturing();
// Until all that was put on the current device is done.
void WaitForDevice();

// The current stream of a CUDA device, a cudaStream_t. Only where kernels are built.
void* StreamOf(c10::Device device);
// Throws c10::Error for what CUDA says of the last launch. Only where kernels are built.
void CheckLaunch();

}  // namespace kernels

// Calls launch(stream) on the device of a tensor, with the current stream there. `launch` is a
// lambda whose parameter is `auto`: where no kernels are built its body is not compiled, so that
// what it calls need not be there, and the program stops.
template <typename Launch>
void OnDeviceOf(const at::Tensor& tensor, const Launch& launch) {
  SORDINO_CHECK(kKernelsAreBuilt, "a kernel was called that is not built");
  if constexpr (kKernelsAreBuilt) {
    const c10::DeviceGuard guard(tensor.device());
    launch(kernels::StreamOf(tensor.device()));
    kernels::CheckLaunch();
  }
}

}  // namespace sordino

#endif  // SORDINO_KERNELS_LAUNCH_H_
