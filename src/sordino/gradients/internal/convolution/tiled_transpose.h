// Transposition of matrices that are small enough for the cache, with conversion of their type.
#ifndef SORDINO_GRADIENTS_INTERNAL_CONVOLUTION_TILED_TRANSPOSE_H_
#define SORDINO_GRADIENTS_INTERNAL_CONVOLUTION_TILED_TRANSPOSE_H_

#include <cstdint>
#include <cstring>
#include <type_traits>

namespace sordino {

// target[j, i] = source[i, j] for a 4 by 4 tile of floats.
inline void TransposeTile(const float* source, std::int64_t source_stride, float* target,
                          std::int64_t target_stride) {
  using Quad [[gnu::vector_size(16)]] = float;
  Quad a, b, c, d;
  std::memcpy(&a, source, sizeof(Quad));
  std::memcpy(&b, source + source_stride, sizeof(Quad));
  std::memcpy(&c, source + 2 * source_stride, sizeof(Quad));
  std::memcpy(&d, source + 3 * source_stride, sizeof(Quad));
  const Quad ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5);
  const Quad ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
  const Quad cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5);
  const Quad cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  a = __builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5);
  b = __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7);
  c = __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5);
  d = __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7);
  std::memcpy(target, &a, sizeof(Quad));
  std::memcpy(target + target_stride, &b, sizeof(Quad));
  std::memcpy(target + 2 * target_stride, &c, sizeof(Quad));
  std::memcpy(target + 3 * target_stride, &d, sizeof(Quad));
}

// target[j, i] = source[i, j] for source [rows, columns]; strides are distances between rows.
template <typename Source, typename T>
void Transpose(const Source* source, std::int64_t source_stride, std::int64_t rows,
               std::int64_t columns, T* target, std::int64_t target_stride) {
  std::int64_t i = 0;
  if constexpr (std::is_same_v<Source, float> && std::is_same_v<T, float>) {
    for (; i + 4 <= rows; i += 4) {
      std::int64_t j = 0;
      for (; j + 4 <= columns; j += 4) {
        TransposeTile(source + i * source_stride + j, source_stride, target + j * target_stride + i,
                      target_stride);
      }
      for (; j < columns; ++j) {
        for (std::int64_t k = i; k < i + 4; ++k) {
          target[j * target_stride + k] = source[k * source_stride + j];
        }
      }
    }
  }
  for (; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      target[j * target_stride + i] = static_cast<T>(source[i * source_stride + j]);
    }
  }
}

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_INTERNAL_CONVOLUTION_TILED_TRANSPOSE_H_
