#include "sordino/gradients/internal/rounding/long_steps.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>

namespace sordino {
namespace {

at::Tensor Whole(std::initializer_list<std::int64_t> values) {
  return at::tensor(at::ArrayRef<std::int64_t>(values), at::kLong);
}

TEST(LongSteps, AddUpExactlyInAnyOrder) {
  const std::int64_t large = (std::int64_t{1} << 60) + 12345;
  const at::Tensor first = Whole({large, -large, 7, -1, 0});
  const at::Tensor second = Whole({-large + 1, large - 1, -8, -1, 1});
  LongSteps sum = LongSteps::Zeros(5, at::kCPU);
  LongSteps other = LongSteps::Zeros(5, at::kCPU);
  for (int i = 0; i < 100; ++i) sum.Add(first);
  for (int i = 0; i < 100; ++i) sum.Add(second);
  for (int i = 0; i < 100; ++i) {
    other.Add(second);
    other.Add(first);
  }
  EXPECT_TRUE(at::equal(sum.Saturated(), Whole({100, -100, -100, -200, 100})));
  EXPECT_TRUE(at::equal(sum.Saturated(), other.Saturated()));
  EXPECT_TRUE(at::equal(sum.Float64(), sum.Saturated().to(at::kDouble)));
}

TEST(LongSteps, AreCutOffAtTheirLimitAndNotBefore) {
  const std::int64_t most = std::int64_t{1} << 61;
  const at::Tensor near = Whole({most - 1, most, -most, -most + 1, -most, most, most});
  LongSteps sum = LongSteps::Zeros(7, at::kCPU);
  sum.Add(near);
  EXPECT_TRUE(at::equal(sum.Saturated(), near));
  sum.Add(Whole({0, 1, -1, 0, 1, -1, most}));
  EXPECT_TRUE(at::equal(sum.Saturated(),
                        Whole({most - 1, most, -most, -most + 1, -most + 1, most - 1, most})));
  // Far beyond what an int64 holds.
  for (int i = 0; i < 1000; ++i) sum.Add(near);
  EXPECT_EQ(sum.Saturated()[0].item<std::int64_t>(), most);
  EXPECT_EQ(sum.Saturated()[2].item<std::int64_t>(), -most);
  EXPECT_NEAR(sum.Float64()[0].item<double>() / 0x1p61, 1001, 1e-9);
  EXPECT_NEAR(sum.Float64()[2].item<double>() / 0x1p61, -1001, 1e-9);
}

}  // namespace
}  // namespace sordino
