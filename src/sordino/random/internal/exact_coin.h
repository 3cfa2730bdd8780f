// Decides "u < bound" exactly for a uniform u of which some bits are known and a bound that is a
// real number: more bits of both are taken until they differ.
#ifndef SORDINO_RANDOM_INTERNAL_EXACT_COIN_H_
#define SORDINO_RANDOM_INTERNAL_EXACT_COIN_H_

#include <cstdint>

#include "sordino/random/generator.h"

namespace sordino::internal {

// numerator / denominator * exp(-magnitude / parameter), or with squared
// numerator / denominator * exp(-magnitude^2 / (2 parameter^2)). The double parameter is taken as
// the rational number that it is.
struct ExactBound {
  std::uint64_t numerator = 1;
  std::uint64_t denominator = 1;
  std::uint64_t magnitude = 0;
  double parameter = 1;
  bool squared = false;
};

// u lies in [known, known + 1) / 2^known_bits, 0 <= known_bits <= 63; its further bits are drawn.
// Takes tens of microseconds. Stops the program when 3200 bits do not decide, which happens with
// probability below 2^-3000.
bool UniformIsBelow(Generator& generator, std::uint64_t known, int known_bits,
                    const ExactBound& bound);

}  // namespace sordino::internal

#endif  // SORDINO_RANDOM_INTERNAL_EXACT_COIN_H_
