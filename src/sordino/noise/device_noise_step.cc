// What of device_noise.h needs no CUDA.
#include <ATen/Functions.h>

#include <algorithm>
#include <cmath>

#include "sordino/base/check.h"
#include "sordino/noise/device_noise.h"
#include "sordino/noise/internal/grid_step.h"

namespace sordino {

bool DeviceNoise::Serves(const BoundedSum& sum, const NoiseComponent& kind) {
  if (!IsBuilt() || !kind.DrawsByIndex() || sum.gradients.empty()) return false;
  const at::Device device = sum.gradients.front().device();
  return device.is_cuda() &&
         std::all_of(sum.gradients.begin(), sum.gradients.end(), [&](const at::Tensor& gradient) {
           return gradient.device() == device &&
                  (gradient.scalar_type() == at::kFloat || gradient.scalar_type() == at::kDouble);
         });
}

void DeviceNoise::SetStep(const StepNoise& noise, L2Sensitivity sensitivity,
                          std::int64_t coordinates) {
  SORDINO_CHECK(noise.kind->DrawsByIndex(), "this kind of noise does not draw by index");
  SORDINO_CHECK(noise.canaries.empty(), "canaries are not added on a device");
  SORDINO_CHECK(!noise.earlier, "earlier draws are not added on a device");
  SetGrid(StepGrid(noise, sensitivity, coordinates), noise.divisor, noise.step);
  sensitivity_ = sensitivity;
  coordinates_ = coordinates;
}

void DeviceNoise::SetGrid(const NoiseGrid& grid, double divisor, std::int64_t step) {
  sensitivity_ = L2Sensitivity(0);
  coordinates_ = 0;
  StoreGrid(grid, divisor, static_cast<std::uint64_t>(step));
  standard_deviation_ = grid.scale / divisor;
}

void DeviceNoise::Repeat(std::int64_t step, double scale_of_draws) {
  SORDINO_CHECK(!is_private_, "private noise was to be drawn again");
  static_cast<void>(Steps({.scale = std::ldexp(scale_of_draws, -internal::kFinerBits),
                           .granularity = 1,
                           .finer_bits = internal::kFinerBits},
                          kept_.size(1), step));
}

at::Tensor DeviceNoise::Steps(const NoiseGrid& grid, std::int64_t coordinates, std::int64_t step) {
  // On a grid of whole numbers, where nothing is divided.
  SetGrid({.scale = grid.scale / grid.granularity, .granularity = 1, .finer_bits = grid.finer_bits},
          1, step);
  at::Tensor steps = at::zeros({coordinates}, state_.options().dtype(at::kDouble));
  Launch({steps}, {steps});
  return steps;
}

bool DeviceNoise::Serves(const BoundedSum& sum, const Descent& descent) {
  const auto fit = [&](const std::vector<at::Tensor>& tensors) {
    return std::equal(sum.gradients.begin(), sum.gradients.end(), tensors.begin(), tensors.end(),
                      [](const at::Tensor& gradient, const at::Tensor& tensor) {
                        return tensor.is_contiguous() && tensor.sizes() == gradient.sizes() &&
                               tensor.scalar_type() == gradient.scalar_type() &&
                               tensor.device() == gradient.device();
                      });
  };
  return fit(descent.parameters) && (descent.factors.momentum == 0 || fit(descent.momenta));
}

void DeviceNoise::CheckSetFor(const BoundedSum& sum) const {
  std::int64_t coordinates = 0;
  for (const at::Tensor& gradient : sum.gradients) coordinates += gradient.numel();
  SORDINO_CHECK(sum.sensitivity.value() <= sensitivity_.value(),
                "the noise was chosen for a sum of a smaller sensitivity");
  SORDINO_CHECK(coordinates == coordinates_,
                "the noise was chosen for a sum of another number of coordinates");
}

NoisedGradients AddNoise(const BoundedSum& sum, DeviceNoise& noise) {
  noise.CheckSetFor(sum);
  std::vector<at::Tensor> sums;
  std::vector<at::Tensor> noised;
  sums.reserve(sum.gradients.size());
  noised.reserve(sum.gradients.size());
  for (const at::Tensor& gradient : sum.gradients) {
    sums.push_back(gradient.contiguous());
    noised.push_back(at::empty_like(sums.back()));
  }
  noise.Launch(sums, noised);
  for (std::size_t k = 0; k < noised.size(); ++k) noised[k] = noised[k].to(sum.noised_types[k]);
  return {std::move(noised), noise.standard_deviation_};
}

void AddNoise(const BoundedSum& sum, DeviceNoise& noise, const Descent& descent) {
  noise.CheckSetFor(sum);
  std::vector<at::Tensor> sums;
  sums.reserve(sum.gradients.size());
  for (const at::Tensor& gradient : sum.gradients) sums.push_back(gradient.contiguous());
  noise.LaunchDescent(sums, descent);
}

}  // namespace sordino
