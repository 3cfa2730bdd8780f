// How noise is correlated between steps. w_t is the draw of step t, n_t its noise, s counts the
// steps since the process began:
//
//   kDraws    n_t = w_t + f_1 w_{t-1} + f_2 w_{t-2} + ...
//   kNoise    n_t = w_t + f_1 n_{t-1} + f_2 n_{t-2} + ...
//   kBuffers  n_t = w_t + sum_k f_k b_k,  then  b_k = decay_k b_k + w_t
//   kTree     n_t = w_t + sum_{l < z} f_l w_{t - 2^l},  2^z the largest power of 2 in s + 1
//
// Everything before the first step is 0.
#ifndef SORDINO_KERNELS_MEMORY_KIND_H_
#define SORDINO_KERNELS_MEMORY_KIND_H_

#include <cstdint>

namespace sordino {

enum class MemoryKind : std::uint8_t { kNone, kDraws, kNoise, kBuffers, kTree };

}  // namespace sordino

#endif  // SORDINO_KERNELS_MEMORY_KIND_H_
