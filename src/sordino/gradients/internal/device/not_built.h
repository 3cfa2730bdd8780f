// For what is compiled without a CUDA compiler (cmake/SordinoCuda.cmake).
#ifndef SORDINO_GRADIENTS_INTERNAL_DEVICE_NOT_BUILT_H_
#define SORDINO_GRADIENTS_INTERNAL_DEVICE_NOT_BUILT_H_

#include "sordino/base/check.h"

namespace sordino::device {

[[noreturn]] inline void NotBuilt() {
  internal::CheckFailed("false", "kernels were called that are not built", __FILE__, __LINE__);
}

}  // namespace sordino::device

#endif  // SORDINO_GRADIENTS_INTERNAL_DEVICE_NOT_BUILT_H_
