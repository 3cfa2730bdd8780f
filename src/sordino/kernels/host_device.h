// Marks functions that kernels call and that tests run on a CPU.
#ifndef SORDINO_KERNELS_HOST_DEVICE_H_
#define SORDINO_KERNELS_HOST_DEVICE_H_

#if defined(__CUDACC__)
#define SORDINO_HOST_DEVICE __host__ __device__ __forceinline__
#else
#define SORDINO_HOST_DEVICE inline
#endif

#endif  // SORDINO_KERNELS_HOST_DEVICE_H_
