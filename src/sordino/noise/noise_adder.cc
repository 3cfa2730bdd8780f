#include "sordino/noise/noise_adder.h"

#include "sordino/noise/device_noise.h"

namespace sordino {

NoiseAdder::NoiseAdder(RandomSource& source) : source_(source) {}
NoiseAdder::~NoiseAdder() = default;

bool NoiseAdder::DrawsOnDevice(const BoundedSum& sum, const StepNoise& noise) {
  return noise.canaries.empty() && DeviceNoise::Serves(sum, *noise.kind);
}

DeviceNoise& NoiseAdder::SetOnDevice(const BoundedSum& sum, const StepNoise& noise) {
  std::int64_t coordinates = 0;
  for (const at::Tensor& gradient : sum.gradients) coordinates += gradient.numel();
  if (!on_device_ || sum.gradients.front().device() != device_) {
    device_ = sum.gradients.front().device();
    on_device_ = std::make_unique<DeviceNoise>(device_, source_);
  }
  on_device_->SetStep(noise, sum.sensitivity, coordinates);
  return *on_device_;
}

NoisedGradients NoiseAdder::Add(const BoundedSum& sum, const StepNoise& noise) {
  if (!DrawsOnDevice(sum, noise)) return AddNoise(sum, noise, source_);
  return AddNoise(sum, SetOnDevice(sum, noise));
}

bool NoiseAdder::Descend(const BoundedSum& sum, const StepNoise& noise, const Descent& descent) {
  if (!DrawsOnDevice(sum, noise) || !DeviceNoise::Serves(sum, descent)) return false;
  AddNoise(sum, SetOnDevice(sum, noise), descent);
  return true;
}

}  // namespace sordino
