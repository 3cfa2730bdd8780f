// The libtorch that was found compiles, links, loads and differentiates.
#include <torch/types.h>
#include <torch/version.h>

#include <gtest/gtest.h>

namespace sordino {
namespace {

TEST(Libtorch, IsVersion2) { EXPECT_EQ(TORCH_VERSION_MAJOR, 2); }

TEST(Libtorch, DifferentiatesOnTheCpu) {
  const torch::Tensor x = torch::tensor({1.0, 2.0, 3.0}, torch::requires_grad());
  (x * x).sum().backward();
  EXPECT_TRUE(torch::equal(x.grad(), 2 * x.detach()));
}

}  // namespace
}  // namespace sordino
