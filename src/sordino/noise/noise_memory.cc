#include "sordino/noise/noise_memory.h"

#include <algorithm>
#include <cmath>

namespace sordino {

// In units of the scale, which is at most 2^40 whole numbers (gradient_noise.h): products and sums
// of m terms lose (m + 3) 2^-53 of the sum of their sizes, the rounding of what was kept included.
// A buffer is at most `largest` / (1 - decay), and each step adds 2^-52 of that to the error that
// it carries on.
double NoiseMemory::RoundingOfStep() const {
  double sizes = 0;
  double carried = 0;
  for (std::size_t k = 0; k < factors.size(); ++k) {
    const double rest = kind == MemoryKind::kBuffers ? 1 - decays[k] : 1;
    sizes += std::abs(factors[k]) * largest / rest;
    if (kind == MemoryKind::kBuffers) {
      carried += std::abs(factors[k]) * 0x1p-52 * largest / (rest * rest);
    }
  }
  const auto terms = static_cast<double>(factors.size() + 3);
  return 1 + 2 * 0x1p40 * (terms * 0x1p-53 * sizes + carried);
}

}  // namespace sordino
