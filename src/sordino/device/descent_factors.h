// A step of gradient descent as a formula, for a kernel that has the gradient in its registers
// (noise/device_noise.h):
//
//   d = g + decay p,  m <- momentum m + d,  d <- m, or d + momentum m (Nesterov),  p <- p - rate d
//
// Sums of a value and a product are rounded once, as libtorch's kernels on a GPU round them.
#ifndef SORDINO_DEVICE_DESCENT_FACTORS_H_
#define SORDINO_DEVICE_DESCENT_FACTORS_H_

#include "sordino/base/device_function.h"

namespace sordino {

struct DescentFactors {
  double rate = 0;
  double momentum = 0;  // 0: without m
  double decay = 0;
  bool nesterov = false;
};

#ifdef __CUDA_ARCH__
SORDINO_DEVICE inline float MultiplyAdd(float a, float b, float c) { return __fmaf_rn(a, b, c); }
SORDINO_DEVICE inline double MultiplyAdd(double a, double b, double c) { return __fma_rn(a, b, c); }
#else
SORDINO_DEVICE inline float MultiplyAdd(float a, float b, float c) {
  return __builtin_fmaf(a, b, c);
}
SORDINO_DEVICE inline double MultiplyAdd(double a, double b, double c) {
  return __builtin_fma(a, b, c);
}
#endif

// The step of one coordinate; `momentum` is not read where the factors have none.
template <typename T>
SORDINO_DEVICE inline void Descend(const DescentFactors& factors, T gradient, T* parameter,
                                   T* momentum) {
  T direction = gradient;
  if (factors.decay != 0) {
    direction = MultiplyAdd(static_cast<T>(factors.decay), *parameter, direction);
  }
  if (factors.momentum != 0) {
    const auto share = static_cast<T>(factors.momentum);
    const T kept = share * *momentum;
    *momentum = kept + direction;
    direction = factors.nesterov ? MultiplyAdd(share, *momentum, direction) : *momentum;
  }
  *parameter = MultiplyAdd(static_cast<T>(-factors.rate), direction, *parameter);
}

}  // namespace sordino

#endif  // SORDINO_DEVICE_DESCENT_FACTORS_H_
