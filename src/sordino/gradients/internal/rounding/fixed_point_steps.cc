#include "sordino/gradients/internal/rounding/fixed_point_steps.h"

#include <cmath>
#include <cstdint>

namespace sordino {
namespace {

template <typename T>
void AddStepsOf(const T* values, std::int64_t count, double per_unit, double most,
                std::int64_t* steps) {
  for (std::int64_t i = 0; i < count; ++i) {
    const double value = static_cast<double>(values[i]) * per_unit;
    // Comparisons with what is not a number are false.
    const double cut = value > most ? most : value >= -most ? value : value < -most ? -most : 0;
    steps[i] += std::llrint(cut);
  }
}

}  // namespace

void AddSteps(const at::Tensor& values, double granularity, double most, const at::Tensor& steps) {
  const double per_unit = 1 / granularity;  // exact: a power of two
  if (values.is_cpu()) {
    const at::Tensor flat = values.contiguous();
    auto* const out = steps.mutable_data_ptr<std::int64_t>();
    if (flat.scalar_type() == at::kFloat) {
      return AddStepsOf(flat.const_data_ptr<float>(), flat.numel(), per_unit, most, out);
    }
    if (flat.scalar_type() == at::kDouble) {
      return AddStepsOf(flat.const_data_ptr<double>(), flat.numel(), per_unit, most, out);
    }
  }
  AddStepsByTensors(values, granularity, most, steps);
}

void AddStepsByTensors(const at::Tensor& values, double granularity, double most,
                       const at::Tensor& steps) {
  at::Tensor wide = values.to(at::kDouble).mul(1 / granularity);
  wide.nan_to_num_(0, most, -most).clamp_(-most, most).round_();
  steps.add_(wide.to(at::kLong));
}

}  // namespace sordino
