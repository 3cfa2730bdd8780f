#include "sordino/training/internal/libtorch_seed.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>

namespace sordino {
namespace {

at::Tensor DrawsAfter(std::uint64_t seed) {
  InsecureSeededGenerator generator(seed);
  SeedLibtorch(generator);
  return at::rand({4096});
}

TEST(SeedLibtorch, GivesTheSameNumbersForTheSameStream) {
  EXPECT_TRUE(DrawsAfter(3).equal(DrawsAfter(3)));
  EXPECT_FALSE(DrawsAfter(3).equal(DrawsAfter(4)));
}

// A seed of libtorch's CPU generator would be told by its low 32 bits: here no seed of that kind
// gives the numbers, and the state differs in most words.
TEST(SeedLibtorch, FillsTheWholeState) {
  InsecureSeededGenerator generator(5);
  SeedLibtorch(generator);
  const at::Tensor state = at::globalContext().defaultGenerator(at::kCPU).get_state();
  at::manual_seed(InsecureSeededGenerator(5).Next64());
  const at::Tensor of_seed = at::globalContext().defaultGenerator(at::kCPU).get_state();
  EXPECT_GT(state.ne(of_seed).sum().item<std::int64_t>(), 2000);
}

// Five standard deviations: a false alarm in 1.7 million runs.
TEST(SeedLibtorch, LeavesUniformNumbers) {
  const at::Tensor draws = DrawsAfter(6).to(at::kDouble);
  EXPECT_NEAR(draws.mean().item<double>(), 0.5, 5 / std::sqrt(12.0 * 4096));
  EXPECT_NEAR(draws.square().mean().item<double>(), 1.0 / 3, 5 * std::sqrt(4.0 / 45 / 4096));
}

}  // namespace
}  // namespace sordino
