#include "sordino/kernels/launch.h"

#include <ATen/Context.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

namespace sordino {
namespace {

TEST(LaunchDeath, StopsWhereNoKernelsAreBuilt) {
  if (kKernelsAreBuilt) GTEST_SKIP() << "they are built";
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(OnDeviceOf(at::zeros({1}), [](auto stream) { static_cast<void>(stream); }),
               "a kernel was called that is not built");
}

TEST(LaunchCuda, GivesTheCurrentStreamOfTheDevice) {
  if (at::getNumGPUs() == 0) GTEST_SKIP() << "no CUDA device";
  if (!kKernelsAreBuilt) GTEST_SKIP() << "built without nvcc";
  const at::Tensor tensor = at::zeros({1}, at::kCUDA);
  bool was_called = false;
  OnDeviceOf(tensor, [&](auto stream) {
    was_called = true;
    EXPECT_EQ(stream, kernels::StreamOf(tensor.device()));
    EXPECT_FALSE(kernels::IsCapturing());
  });
  EXPECT_TRUE(was_called);
}

}  // namespace
}  // namespace sordino
