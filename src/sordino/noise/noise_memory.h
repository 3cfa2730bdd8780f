// What a noise process remembers of earlier steps, and what of it becomes part of the noise n_t of
// step t. w_t is its draw, s counts the steps since the process began:
//
//   kDraws    n_t = w_t + f_1 w_{t-1} + f_2 w_{t-2} + ...
//   kNoise    n_t = w_t + f_1 n_{t-1} + f_2 n_{t-2} + ...
//   kBuffers  n_t = w_t + sum_k f_k b_k,  then  b_k = decay_k b_k + w_t
//   kTree     n_t = w_t + sum_{l < z} f_l w_{t - 2^l},  2^z the largest power of 2 in s + 1
//
// Everything before the first step is 0. These are the rows of C^-1 w for bands of C^-1, for bands
// of C, for a C^-1 whose coefficients are sums of geometric series, and for the tree, whose node of
// level l ends at a multiple of 2^l.
#ifndef SORDINO_NOISE_NOISE_MEMORY_H_
#define SORDINO_NOISE_NOISE_MEMORY_H_

#include <cstdint>
#include <vector>

namespace sordino {

enum class MemoryKind : std::uint8_t { kNone, kDraws, kNoise, kBuffers, kTree };

struct NoiseMemory {
  MemoryKind kind = MemoryKind::kNone;
  std::vector<double> factors = {};  // one for each vector that is kept
  std::vector<double> decays = {};   // of buffers, in [0, 1)
  // No |w_t|, or |n_t| where that is kept, is larger, in units of the scale. Draws end at 13.
  double largest = 13;
  // What an error of 1 in every n_t amounts to in w, given the releases, as a norm over the rows
  // (noise_process.h): sqrt(rows) where noise is kept, else that times the norm of C.
  double spread = 1;

  bool IsNone() const { return kind == MemoryKind::kNone; }
  // Bound on |e_t|, in units of the last digit of draws, where n_t = the formula + e_t, and on how
  // far e_t of neighbouring sums are apart: 1 for rounding n_t to a whole number, and what doubles
  // lose.
  double RoundingOfStep() const;
  // As a norm over the rows (StepNoise::remembered); 0 where nothing is remembered.
  double Rounding() const { return IsNone() ? 0 : spread * RoundingOfStep(); }
};

}  // namespace sordino

#endif  // SORDINO_NOISE_NOISE_MEMORY_H_
