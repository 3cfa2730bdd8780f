// What a noise process remembers of earlier steps, and what of it becomes part of the noise n_t of
// step t (kernels/memory_kind.h has the formulas). These are the rows of C^-1 w for bands of C^-1,
// for bands of C, for a C^-1 whose coefficients are sums of geometric series, and for the tree,
// whose node of level l ends at a multiple of 2^l.
#ifndef SORDINO_NOISE_NOISE_MEMORY_H_
#define SORDINO_NOISE_NOISE_MEMORY_H_

#include <vector>

#include "sordino/kernels/memory_kind.h"

namespace sordino {

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
