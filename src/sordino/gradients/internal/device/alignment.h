// Addresses that kernels read four float32 numbers at once from.
#ifndef SORDINO_GRADIENTS_INTERNAL_DEVICE_ALIGNMENT_H_
#define SORDINO_GRADIENTS_INTERNAL_DEVICE_ALIGNMENT_H_

#include <cstdint>

namespace sordino::device {

inline bool IsAligned(const void* address) {
  constexpr std::uintptr_t kAlignment = 16;
  return reinterpret_cast<std::uintptr_t>(address) % kAlignment == 0;
}

}  // namespace sordino::device

#endif  // SORDINO_GRADIENTS_INTERNAL_DEVICE_ALIGNMENT_H_
