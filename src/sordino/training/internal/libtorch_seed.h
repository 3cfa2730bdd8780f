// Seeds for libtorch's own generators, which dropout and the like draw from.
#ifndef SORDINO_TRAINING_INTERNAL_LIBTORCH_SEED_H_
#define SORDINO_TRAINING_INTERNAL_LIBTORCH_SEED_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "sordino/random/generator.h"

namespace sordino {

// Seeds the default generators of all devices. That of the CPU takes 32 bits of a seed, few enough
// to try them all, so its whole state of 19,968 bits is drawn; the others take 64 bits.
void SeedLibtorch(Generator& generator);

// What tells whether a new seed is needed, for a seed takes about as long as a small step.
class LibtorchDraws {
 public:
  // Seeds the generators.
  void Seed(Generator& generator);
  // Whether they are as the last Seed() left them: nothing was drawn, and nobody else seeded them.
  bool AreFresh() const;

 private:
  // Of the CPU, and a seed and a position of each GPU.
  static std::vector<std::uint64_t> Position();
  std::optional<std::vector<std::uint64_t>> fresh_;
};

}  // namespace sordino

#endif  // SORDINO_TRAINING_INTERNAL_LIBTORCH_SEED_H_
