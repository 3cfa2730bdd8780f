// Seeds for libtorch's own generators, which dropout and the like draw from.
#ifndef SORDINO_TRAINING_INTERNAL_LIBTORCH_SEED_H_
#define SORDINO_TRAINING_INTERNAL_LIBTORCH_SEED_H_

#include "sordino/random/generator.h"

namespace sordino {

// Seeds the default generators of all devices. That of the CPU takes 32 bits of a seed, few enough
// to try them all, so its whole state of 19,968 bits is drawn; the others take 64 bits.
void SeedLibtorch(Generator& generator);

}  // namespace sordino

#endif  // SORDINO_TRAINING_INTERNAL_LIBTORCH_SEED_H_
