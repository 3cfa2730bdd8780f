#include "sordino/gradients/internal/rounding/fixed_point_steps.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace sordino {
namespace {

constexpr double kMost = 0x1p57;

// Values of every size, halves of steps, and what is not finite.
at::Tensor AwkwardValues(double granularity, at::ScalarType type) {
  const double infinity = std::numeric_limits<double>::infinity();
  std::vector<double> values = {0, -0.0, infinity, -infinity, std::nan("")};
  for (const double steps : {0.25, 0.5, 0.75, 1.0, 1.5, 2.5, 1e9 + 0.5, 0x1p56, kMost, 0x1p58}) {
    for (const double sign : {1.0, -1.0}) values.push_back(sign * steps * granularity);
  }
  at::Generator generator = at::detail::createCPUGenerator(3);
  const at::Tensor random = at::randn({2'000}, generator, at::kDouble)
                                .mul(at::randn({2'000}, generator, at::kDouble).mul(12).exp())
                                .mul(granularity);
  return at::cat({at::tensor(values, at::kDouble), random}).to(type);
}

at::Tensor StepsOf(const at::Tensor& values, double granularity, bool by_tensors) {
  const at::Tensor steps =
      at::full({values.numel()}, 7, at::TensorOptions(at::kLong).device(values.device()));
  (by_tensors ? AddStepsByTensors : AddSteps)(values, granularity, kMost, steps);
  return steps.sub(7).cpu();
}

TEST(FixedPointSteps, AreTheNearestWholeNumbersWithinTheLimit) {
  const double granularity = 0x1p-20;
  const at::Tensor values = AwkwardValues(granularity, at::kDouble);
  const at::Tensor steps = StepsOf(values, granularity, /*by_tensors=*/false);
  for (std::int64_t i = 0; i < values.numel(); ++i) {
    const double value = values[i].item<double>() / granularity;
    const auto step = static_cast<double>(steps[i].item<std::int64_t>());
    if (std::isnan(value)) {
      EXPECT_EQ(step, 0);
    } else if (std::abs(value) >= kMost) {
      EXPECT_EQ(step, std::copysign(kMost, value));
    } else {
      EXPECT_LE(std::abs(step - value), 0.5) << value;
      if (std::abs(step - value) == 0.5) {
        EXPECT_EQ(std::fmod(step, 2), 0) << value;
      }
    }
  }
}

// What a GPU computes, computed here.
TEST(FixedPointSteps, AreTheSameByOperationsOfLibtorch) {
  for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
    for (const double granularity : {0x1p-50, 0x1p-20, 0x1p3}) {
      const at::Tensor values = AwkwardValues(granularity, type);
      EXPECT_TRUE(
          at::equal(StepsOf(values, granularity, true), StepsOf(values, granularity, false)));
    }
  }
}

TEST(FixedPointSteps, AreTheSameOnAGpu) {
  if (at::getNumGPUs() == 0) GTEST_SKIP() << "no CUDA device";
  for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
    const at::Tensor values = AwkwardValues(0x1p-20, type);
    EXPECT_TRUE(
        at::equal(StepsOf(values.to(at::kCUDA), 0x1p-20, false), StepsOf(values, 0x1p-20, false)));
  }
}

}  // namespace
}  // namespace sordino
