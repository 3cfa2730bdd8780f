// Addresses that kernels read four float32 numbers at once from.
#ifndef SORDINO_KERNELS_ALIGNMENT_H_
#define SORDINO_KERNELS_ALIGNMENT_H_

#include <cstdint>

namespace sordino::kernels {

inline bool IsAligned(const void* address) {
  constexpr std::uintptr_t kAlignment = 16;
  return reinterpret_cast<std::uintptr_t>(address) % kAlignment == 0;
}

}  // namespace sordino::kernels

#endif  // SORDINO_KERNELS_ALIGNMENT_H_
