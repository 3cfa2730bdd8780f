// Functions that are compiled for the processor and, in a .cu file, for a GPU too.
//
// Such a function uses no library: C arrays and fixed-width integers only, because the functions of
// std::array and of <cmath> are not those of the device.
#ifndef SORDINO_BASE_DEVICE_FUNCTION_H_
#define SORDINO_BASE_DEVICE_FUNCTION_H_

#ifdef __CUDACC__
#define SORDINO_DEVICE __host__ __device__
#define SORDINO_DEVICE_NOINLINE __noinline__
#define SORDINO_DEVICE_UNROLL _Pragma("unroll")
#define SORDINO_DEVICE_NO_UNROLL _Pragma("unroll 1")
#else
#define SORDINO_DEVICE
#define SORDINO_DEVICE_NOINLINE
#define SORDINO_DEVICE_UNROLL
#define SORDINO_DEVICE_NO_UNROLL
#endif

#endif  // SORDINO_BASE_DEVICE_FUNCTION_H_
