// Directions from a seed, for tests of estimated norms.
#ifndef SORDINO_GRADIENTS_TESTING_SEEDED_DIRECTIONS_H_
#define SORDINO_GRADIENTS_TESTING_SEEDED_DIRECTIONS_H_

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/empty.h>

#include <cstdint>

#include "sordino/gradients/jl_clipping.h"

namespace sordino {

class SeededDirections : public JlDirections {
 public:
  explicit SeededDirections(std::uint64_t seed) : seed_(seed) {}

  at::Tensor Draw(std::int64_t number, std::int64_t coordinates) const override {
    at::Generator generator =
        at::detail::createCPUGenerator(seed_ * 1'000'003 + static_cast<std::uint64_t>(number));
    return at::empty({coordinates}, at::kDouble).normal_(0, 1, generator);
  }

 private:
  std::uint64_t seed_;
};

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_TESTING_SEEDED_DIRECTIONS_H_
