#include "sordino/noise/noise_adder.h"

#include "sordino/noise/device_noise.h"

namespace sordino {

NoiseAdder::NoiseAdder(RandomSource& source) : source_(source) {}
NoiseAdder::~NoiseAdder() = default;

NoisedGradients NoiseAdder::Add(const BoundedSum& sum, const StepNoise& noise) {
  if (!noise.canaries.empty() || !DeviceNoise::Serves(sum, *noise.kind)) {
    return AddNoise(sum, noise, source_);
  }
  std::int64_t coordinates = 0;
  for (const at::Tensor& gradient : sum.gradients) coordinates += gradient.numel();
  if (!on_device_ || sum.gradients.front().device() != device_) {
    device_ = sum.gradients.front().device();
    on_device_ = std::make_unique<DeviceNoise>(device_, source_);
  }
  on_device_->SetStep(noise, sum.sensitivity, coordinates);
  return AddNoise(sum, *on_device_);
}

}  // namespace sordino
