// The noise steps of a run: AddNoise (gradient_noise.h), and what a device keeps from one step to
// the next (device_noise.h).
#ifndef SORDINO_NOISE_NOISE_ADDER_H_
#define SORDINO_NOISE_NOISE_ADDER_H_

#include <c10/core/Device.h>

#include <memory>

#include "sordino/device/descent.h"
#include "sordino/noise/gradient_noise.h"
#include "sordino/random/random_source.h"

namespace sordino {

class DeviceNoise;

class NoiseAdder {
 public:
  // The source lives longer.
  explicit NoiseAdder(RandomSource& source);
  ~NoiseAdder();
  NoiseAdder(const NoiseAdder&) = delete;
  NoiseAdder& operator=(const NoiseAdder&) = delete;

  // The values of AddNoise with the source. Steps of a private source do not fall.
  NoisedGradients Add(const BoundedSum& sum, const StepNoise& noise);

  // Whether it draws on a device, where it may make the update too.
  static bool DrawsOnDevice(const BoundedSum& sum, const StepNoise& noise);
  // A step of descent by these values, in one launch. False, and nothing is done, where that cannot
  // be.
  bool Descend(const BoundedSum& sum, const StepNoise& noise, const Descent& descent);

 private:
  DeviceNoise& SetOnDevice(const BoundedSum& sum, const StepNoise& noise);

  RandomSource& source_;
  c10::Device device_ = c10::kCPU;
  std::unique_ptr<DeviceNoise> on_device_;
};

}  // namespace sordino

#endif  // SORDINO_NOISE_NOISE_ADDER_H_
