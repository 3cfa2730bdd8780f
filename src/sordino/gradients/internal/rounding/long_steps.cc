#include "sordino/gradients/internal/rounding/long_steps.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

namespace sordino {
namespace {

constexpr int kLowBits = 32;
constexpr std::int64_t kLowMask = (std::int64_t{1} << kLowBits) - 1;
constexpr std::int64_t kMostSteps = std::int64_t{1} << 61;

}  // namespace

LongSteps LongSteps::Zeros(std::int64_t coordinates, at::Device device) {
  const auto options = at::TensorOptions(at::kLong).device(device);
  return {at::zeros({coordinates}, options), at::zeros({coordinates}, options)};
}

void LongSteps::Add(const at::Tensor& steps) {
  low.add_(at::bitwise_and(steps, kLowMask));
  high.add_(at::bitwise_right_shift(steps, kLowBits));
}

at::Tensor LongSteps::Saturated() const {
  const at::Tensor whole = high + at::bitwise_right_shift(low, kLowBits);
  const std::int64_t most = kMostSteps >> kLowBits;
  // Within the limits the value is one of an int64.
  const at::Tensor value =
      at::bitwise_left_shift(whole.clamp(-most, most), kLowBits) + at::bitwise_and(low, kLowMask);
  const at::Tensor above = at::where(whole >= most, kMostSteps, value);
  return at::where(whole < -most, -kMostSteps, above);
}

at::Tensor LongSteps::Float64() const {
  const at::Tensor whole = high + at::bitwise_right_shift(low, kLowBits);
  return whole.to(at::kDouble).mul_(static_cast<double>(kLowMask) + 1) +
         at::bitwise_and(low, kLowMask).to(at::kDouble);
}

}  // namespace sordino
