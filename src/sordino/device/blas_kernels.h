// Matrix products that this processor can compute.
#ifndef SORDINO_DEVICE_BLAS_KERNELS_H_
#define SORDINO_DEVICE_BLAS_KERNELS_H_

namespace sordino {

// libtorch for Arm processors multiplies matrices with NVPL, which chooses its kernels by the name
// of the processor. Where the system keeps the vector extension SVE of that processor to itself, as
// some virtual machines do, they never return. Then the kernels that need no SVE are chosen, by the
// environment variable NVPL_BLAS_DEBUG_CPU_TYPE; one that is set already stays. A program calls
// this when it starts, before other threads read the environment. On other processors nothing
// happens.
void ChooseBlasKernels();

}  // namespace sordino

#endif  // SORDINO_DEVICE_BLAS_KERNELS_H_
